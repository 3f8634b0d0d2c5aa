"""Reads pretraining records: checks them, and makes the batches of training and evaluation."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf import files
from albert_tf.data import record_schema
from albert_tf.errors import UserError

SHUFFLE_BUFFER = 10_000
"""Records held for shuffling, on top of data preparation's shuffle of the whole corpus."""

PARSED_AT_ONCE = 256
"""Records that an evaluation parses together."""

MANIFEST_KEYS = {"settings", "vocabulary", "input", "shards"}
GZIP_MAGIC = b"\x1f\x8b"


@dataclasses.dataclass(frozen=True)
class RecordFiles:
    """Record shards that agree with each other.

    Attributes:
      files: the shards, sorted.
      max_seq_length: tokens a record.
      max_predictions_per_seq: prediction slots a record.
      compression: "" or "GZIP".
      manifests: what the data directories say of themselves, by path; empty for records of
        the official code, which have no manifest.
    """

    files: tuple[str, ...]
    max_seq_length: int
    max_predictions_per_seq: int
    compression: str
    manifests: dict[str, dict]

    @property
    def directory(self) -> str:
        """Where the first shard lies; a data directory holds its vocabulary too."""
        return os.path.dirname(self.files[0]) or "."

    def vocabularies(self) -> dict[str, str]:
        """SHA-256 of the vocabulary by manifest, where there is one."""
        return {path: m["vocabulary"]["sha256"] for path, m in self.manifests.items()}

    def fingerprint(self) -> str:
        """Tells records of other text or settings apart; "" without manifests."""
        told = [(m["settings"], m["input"]) for m in self.manifests.values()]
        contents = json.dumps(told, sort_keys=True) if told else ""
        return contents and hashlib.sha256(contents.encode()).hexdigest()


def inspect_files(
    paths: Sequence[str],
    flag: str,
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
) -> RecordFiles:
    """Reads the first record of every shard and the manifests beside them.

    Args:
      paths: shards, at least one.
      flag: where the paths came from, for messages.
      max_seq_length: what the user asked for, if anything.
      max_predictions_per_seq: likewise.

    Raises:
      UserError: a shard is empty, damaged, cut short, or of other lengths than asked for or
        than the first shard.
    """
    manifests = _read_manifests(paths, flag)
    expected = None
    for path in paths:
        layout = _layout(path, flag)
        expected = expected or (layout, path)
        if layout != expected[0]:
            raise UserError(
                "shards differ",
                f"{flag}={path}",
                f"it holds {_words(layout)}, but {expected[1]} holds {_words(expected[0])}",
            )
    (seq_length, predictions, compression), path = expected
    for name, asked, found in (
        ("max_seq_length", max_seq_length, seq_length),
        ("max_predictions_per_seq", max_predictions_per_seq, predictions),
    ):
        if asked and asked != found:
            raise UserError(
                f"records hold {seq_length} tokens and {predictions} predictions",
                path,
                f"--{name}={asked} does not fit them; drop the flag or prepare the data anew",
            )
    return RecordFiles(tuple(paths), seq_length, predictions, compression, manifests)


def _words(layout: tuple[int, int, str]) -> str:
    return f"{layout[0]} tokens and {layout[1]} predictions" + (", gzip" if layout[2] else "")


def _read_manifests(paths: Sequence[str], flag: str) -> dict[str, dict]:
    manifests = {}
    for directory in sorted({os.path.dirname(path) for path in paths}):
        path = os.path.join(directory, record_schema.MANIFEST)
        if not tf.io.gfile.exists(path):
            continue
        manifest = files.read_json(path, flag)
        if not isinstance(manifest, dict) or not manifest.keys() >= MANIFEST_KEYS:
            raise UserError("is no manifest of ours", path, "remove it, or prepare the data anew")
        manifests[path] = manifest
        sizes = {shard["file"]: shard["bytes"] for shard in manifest["shards"]}
        for shard in paths:
            size = sizes.get(os.path.basename(shard))
            if os.path.dirname(shard) == directory and size is not None:
                found = tf.io.gfile.stat(shard).length
                if found != size:
                    raise UserError(
                        f"has {found} bytes, the manifest says {size}",
                        f"{flag}={shard}",
                        "the shard is damaged; prepare the data anew",
                    )
    return manifests


def _layout(path: str, flag: str) -> tuple[int, int, str]:
    try:
        with tf.io.gfile.GFile(path, "rb") as handle:
            compression = "GZIP" if handle.read(2) == GZIP_MAGIC else ""
        for record in tf.data.TFRecordDataset(path, compression).take(1):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            names = ("input_ids", "masked_lm_ids")
            if missing := [name for name in names if name not in features]:
                raise UserError(
                    f"holds no pretraining records ({', '.join(missing)} missing)",
                    f"{flag}={path}",
                    "make them with create_pretraining_data",
                )
            return (
                len(features["input_ids"].int64_list.value),
                len(features["masked_lm_positions"].int64_list.value),
                compression,
            )
    except (tf.errors.OpError, ValueError, DecodeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            "is not a readable TFRecord file", f"{flag}={path}", f"prepare the data anew ({reason})"
        ) from error
    raise UserError("holds no record", f"{flag}={path}", "prepare the data anew")


def _parse(records: RecordFiles):
    spec = record_schema.parsing_spec(records.max_seq_length, records.max_predictions_per_seq)

    def parse(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        features = tf.io.parse_example(serialized, spec)
        return {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in features.items()
        }

    return parse


def training_batches(
    records: RecordFiles, batch_size: int, skip_batches: int, seed: int
) -> tf.data.Dataset:
    """Shuffled batches without end; the same seed gives the same batches.

    Args:
      records: from inspect_files().
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
    return batches.map(_parse(records)).prefetch(tf.data.AUTOTUNE)


def evaluation_examples(records: RecordFiles) -> tf.data.Dataset:
    """Every record once, in order, one example an element."""
    serialized = tf.data.TFRecordDataset(list(records.files), records.compression)
    # Many records are parsed almost as fast as one.
    return serialized.batch(PARSED_AT_ONCE).map(_parse(records)).unbatch()


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
