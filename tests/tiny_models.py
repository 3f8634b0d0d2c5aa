"""Small configs, batches and record files that many tests share."""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.data.record_schema import to_example
from albert_tf.tokenization import CLS_ID, MASK_ID, SEP_ID
from tests.tiny_vocabulary import VOCAB_SIZE

SEQ_LENGTH = 16
PREDICTIONS = 3


def tiny_config(**overrides) -> AlbertConfig:
    """A config that runs in milliseconds."""
    sizes = {
        "vocab_size": VOCAB_SIZE,
        "embedding_size": 16,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 32,
    }
    return AlbertConfig(**{**sizes, **overrides})


def pretraining_arrays(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Features of `rows` made-up records; rows have 1 to PREDICTIONS predictions."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(5, VOCAB_SIZE, [rows, SEQ_LENGTH])
    ids[:, 0], ids[:, 7], ids[:, -1] = CLS_ID, SEP_ID, SEP_ID
    positions = np.tile([2, 5, 9], [rows, 1])
    labels = np.take_along_axis(ids, positions, axis=1)
    np.put_along_axis(ids, positions, MASK_ID, axis=1)
    weights = (np.arange(PREDICTIONS) < rng.integers(1, PREDICTIONS + 1, [rows, 1])).astype(float)
    segments = np.tile(np.arange(SEQ_LENGTH) > 7, [rows, 1]).astype(int)
    return {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": segments,
        "token_boundary": np.ones_like(ids),
        "masked_lm_positions": positions,
        "masked_lm_ids": labels,
        "masked_lm_weights": weights.astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, [rows, 1]),
    }


def pretraining_batch(rows: int, seed: int = 0) -> dict[str, tf.Tensor]:
    """The same as a batch."""
    arrays = pretraining_arrays(rows, seed)
    return {
        name: tf.constant(values, tf.float32 if values.dtype == np.float32 else tf.int32)
        for name, values in arrays.items()
    }


def write_records(directory: str, rows: int, shards: int = 2, seed: int = 0) -> list[str]:
    """Writes made-up records; returns the shards."""
    arrays = pretraining_arrays(rows, seed)
    paths = []
    for shard in range(shards):
        path = os.path.join(directory, f"data-{shard:05d}-of-{shards:05d}.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for row in range(shard, rows, shards):
                example = to_example({name: values[row] for name, values in arrays.items()})
                writer.write(example.SerializeToString())
        paths.append(path)
    return paths
