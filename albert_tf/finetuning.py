"""A whole fine-tuning run: labelled texts in, trained and evaluated model directory out."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging
from scipy.special import softmax

from albert_tf import files, model_directory
from albert_tf.checkpoint_files import checkpoint_prefix, directory_of, fingerprint
from albert_tf.config import AlbertConfig
from albert_tf.data import classification, tabular
from albert_tf.data.classification import TokenizedTexts
from albert_tf.data.packing import TRUNCATIONS
from albert_tf.data.tabular import Columns, LabelledText
from albert_tf.errors import UserError
from albert_tf.optimization import OptimizationConfig
from albert_tf.tasks.sequence_classification import SequenceClassificationTask
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.training.evaluation import pad_batches, predict_logits
from albert_tf.training.reporting import report_evaluation
from albert_tf.training.strategy import StrategyConfig, create_strategy
from albert_tf.training.trainer import Trainer, TrainerConfig
from albert_tf.weights import prepare_weights


@dataclasses.dataclass(frozen=True)
class FinetuningRun:
    """Everything a run needs.

    Attributes:
      data_dir: holds train.* and dev.* or dev_<name>.*, see tabular.find_split().
      columns: of those files.
      model: sizes.
      tokenizer: the vocabulary of the model.
      init_checkpoint: weights of the encoder, or None for random ones.
      reinitialize: parts of names of variables that start from random weights all the same.
      max_seq_length: longest input, special tokens included.
      truncation: what a longer single text keeps, one of packing.TRUNCATIONS.
      length_buckets: shorter lengths that batches may be padded to.
      classifier_dropout: dropout of the pooled output.
      num_train_epochs: passes over the data, if the optimization leaves the number of steps open.
      do_train, do_eval, eval_batch_size, compute_dtype, trainer, strategy: how and where.
      optimization: how weights are updated.
    """

    data_dir: str
    columns: Columns
    model: AlbertConfig
    tokenizer: AlbertTokenizer
    init_checkpoint: str | None
    reinitialize: tuple[str, ...]
    max_seq_length: int
    truncation: str
    length_buckets: tuple[int, ...]
    classifier_dropout: float
    num_train_epochs: float
    do_train: bool
    do_eval: bool
    eval_batch_size: int
    compute_dtype: str
    trainer: TrainerConfig
    strategy: StrategyConfig
    optimization: OptimizationConfig

    def __post_init__(self) -> None:
        limit = self.model.max_position_embeddings
        if not 4 <= self.max_seq_length <= limit:
            raise _bad("max_seq_length", self.max_seq_length, f"choose 4 to {limit}")
        if self.truncation not in TRUNCATIONS:
            raise _bad("truncation", self.truncation, f"choose {' or '.join(TRUNCATIONS)}")
        if any(not 4 <= bound < self.max_seq_length for bound in self.length_buckets) or list(
            self.length_buckets
        ) != sorted(set(self.length_buckets)):
            raise _bad(
                "length_buckets", self.length_buckets, "give ascending lengths below max_seq_length"
            )
        if self.length_buckets and self.strategy.uses_tpu:
            raise _bad("length_buckets", self.length_buckets, "a TPU needs one length; drop it")
        if not 0 <= self.classifier_dropout < 1:
            raise _bad("classifier_dropout", self.classifier_dropout, "choose 0 up to 1")
        if self.reinitialize and not self.init_checkpoint:
            names = ",".join(self.reinitialize)
            raise _bad("reinitialize", names, "everything is random without --init_checkpoint")
        if not 0 < self.num_train_epochs < math.inf:
            raise _bad("num_train_epochs", self.num_train_epochs, "choose above 0")
        if not self.do_train and not self.do_eval:
            raise UserError("nothing to do", "--nodo_train, --nodo_eval", "drop one of them")
        if self.eval_batch_size < 1:
            raise _bad("eval_batch_size", self.eval_batch_size, "choose at least 1")


def _bad(name: str, value: object, remedy: str) -> UserError:
    return UserError("unusable value", f"--{name}={value}", remedy)


def finetune(run: FinetuningRun) -> None:
    """Trains and evaluates; the same call after an interruption goes on where it stopped.

    Raises:
      UserError: the data, checkpoint or output directory is unusable.
      RunError: training diverged.
    """
    if run.init_checkpoint:
        checkpoint_prefix(run.init_checkpoint, "--init_checkpoint")
        directory = directory_of(run.init_checkpoint)
        model_directory.check_same_vocabulary(directory, run.tokenizer, "--init_checkpoint")
    # Everything is read and checked before anything is written or trained.
    data = _read_data(run)
    epochs = run.num_train_epochs * len(data.train) / run.trainer.train_batch_size
    optimization = run.optimization.with_steps(math.ceil(epochs))
    description = _describe(run, optimization, data)
    model_directory.check(run.trainer.output_dir, description)
    strategy = create_strategy(run.strategy)
    with strategy.scope():
        task = SequenceClassificationTask(
            run.model,
            len(data.labels),
            run.compute_dtype,
            run.trainer.random_seed,
            run.classifier_dropout,
        )
    trainer = Trainer(task, run.trainer, optimization, strategy)
    step = prepare_weights(
        trainer, task.model.encoder, run.init_checkpoint, run.do_train, run.reinitialize
    )
    # Only now, when all that can be wrong has been found, is anything written.
    model_directory.claim(run.trainer.output_dir, description)
    if run.do_train:

        def batches(batch_size: int, skip_batches: int) -> tf.data.Dataset:
            return classification.training_batches(
                data.train, run.length_buckets, batch_size, skip_batches, run.trainer.random_seed
            )

        step = trainer.train(batches)
    results: dict[str, float] = {}
    with strategy.scope():
        model = task.model.in_float32()  # as it will be served
    for path, (rows, texts) in data.dev.items():
        examples = classification.evaluation_examples(texts, run.length_buckets)
        logits = predict_logits(model, strategy, pad_batches(examples, run.eval_batch_size))
        name = _dev_name(path)
        results |= {name + key: value for key, value in _metrics(logits, texts.labels).items()}
        _write_predictions(run.trainer.output_dir, path, rows, data.labels, logits)
    if results:
        report_evaluation(run.trainer.output_dir, step, results)


class _Data(NamedTuple):
    """What a run reads.

    Attributes:
      labels: sorted.
      train_files: SHA-256 by name.
      train: texts.
      dev: rows and texts by file.
    """

    labels: list[str]
    train_files: dict[str, str]
    train: TokenizedTexts
    dev: dict[str, tuple[Sequence[LabelledText], TokenizedTexts]]


def _read_data(run: FinetuningRun) -> _Data:
    train_files = tabular.find_split(run.data_dir, "train")
    train_rows = [row for path in train_files for row in tabular.read_rows(path, run.columns)]
    labels = _sorted_labels({row.label for row in train_rows}, train_files)
    dev_files = tabular.find_split(run.data_dir, "dev") if run.do_eval else []
    dev_rows = {path: tabular.read_rows(path, run.columns) for path in dev_files}

    def tokenized(rows: Sequence[LabelledText], source: str) -> TokenizedTexts:
        return classification.tokenize_rows(
            rows, labels, run.tokenizer, run.max_seq_length, run.truncation, source
        )

    train_texts = tokenized(train_rows, train_files[0])
    _log_data(train_texts, labels)
    dev = {path: (rows, tokenized(rows, path)) for path, rows in dev_rows.items()}
    hashes = {os.path.basename(path): files.sha256(path) for path in train_files}
    return _Data(labels, hashes, train_texts, dev)


def _sorted_labels(labels: set[str], paths: Sequence[str]) -> list[str]:
    if len(labels) < 2:
        raise UserError(
            f"all rows have the label {min(labels)!r}",
            ",".join(paths),
            "classification needs two or more",
        )
    return sorted(labels)


def _log_data(texts: TokenizedTexts, labels: Sequence[str]) -> None:
    logging.info(
        "%d training texts, %d labels (%s), %.1f%% cut to %d tokens",
        len(texts),
        len(labels),
        ", ".join(labels[:10]),
        100 * texts.truncated / len(texts),
        texts.max_seq_length,
    )


def _describe(
    run: FinetuningRun, optimization: OptimizationConfig, data: _Data
) -> model_directory.Description:
    identity = {
        "optimization": dataclasses.asdict(optimization),
        "train_batch_size": run.trainer.train_batch_size,
        "random_seed": run.trainer.random_seed,
        "compute_dtype": run.compute_dtype,
        "classifier_dropout": run.classifier_dropout,
        "length_buckets": list(run.length_buckets),
        "init_checkpoint": run.init_checkpoint
        and fingerprint(run.init_checkpoint, "--init_checkpoint"),
        "reinitialize": list(run.reinitialize),
        "columns": dataclasses.asdict(run.columns),
        "train_files": data.train_files,
    }
    task = {
        "task": "sequence_classification",
        "labels": data.labels,
        "max_seq_length": run.max_seq_length,
        "truncation": run.truncation,
        "pair": run.columns.text_b is not None,
    }
    return model_directory.Description(
        run.model, run.tokenizer, task, identity, run.trainer.run_flags
    )


def _dev_name(path: str) -> str:
    """dev_matched.tsv -> "matched_", dev.tsv -> ""."""
    stem = os.path.splitext(os.path.basename(path))[0]
    return stem.removeprefix("dev").removeprefix("_") + "_" if "_" in stem else ""


def _metrics(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    correct = int((logits.argmax(-1) == labels).sum())
    commonest = Counter(labels.tolist()).most_common(1)[0][1]
    return {
        "accuracy": correct / len(labels),
        "majority_baseline": commonest / len(labels),
        "rows": len(labels),
    }


def _write_predictions(
    output_dir: str,
    path: str,
    rows: Sequence[LabelledText],
    labels: Sequence[str],
    logits: np.ndarray,
) -> None:
    """predictions_<dev file>.jsonl: label, prediction and probabilities of each row, in order."""
    stem = os.path.splitext(os.path.basename(path))[0]
    lines = []
    for row, probabilities in zip(rows, softmax(logits.astype(np.float64), axis=-1), strict=True):
        lines.append(
            json.dumps(
                {
                    "label": row.label,
                    "prediction": labels[int(probabilities.argmax())],
                    "probabilities": dict(
                        zip(labels, (round(float(p), 7) for p in probabilities), strict=True)
                    ),
                }
            )
        )
    files.write_text(os.path.join(output_dir, f"predictions_{stem}.jsonl"), "\n".join(lines) + "\n")
