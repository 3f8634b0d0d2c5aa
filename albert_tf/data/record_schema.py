"""The pretraining record: one statement of its features for writer, reader and tests.

Names and types are those of the official create_pretraining_data.py, so records of either
project train in the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

TOKEN_FEATURES = ("input_ids", "input_mask", "segment_ids", "token_boundary")
"""int64 [max_seq_length] each. token_boundary is 1 where a piece starts a word."""

PREDICTION_FEATURES = ("masked_lm_positions", "masked_lm_ids")
"""int64 [max_predictions_per_seq] each, padded with 0."""

PREDICTION_WEIGHTS = "masked_lm_weights"
"""float32 [max_predictions_per_seq]: 1 for a prediction, 0 for padding."""

SENTENCE_LABEL = "next_sentence_labels"
"""int64 [1]: 0 if the segments are in order, 1 if swapped."""

MANIFEST = "manifest.json"
"""Every data directory describes itself in this file."""

_GZIP_MAGIC = b"\x1f\x8b"


def compression_of(path: str) -> str:
    """The compression of a shard, "" or "GZIP", as tf.data.TFRecordDataset wants it."""
    with tf.io.gfile.GFile(path, "rb") as handle:
        return "GZIP" if handle.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC else ""


def parsing_spec(
    max_seq_length: int, max_predictions_per_seq: int
) -> dict[str, tf.io.FixedLenFeature]:
    """What tf.io.parse_example needs to read a record."""
    spec = {name: tf.io.FixedLenFeature([max_seq_length], tf.int64) for name in TOKEN_FEATURES}
    for name in PREDICTION_FEATURES:
        spec[name] = tf.io.FixedLenFeature([max_predictions_per_seq], tf.int64)
    spec[PREDICTION_WEIGHTS] = tf.io.FixedLenFeature([max_predictions_per_seq], tf.float32)
    spec[SENTENCE_LABEL] = tf.io.FixedLenFeature([1], tf.int64)
    return spec


def to_example(features: Mapping[str, np.ndarray]) -> tf.train.Example:
    """Turns arrays named as above into a tf.train.Example (floats as float, the rest int64)."""
    example = tf.train.Example()
    for name, values in features.items():
        if name == PREDICTION_WEIGHTS:
            example.features.feature[name].float_list.value.extend(values)
        else:
            example.features.feature[name].int64_list.value.extend(values)
    return example
