"""Evaluation and prediction over finite datasets: every row exactly once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from albert_tf.models import AlbertModel
from albert_tf.tasks.task import EXAMPLE_WEIGHTS, Batch, Task, ratio_values, stack_ratios
from albert_tf.training.input import untuned

EVALUATION_PREFETCH = 4
"""Batches made ahead."""


def evaluate(
    task: Task, strategy: tf.distribute.Strategy, dataset: tf.data.Dataset
) -> dict[str, float]:
    """Losses and metrics of a task over a dataset.

    Args:
      task: with a trained model.
      strategy: where it runs.
      dataset: finite, batches of one static shape; see pad_batches().

    Returns:
      A value for each loss and metric name.
    """
    names = (*task.loss_names, *task.metric_names)

    @tf.function(autograph=False)
    def step(batch: Batch) -> tf.Tensor:
        outputs = task.model(batch, training=False)
        ratios = {**task.losses(batch, outputs), **task.metrics(batch, outputs)}
        return stack_ratios([ratios[name] for name in names])

    sums = np.zeros([len(names), 2])
    for results in _per_replica(strategy, step, dataset):
        sums += sum(result.numpy().astype(np.float64) for result in results)
    return ratio_values(names, sums)


def predict_logits(
    model: AlbertModel, strategy: tf.distribute.Strategy, dataset: tf.data.Dataset
) -> np.ndarray:
    """The model's logits for every row of a padded dataset, float32 [rows, labels], in order."""

    @tf.function(autograph=False)
    def step(batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        return model(batch, training=False)["logits"], batch[EXAMPLE_WEIGHTS]

    rows = []
    for results in _per_replica(strategy, step, dataset):
        rows.extend(logits.numpy()[weights.numpy() > 0] for logits, weights in results)
    return np.concatenate(rows)


def _per_replica(
    strategy: tf.distribute.Strategy,
    step: tf.types.experimental.GenericFunction,
    dataset: tf.data.Dataset,
) -> Iterator[tuple]:
    """Runs `step` on each batch, a replica each; yields the replicas' results in input order."""
    iterator = iter(dataset)
    replicas = strategy.num_replicas_in_sync
    while batches := [batch for _, batch in zip(range(replicas), iterator, strict=False)]:
        if replicas == 1:
            yield (strategy.run(step, args=(batches[0],)),)
            continue
        nothing = tf.nest.map_structure(tf.zeros_like, batches[0])  # all weights are 0
        batches += [nothing] * (replicas - len(batches))
        values = strategy.experimental_distribute_values_from_function(
            lambda context, batches=batches: batches[context.replica_id_in_sync_group]
        )
        results = strategy.run(step, args=(values,))
        if isinstance(results, tuple):
            yield tuple(zip(*map(strategy.experimental_local_results, results), strict=True))
        else:
            yield strategy.experimental_local_results(results)


def pad_batches(dataset: tf.data.Dataset, batch_size: int) -> tf.data.Dataset:
    """Batches of static shape from a finite dataset of examples.

    The last batch is filled up with zeros; EXAMPLE_WEIGHTS, float32 [batch], is 0 there.
    """

    def weigh(example: Batch) -> Batch:
        return {**example, EXAMPLE_WEIGHTS: tf.constant(1.0)}

    def fill(batch: Batch) -> Batch:
        def fill_one(values: tf.Tensor) -> tf.Tensor:
            missing = batch_size - tf.shape(values)[0]
            paddings = [[0, missing]] + [[0, 0]] * (values.shape.rank - 1)
            return tf.ensure_shape(tf.pad(values, paddings), [batch_size, *values.shape[1:]])

        return tf.nest.map_structure(fill_one, batch)

    padded = dataset.map(weigh).batch(batch_size).map(fill)
    return untuned(padded.prefetch(EVALUATION_PREFETCH))
