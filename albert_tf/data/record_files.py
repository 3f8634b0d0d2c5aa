"""Record shards as they lie on disk: found to agree with each other before a run starts."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf import files
from albert_tf.data import record_schema
from albert_tf.errors import UserError

UNFINISHED = ".unfinished"
"""A directory of this name in a data directory says that its making began and did not end."""

_MANIFEST_KEYS = {"settings", "vocabulary", "input", "shards"}

_FEATURES = (
    *record_schema.TOKEN_FEATURES,
    *record_schema.PREDICTION_FEATURES,
    record_schema.PREDICTION_WEIGHTS,
    record_schema.SENTENCE_LABEL,
)

Record = Mapping[str, np.ndarray]
"""The features of one record; record_schema states them."""


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
      UserError: a shard is empty, damaged, cut short, of a run that was not finished, or of other
        lengths than asked for or than the first shard.
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
        if asked is not None and asked != found:
            raise UserError(
                f"records hold {seq_length} tokens and {predictions} predictions",
                path,
                f"--{name}={asked} does not fit them; drop the flag or prepare the data anew",
            )
    return RecordFiles(tuple(paths), seq_length, predictions, compression, manifests)


def _words(layout: tuple[int, int, str]) -> str:
    return f"{layout[0]} tokens and {layout[1]} predictions" + (", gzip" if layout[2] else "")


def read_manifest(path: str, flag: str) -> dict:
    """Reads a manifest.json; raises UserError if it is not one of create_pretraining_data."""
    manifest = files.read_json(path, flag)
    if not isinstance(manifest, dict) or not manifest.keys() >= _MANIFEST_KEYS:
        raise UserError("is no manifest of ours", path, "remove it, or prepare the data anew")
    return manifest


def read_file(path: str, flag: str) -> Iterator[Record]:
    """Yields every record of a TFRecord file, gzip or not, ours or official.

    Raises:
      UserError: the file is damaged, empty, or holds something else.
    """
    record = None
    try:
        dataset = tf.data.TFRecordDataset(path, record_schema.compression_of(path))
        for serialized in dataset.as_numpy_iterator():
            record = _parse(serialized)
            if fault := _fault(record):
                raise UserError(
                    f"holds no pretraining records ({fault})",
                    f"{flag}={path}",
                    "make them with create_pretraining_data",
                )
            yield record
    except (tf.errors.OpError, ValueError, DecodeError) as error:
        # Without the names of TensorFlow's nodes.
        reason = re.sub(r"\{\{.*?\}\} ?| ?\[Op:.*", "", str(error).splitlines()[0])
        raise UserError(
            "is damaged, or no TFRecord file of tf.train.Example",
            f"{flag}={path}",
            f"prepare the data anew ({reason})",
        ) from error
    if record is None:
        raise UserError("holds no record", f"{flag}={path}", "prepare the data anew")


def _parse(serialized: bytes) -> Record:
    features = tf.train.Example.FromString(serialized).features.feature
    return {
        name: np.array(getattr(feature, kind).value[:])
        for name, feature in features.items()
        if (kind := feature.WhichOneof("kind"))
    }


def _fault(record: Record) -> str:
    """Why this is no pretraining record; "" if it is one."""
    if missing := [name for name in _FEATURES if name not in record]:
        return f"{', '.join(missing)} missing"
    for name in _FEATURES:
        expected = "f" if name == record_schema.PREDICTION_WEIGHTS else "i"
        if record[name].dtype.kind != expected:
            return f"{name} holds values of another type, or none"
    lengths = [len(record[name]) for name in _FEATURES]
    if lengths[1:4] != lengths[:1] * 3 or lengths[5:] != [*lengths[4:5] * 2, 1]:
        named = ", ".join(f"{name} {n}" for name, n in zip(_FEATURES, lengths, strict=True))
        return f"lengths do not agree: {named}"
    if record["masked_lm_positions"].max() >= len(record["input_ids"]):
        return "masked_lm_positions go beyond input_ids"
    return ""


def _read_manifests(paths: Sequence[str], flag: str) -> dict[str, dict]:
    manifests = {}
    for directory in sorted({os.path.dirname(path) for path in paths}):
        path = os.path.join(directory, record_schema.MANIFEST)
        if not tf.io.gfile.exists(path):
            if tf.io.gfile.exists(os.path.join(directory, UNFINISHED)):
                raise UserError(
                    "holds the records of a run that was not finished",
                    f"{flag}={directory or '.'}",
                    "give the create_pretraining_data command again",
                )
            continue
        manifests[path] = manifest = read_manifest(path, flag)
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
    record = next(read_file(path, flag))
    return (
        len(record["input_ids"]),
        len(record["masked_lm_positions"]),
        record_schema.compression_of(path),
    )
