"""The one custom training loop, for every task and every strategy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import tensorflow as tf
from absl import logging

from albert_tf.errors import RunError, UserError
from albert_tf.optimization import OptimizationConfig, create_optimizer
from albert_tf.tasks.task import Batch, Task, ratio_values, stack_ratios
from albert_tf.training.checkpointing import RunCheckpoint
from albert_tf.training.input import DatasetFunction, training_iterator
from albert_tf.training.reporting import Reporter


@dataclasses.dataclass(frozen=True)
class TrainerConfig:
    """How a run proceeds; names and defaults of the official flags.

    Attributes:
      output_dir: the model directory.
      train_batch_size: sequences an update, over all replicas.
      iterations_per_loop: steps a host call, and between reports.
      save_checkpoints_steps: steps between checkpoints.
      keep_checkpoint_max: checkpoints kept.
      random_seed: decides initial weights, dropout and the order of the data.
      run_flags: text of a flagfile that repeats the run; kept in the model directory.
    """

    output_dir: str
    train_batch_size: int
    iterations_per_loop: int = 1000
    save_checkpoints_steps: int = 5000
    keep_checkpoint_max: int = 5
    random_seed: int = 12345
    run_flags: str = ""

    def __post_init__(self) -> None:
        for name in (
            "train_batch_size",
            "iterations_per_loop",
            "save_checkpoints_steps",
            "keep_checkpoint_max",
        ):
            if getattr(self, name) < 1:
                raise UserError("must be at least 1", f"--{name}={getattr(self, name)}", "raise it")
        if not -(1 << 31) <= self.random_seed < 1 << 31:
            raise UserError(
                "does not fit 32 bits", f"--random_seed={self.random_seed}", "choose a smaller one"
            )


class Trainer:
    """Trains a task until its last step, from the newest checkpoint in the output directory.

    Args:
      task: its model must have been created under strategy.scope().
      config: how the run proceeds.
      optimization: how weights are updated.
      strategy: where it runs.

    Raises:
      UserError: the batch cannot be divided among the replicas.
    """

    def __init__(
        self,
        task: Task,
        config: TrainerConfig,
        optimization: OptimizationConfig,
        strategy: tf.distribute.Strategy,
    ):
        replicas = strategy.num_replicas_in_sync
        if config.train_batch_size % replicas:
            raise UserError(
                f"cannot be divided among {replicas} replicas",
                f"--train_batch_size={config.train_batch_size}",
                f"choose a multiple of {replicas}",
            )
        self._task = task
        self.config = config
        self._optimization = optimization
        self._strategy = strategy
        with strategy.scope():
            self.optimizer = create_optimizer(optimization)
            self._variables = task.model.trainable_variables
            # Slots exist before a checkpoint is restored, so that a missing one is an error.
            self.optimizer._create_all_weights(self._variables)
        self.checkpoint = RunCheckpoint(
            config.output_dir, task.model, self.optimizer, config.keep_checkpoint_max
        )
        self._names = (*task.loss_names, *task.metric_names, "gradient_norm")
        self._train_loop = tf.function(self._steps)

    def restore(self) -> bool:
        """Goes to the newest checkpoint in the output directory, if there is one.

        Raises:
          UserError: it does not fit the model.
        """
        return self.checkpoint.restore_latest()

    def train(self, dataset_fn: DatasetFunction) -> int:
        """Runs all steps that are left, from the weights as they are; see restore().

        Args:
          dataset_fn: makes the input; see DatasetFunction.

        Returns:
          The final step.

        Raises:
          RunError: a loss or gradient is not finite; the last good checkpoint is kept.
        """
        config, last = self.config, self._optimization.num_train_steps
        step = self.checkpoint.step
        if step >= last:
            logging.info("already at step %d of %d: nothing to train", step, last)
            return step
        self._log_start(step)
        iterator = training_iterator(
            self._strategy,
            dataset_fn,
            config.train_batch_size,
            int(self.checkpoint.input_position.numpy()),
        )
        reporter = Reporter(config.output_dir, last, step, config.train_batch_size)
        try:
            while step < last:
                until_save = config.save_checkpoints_steps - step % config.save_checkpoints_steps
                count = min(config.iterations_per_loop, until_save, last - step)
                metrics = self._run_loop(iterator, count, step)
                step += count
                metrics["learning_rate"] = float(self.optimizer.learning_rate(step - 1))
                reporter.train(step, metrics)
                if step == last or step % config.save_checkpoints_steps == 0:
                    self.checkpoint.save(input_position=step)
        finally:
            reporter.close()
        return step

    def _log_start(self, step: int) -> None:
        excluded = [v.name for v in self._variables if self.optimizer.is_excluded(v.name)]
        parameters = sum(math.prod(v.shape) for v in self._variables)
        logging.info(
            "training %s parameters on %d replica(s) of %s from step %d; %s, rate %g, warm-up %d, "
            "decay %g (%d of %d variables excluded), clip %g, dropout %g",
            f"{parameters:,}",
            self._strategy.num_replicas_in_sync,
            type(self._strategy).__name__,
            step,
            self._optimization.optimizer,
            self._optimization.learning_rate,
            self._optimization.num_warmup_steps,
            self._optimization.weight_decay_rate,
            len(excluded),
            len(self._variables),
            self._optimization.clip_norm,
            self._task.model.config.hidden_dropout_prob,
        )

    def _run_loop(self, iterator: Iterator[Batch], count: int, step: int) -> dict[str, float]:
        sums = self._train_loop(iterator, tf.constant(count)).numpy()
        metrics = ratio_values(self._names, sums)
        bad = [name for name, value in metrics.items() if not math.isfinite(value)]
        if bad:
            raise RunError(
                f"{', '.join(bad)} not finite: between step {step} and {step + count} in "
                f"{self.config.output_dir}: lower --learning_rate or raise --num_warmup_steps; "
                "the last checkpoint is kept"
            )
        return metrics

    def _steps(self, iterator: Iterator[Batch], count: tf.Tensor) -> tf.Tensor:
        """Runs `count` steps on the devices; float32 [names, 2], summed totals and weights."""
        sums = tf.zeros([len(self._names), 2])
        for _ in tf.range(count):
            per_replica = self._strategy.run(self._replica_step, args=(next(iterator),))
            # All replicas hold the same sums.
            sums += self._strategy.experimental_local_results(per_replica)[0]
        return sums

    # AutoGraph has nothing to do in a model, and takes seconds to find that out.
    @tf.autograph.experimental.do_not_convert
    def _replica_step(self, batch: Batch) -> tf.Tensor:
        """One replica's part of an update."""
        replica = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            outputs = self._task.model(batch, training=True, dropout_seed=self._dropout_seed())
            losses = self._task.losses(batch, outputs)
            # Global weights, so that the update does not depend on how masks are spread.
            weights = [losses[name].weight for name in self._task.loss_names]
            weights = replica.all_reduce(tf.distribute.ReduceOp.SUM, weights)
            loss = tf.add_n(
                [
                    losses[name].total / (weight + losses[name].epsilon)
                    for name, weight in zip(self._task.loss_names, weights, strict=True)
                ]
            )
        gradients = tape.gradient(loss, self._variables)
        # Dense, since the norm of an embedding look-up's unsummed slices is not the gradient's.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        gradients = replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        gradients, norm = tf.clip_by_global_norm(gradients, self._optimization.clip_norm)
        self.optimizer.apply_gradients(
            zip(gradients, self._variables, strict=True),
            experimental_aggregate_gradients=False,
        )
        ratios = {**losses, **self._task.metrics(batch, outputs)}
        sums = stack_ratios([ratios[name] for name in self._names[:-1]])
        sums = replica.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        return tf.concat([sums, [[norm, 1.0]]], axis=0)

    def _dropout_seed(self) -> tf.Tensor:
        """int32 [2], another for each step and replica."""
        fold_in = tf.random.experimental.stateless_fold_in
        seed = tf.constant([self.config.random_seed, 0], tf.int32)
        seed = fold_in(seed, tf.cast(self.optimizer.iterations, tf.int32))
        replica_id = tf.distribute.get_replica_context().replica_id_in_sync_group
        return fold_in(seed, tf.cast(replica_id, tf.int32))
