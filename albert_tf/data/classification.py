"""Batches of labelled texts: tokenised once, padded to static length buckets."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.data.packing import pack
from albert_tf.data.tabular import LabelledText
from albert_tf.errors import UserError
from albert_tf.tokenization import AlbertTokenizer

LABEL = "label_ids"
"""int32 [batch]: the class of each text."""

_MAX_NAMED_LABELS = 10


@dataclasses.dataclass(frozen=True)
class TokenizedTexts:
    """Texts as the model takes them, without padding.

    Attributes:
      input_ids: [CLS] A [SEP] (B [SEP]) of each text, joined, int32 [tokens].
      segment_ids: 0 for A, 1 for B, int32 [tokens].
      row_lengths: tokens of each text, int64 [texts].
      labels: int32 [texts].
      max_seq_length: what they were cut to.
      truncated: how many texts were longer.
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    row_lengths: np.ndarray
    labels: np.ndarray
    max_seq_length: int
    truncated: int

    def __len__(self) -> int:
        return len(self.labels)


def tokenize_rows(
    rows: Sequence[LabelledText],
    labels: Sequence[str],
    tokenizer: AlbertTokenizer,
    max_seq_length: int,
    truncation: str,
    source: str,
) -> TokenizedTexts:
    """Encodes, joins and cuts texts.

    Args:
      rows: labelled texts.
      labels: all labels, in the order of their ids.
      tokenizer: of the model.
      max_seq_length: longest result, special tokens included.
      truncation: see packing.pack().
      source: the file they came from, for messages.

    Raises:
      UserError: a row has a label that is not among `labels`.
    """
    label_ids = {label: i for i, label in enumerate(labels)}
    for row in rows:
        if row.label not in label_ids:
            known = ", ".join(labels[:_MAX_NAMED_LABELS])
            rest = len(labels) - _MAX_NAMED_LABELS
            raise UserError(
                f"unknown label {row.label!r}",
                f"{source}:{row.line}",
                f"the training file has {known}" + (f" and {rest} more" if rest > 0 else ""),
            )
    threads = os.cpu_count() or 1
    first = tokenizer.encode_batch([row.text for row in rows], threads)
    second: Sequence[list[int] | None] = [None] * len(rows)
    if rows[0].text_b is not None:
        second = tokenizer.encode_batch([row.text_b for row in rows], threads)
    ids, segments, lengths, truncated = [], [], [], 0
    for ids_a, ids_b in zip(first, second, strict=True):
        packed_ids, mask, packed_segments = pack(
            ids_a, ids_b, max_seq_length=max_seq_length, truncation=truncation
        )
        length = int(mask.sum())
        ids.append(packed_ids[:length])
        segments.append(packed_segments[:length])
        lengths.append(length)
        specials = 3 if ids_b else 2
        truncated += len(ids_a) + len(ids_b or ()) + specials > max_seq_length
    return TokenizedTexts(
        np.concatenate(ids),
        np.concatenate(segments),
        np.array(lengths),
        np.array([label_ids[row.label] for row in rows], np.int32),
        max_seq_length,
        truncated,
    )


def training_batches(
    texts: TokenizedTexts,
    length_buckets: Sequence[int],
    batch_size: int,
    skip_batches: int,
    seed: int,
) -> tf.data.Dataset:
    """Shuffled batches without end; the same seed gives the same batches.

    Args:
      texts: what to train on.
      length_buckets: lengths that batches are padded to, ascending, all below max_seq_length;
        empty pads everything to max_seq_length, which gives the static shapes a TPU needs.
      batch_size: of a replica.
      skip_batches: batches that earlier parts of the run have consumed.
      seed: decides the order.
    """
    order = tf.data.Dataset.range(len(texts)).shuffle(len(texts), seed=seed).repeat()
    bounds = [*length_buckets, texts.max_seq_length]
    batches = order.map(_example_of(texts)).bucket_by_sequence_length(
        lambda example: tf.size(example["input_ids"]),
        bucket_boundaries=[bound + 1 for bound in bounds],
        bucket_batch_sizes=[batch_size] * (len(bounds) + 1),
        pad_to_bucket_boundary=True,
        drop_remainder=True,
    )
    if not length_buckets:
        batches = batches.map(lambda batch: _with_length(batch, [batch_size, bounds[-1]]))
    return batches.skip(skip_batches).prefetch(tf.data.AUTOTUNE)


def evaluation_examples(texts: TokenizedTexts, length_buckets: Sequence[int]) -> tf.data.Dataset:
    """Every text once, in order, all padded to the shortest bucket that holds the longest."""
    bounds = [*length_buckets, texts.max_seq_length]
    length = next(bound for bound in bounds if bound >= texts.row_lengths.max())

    def pad(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        missing = length - tf.size(example["input_ids"])
        padded = {
            name: value if name == LABEL else tf.pad(value, [[0, missing]])
            for name, value in example.items()
        }
        return _with_length(padded, [length])

    return tf.data.Dataset.range(len(texts)).map(_example_of(texts)).map(pad)


def _example_of(texts: TokenizedTexts):
    ids = tf.RaggedTensor.from_row_lengths(texts.input_ids, texts.row_lengths)
    segments = tf.RaggedTensor.from_row_lengths(texts.segment_ids, texts.row_lengths)
    labels = tf.constant(texts.labels)

    def example(index: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "input_ids": ids[index],
            "input_mask": tf.ones_like(ids[index]),
            "segment_ids": segments[index],
            LABEL: labels[index],
        }

    return example


def _with_length(features: dict[str, tf.Tensor], shape: Sequence[int]) -> dict[str, tf.Tensor]:
    return {
        name: value if name == LABEL else tf.ensure_shape(value, shape)
        for name, value in features.items()
    }
