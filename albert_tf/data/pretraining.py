"""Pretraining records as batches of training and evaluation."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from albert_tf.data import record_schema
from albert_tf.data.record_files import RecordFiles
from albert_tf.errors import UserError

SHUFFLE_BUFFER = 10_000
"""Records held for shuffling, on top of data preparation's shuffle of the whole corpus."""

SEGMENTS = SENTENCE_ORDERS = 2
"""A and B; in order and swapped."""

PARSED_AT_ONCE = 256
"""Records that an evaluation parses together."""


def _parse(records: RecordFiles, vocab_size: int) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
    spec = record_schema.parsing_spec(records.max_seq_length, records.max_predictions_per_seq)

    def parse(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        features = tf.io.parse_example(serialized, spec)
        limits = {
            "input_ids": vocab_size,
            "masked_lm_ids": vocab_size,
            "masked_lm_positions": records.max_seq_length,
            "segment_ids": SEGMENTS,
            "next_sentence_labels": SENTENCE_ORDERS,
        }
        # An accelerator would look up zeros for such an id, and say nothing.
        checks = [
            tf.debugging.Assert(
                tf.reduce_all((features[name] >= 0) & (features[name] < limit)),
                [f"a record holds {name} outside 0 to {limit - 1}"],
            )
            for name, limit in limits.items()
        ]
        with tf.control_dependencies(checks):
            return {
                name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
                for name, value in features.items()
            }

    return parse


def training_batches(
    records: RecordFiles, vocab_size: int, batch_size: int, skip_batches: int, seed: int
) -> tf.data.Dataset:
    """Shuffled batches without end; the same seed gives the same batches.

    Args:
      records: from inspect_files().
      vocab_size: of the model; a larger id is an error.
      batch_size: of a replica.
      skip_batches: batches that earlier parts of the run have consumed.
      seed: decides the order.

    Returns:
      Batches of int32 and float32 features, [batch_size, ...].
    """
    paths = tf.data.Dataset.from_tensor_slices(list(records.files))
    paths = paths.shuffle(len(records.files), seed=seed, reshuffle_each_iteration=True).repeat()
    serialized = paths.interleave(
        lambda path: tf.data.TFRecordDataset(path, records.compression),
        cycle_length=min(4, len(records.files)),
    )
    serialized = serialized.shuffle(SHUFFLE_BUFFER, seed=seed)
    # Skipping unparsed records is quick.
    batches = serialized.skip(skip_batches * batch_size).batch(batch_size, drop_remainder=True)
    return batches.map(_parse(records, vocab_size)).prefetch(tf.data.AUTOTUNE)


def evaluation_examples(records: RecordFiles, vocab_size: int) -> tf.data.Dataset:
    """Every record once, in order, one example an element; a larger id is an error."""
    serialized = tf.data.TFRecordDataset(list(records.files), records.compression)
    # Many records are parsed almost as fast as one.
    return serialized.batch(PARSED_AT_ONCE).map(_parse(records, vocab_size)).unbatch()


def label_statistics(examples: tf.data.Dataset, vocab_size: int) -> dict[str, float]:
    """What guessing would reach: the share of the commonest masked piece and sentence label.

    Args:
      examples: finite, from evaluation_examples().
      vocab_size: above every piece's id.

    Returns:
      records, masked_lm_baseline and sentence_order_baseline.
    """
    counts, swapped, total = np.zeros(vocab_size), 0, 0
    for batch in examples.batch(1024).as_numpy_iterator():
        masked = batch["masked_lm_ids"][batch[record_schema.PREDICTION_WEIGHTS] > 0]
        counts += np.bincount(masked, minlength=vocab_size)
        labels = batch[record_schema.SENTENCE_LABEL]
        swapped, total = swapped + int(labels.sum()), total + len(labels)
    return {
        "records": total,
        "masked_lm_baseline": float(counts.max() / max(counts.sum(), 1)),
        "sentence_order_baseline": max(swapped, total - swapped) / total,
    }


@contextlib.contextmanager
def faults_named(records: RecordFiles, vocab_size: int) -> Iterator[None]:
    """Turns TensorFlow's error for a damaged or foreign record into one that names its shard.

    Only the first record of each shard is seen before training; looking at all of them costs as
    much as an epoch of input, and is done here when one has failed.

    Raises:
      UserError: training or evaluation within the context met such a record.
    """
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError):
        for path in records.files:
            shard = dataclasses.replace(records, files=(path,))
            try:
                for _ in evaluation_examples(shard, vocab_size).batch(PARSED_AT_ONCE):
                    pass
            except tf.errors.OpError as error:
                raise UserError(
                    "holds a damaged or foreign record",
                    path,
                    f"prepare the data anew ({_reason(error)})",
                ) from error
        raise


def _reason(error: tf.errors.OpError) -> str:
    return error.message.split(" [[{{node")[0].splitlines()[0]
