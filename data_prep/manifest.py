"""The manifest of a data directory: how its records were made, and who may write there."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from albert_tf import files
from albert_tf.data.record_files import UNFINISHED, read_manifest
from albert_tf.data.record_schema import MANIFEST
from albert_tf.errors import UserError
from albert_tf.tokenization import AlbertTokenizer
from data_prep.instances import InstanceConfig

FORMAT_VERSION = 1

_SHARD_NAME = re.compile(r"data-\d{5}-of-\d{5}\.tfrecord(\.unfinished)?")


def describe(
    config: InstanceConfig,
    tokenizer: AlbertTokenizer,
    input_files: Sequence[str],
    num_shards: int,
    compression: str,
) -> dict[str, Any]:
    """The part of a manifest that is known before the run, and by which runs are compared."""
    settings = dataclasses.asdict(config) | {
        "do_lower_case": tokenizer.do_lower_case,
        "keep_accents": tokenizer.keep_accents,
        "num_shards": num_shards,
        "compression": compression,
    }
    return {
        "format_version": FORMAT_VERSION,
        "settings": settings,
        "vocabulary": {
            "sha256": files.sha256(tokenizer.spm_model_file),
            "size": tokenizer.vocab_size,
        },
        "input": [
            {"file": path, "bytes": tf.io.gfile.stat(path).length, "sha256": files.sha256(path)}
            for path in input_files
        ],
    }


def claim_directory(output_dir: str, description: Mapping[str, Any]) -> dict[str, Any] | None:
    """Makes an existing directory ready to be written, or finds that nothing is left to do.

    Args:
      output_dir: a directory that can be written.
      description: what `describe` says of the run.

    Returns:
      The manifest if the same run has been finished here, else None.

    Raises:
      UserError: the directory holds records made in another way, or by another program.
    """
    path = os.path.join(output_dir, MANIFEST)
    marker = os.path.join(output_dir, UNFINISHED)
    shards = [name for name in tf.io.gfile.listdir(output_dir) if _SHARD_NAME.fullmatch(name)]
    is_unfinished = _is_unfinished(output_dir)
    if tf.io.gfile.exists(path):
        manifest = read_manifest(path, "--output_dir")
        _refuse_other_settings(manifest, description, output_dir)
        if _is_complete(manifest, output_dir):
            if is_unfinished:  # Killed when all was done but this.
                tf.io.gfile.rmtree(marker)
            return manifest
        logging.warning("%s has lost records; they are made again", output_dir)
    elif is_unfinished:
        logging.info("%s holds an unfinished run; it is started again", output_dir)
    elif shards:
        raise UserError(
            f"holds {shards[0]} but no {MANIFEST}",
            f"--output_dir={output_dir}",
            "choose another directory",
        )
    if is_unfinished:
        tf.io.gfile.rmtree(marker)
    tf.io.gfile.makedirs(marker)
    files.write_json(os.path.join(marker, MANIFEST), {**description, "shards": []})
    if tf.io.gfile.exists(path):
        tf.io.gfile.remove(path)
    for name in shards:
        tf.io.gfile.remove(os.path.join(output_dir, name))
    return None


def _is_unfinished(output_dir: str) -> bool:
    """Whether a run of ours began here and did not end; raises UserError if another's did."""
    marker = os.path.join(output_dir, UNFINISHED)
    if not tf.io.gfile.exists(marker):
        return False
    names = tf.io.gfile.listdir(marker) if tf.io.gfile.isdir(marker) else [UNFINISHED]
    if MANIFEST in names:
        read_manifest(os.path.join(marker, MANIFEST), "--output_dir")
    elif names:  # It is empty if we were killed between making and filling it.
        raise UserError(
            f"holds no {MANIFEST} of ours", f"--output_dir={marker}", "move it out of the way"
        )
    return MANIFEST in names


def finish(output_dir: str, manifest: Mapping[str, Any]) -> None:
    """Writes the manifest, which makes the directory whole, and removes the marker."""
    files.write_json(os.path.join(output_dir, MANIFEST), manifest)
    tf.io.gfile.rmtree(os.path.join(output_dir, UNFINISHED))


def _refuse_other_settings(manifest: Any, description: Mapping[str, Any], output_dir: str) -> None:
    def flatten(value: Any) -> dict[str, Any]:
        value = value if isinstance(value, dict) else {}
        settings = {f"--{k}": v for k, v in value.get("settings", {}).items()}
        vocabulary = value.get("vocabulary", {}).get("sha256")
        contents = sorted(entry["sha256"] for entry in value.get("input", []))
        version = value.get("format_version")
        return settings | {
            "the vocabulary": vocabulary,
            "the input text": contents,
            "the format version": version,
        }

    there, here = flatten(manifest), flatten(description)
    differences = [
        f"{name} is {there.get(name)} there, {here[name]} here" if name[:2] == "--" else name
        for name in here
        if there.get(name) != here[name]
    ]
    if differences:
        raise UserError(
            f"holds records made otherwise ({'; '.join(differences)})",
            f"--output_dir={output_dir}",
            "choose another directory or delete this one",
        )


def _is_complete(manifest: Mapping[str, Any], output_dir: str) -> bool:
    for shard in manifest["shards"]:
        path = os.path.join(output_dir, shard["file"])
        if not tf.io.gfile.exists(path) or tf.io.gfile.stat(path).length != shard["bytes"]:
            return False
    return True


def is_remote(path: str) -> bool:
    """Whether a path is a URL such as gs://bucket/dir."""
    return "://" in path
