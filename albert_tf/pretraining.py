"""A whole pretraining run: records in, trained and evaluated model directory out."""

from __future__ import annotations

import dataclasses
import os

import tensorflow as tf

from albert_tf import model_directory
from albert_tf.checkpoint_files import directory_of, fingerprint
from albert_tf.config import AlbertConfig
from albert_tf.data import pretraining as records_reader
from albert_tf.data.record_files import RecordFiles
from albert_tf.errors import UserError
from albert_tf.optimization import OptimizationConfig
from albert_tf.tasks.pretraining import PretrainingTask, accuracy_interval
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.training.evaluation import evaluate, pad_batches
from albert_tf.training.reporting import report_evaluation
from albert_tf.training.strategy import StrategyConfig, create_strategy
from albert_tf.training.trainer import Trainer, TrainerConfig
from albert_tf.weights import prepare_weights


@dataclasses.dataclass(frozen=True)
class PretrainingRun:
    """Everything a run needs.

    Attributes:
      model: sizes.
      tokenizer: the vocabulary of the records.
      train: records to train on.
      eval: held-out records, or None to skip evaluation.
      do_train: whether to train, or only to evaluate what the output directory holds.
      eval_batch_size: sequences an evaluation batch.
      max_eval_steps: batches that an evaluation takes at most, from the start of the records.
      init_checkpoint: weights to start from, or None for random ones.
      compute_dtype: of matrix products.
      trainer, optimization, strategy: how it is done, and where.
    """

    model: AlbertConfig
    tokenizer: AlbertTokenizer
    train: RecordFiles
    eval: RecordFiles | None
    do_train: bool
    eval_batch_size: int
    max_eval_steps: int
    init_checkpoint: str | None
    compute_dtype: str
    trainer: TrainerConfig
    optimization: OptimizationConfig
    strategy: StrategyConfig

    def __post_init__(self) -> None:
        limit = self.model.max_position_embeddings
        for flag, records in (("--input_file", self.train), ("--eval_input_file", self.eval)):
            if records and records.max_seq_length > limit:
                raise UserError(
                    f"records hold {records.max_seq_length} tokens, the model {limit} positions",
                    flag,
                    "raise max_position_embeddings or prepare shorter records",
                )
        if not self.do_train and not self.eval:
            raise UserError(
                "nothing to do", "--nodo_train", "give --eval_input_file, or drop the flag"
            )
        for name in ("eval_batch_size", "max_eval_steps"):
            if getattr(self, name) < 1:
                raise UserError("must be at least 1", f"--{name}={getattr(self, name)}", "raise it")


def pretrain(run: PretrainingRun) -> None:
    """Trains and evaluates; the same call after an interruption goes on where it stopped.

    Raises:
      UserError: the output directory holds another run, or inputs do not fit together.
      RunError: training diverged.
    """
    output_dir = run.trainer.output_dir
    _check_vocabularies(run)
    description = _describe(run)
    model_directory.check(output_dir, description)
    strategy = create_strategy(run.strategy)
    with strategy.scope():
        task = PretrainingTask(run.model, run.compute_dtype, run.trainer.random_seed)
    trainer = Trainer(task, run.trainer, run.optimization, strategy)
    step = prepare_weights(trainer, task.model.encoder, run.init_checkpoint, run.do_train)
    # Only now, when all that can be wrong has been found, is anything written.
    model_directory.claim(output_dir, description)
    if run.do_train:

        def batches(batch_size: int, skip_batches: int) -> tf.data.Dataset:
            return records_reader.training_batches(
                run.train,
                run.model.vocab_size,
                batch_size,
                skip_batches,
                run.trainer.random_seed,
            )

        with records_reader.faults_named(run.train, run.model.vocab_size):
            step = trainer.train(batches)
    if run.eval:
        with records_reader.faults_named(run.eval, run.model.vocab_size):
            results = _evaluate(run, task, strategy)
        report_evaluation(output_dir, step, results)


def _check_vocabularies(run: PretrainingRun) -> None:
    for records in filter(None, (run.train, run.eval)):
        for path, manifest in records.manifests.items():
            if manifest["vocabulary"]["sha256"] != run.tokenizer.sha256:
                raise UserError(
                    f"was made with another vocabulary than {run.tokenizer.spm_model_file}",
                    path,
                    "prepare the data anew, or name its vocabulary",
                )
            model_directory.check_same_normalization(manifest["settings"], run.tokenizer, path)
    if run.init_checkpoint:
        directory = directory_of(run.init_checkpoint)
        model_directory.check_same_vocabulary(directory, run.tokenizer, "--init_checkpoint")


def _describe(run: PretrainingRun) -> model_directory.Description:
    identity = {
        "optimization": dataclasses.asdict(run.optimization),
        "train_batch_size": run.trainer.train_batch_size,
        "random_seed": run.trainer.random_seed,
        "compute_dtype": run.compute_dtype,
        "init_checkpoint": run.init_checkpoint
        and fingerprint(run.init_checkpoint, "--init_checkpoint"),
        "input_bytes": {
            os.path.basename(path): tf.io.gfile.stat(path).length for path in run.train.files
        },
        "records": run.train.fingerprint(),
    }
    task = {"task": "pretraining", "max_seq_length": run.train.max_seq_length}
    return model_directory.Description(
        run.model, run.tokenizer, task, identity, run.trainer.run_flags
    )


def _evaluate(
    run: PretrainingRun, task: PretrainingTask, strategy: tf.distribute.Strategy
) -> dict[str, float]:
    limit = run.max_eval_steps * run.eval_batch_size
    examples = records_reader.evaluation_examples(run.eval, run.model.vocab_size)
    examples = examples.take(limit)
    results = evaluate(task, strategy, pad_batches(examples, run.eval_batch_size))
    statistics = records_reader.label_statistics(examples, run.model.vocab_size)
    low, high = accuracy_interval(results["sentence_order_accuracy"], statistics["records"])
    return {
        **results,
        **statistics,
        "sentence_order_accuracy_low": low,
        "sentence_order_accuracy_high": high,
    }
