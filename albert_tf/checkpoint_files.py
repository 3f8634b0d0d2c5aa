"""Checkpoints on disk: finding the one that a path means, and opening it."""

from __future__ import annotations

import os
import re

import tensorflow as tf

from albert_tf import files
from albert_tf.errors import UserError

_NUMBERED = re.compile(r"-(\d+)$")


def checkpoints(directory: str) -> list[str]:
    """Prefixes of the numbered checkpoints in a directory, oldest first.

    The files decide, not TensorFlow's state file, which may be lost, cut short or copied along
    with the paths of another machine. A checkpoint's index is written last.
    """
    numbers = {p: int(found[1]) for p in _prefixes(directory) if (found := _NUMBERED.search(p))}
    return sorted(numbers, key=numbers.__getitem__)


def latest_checkpoint(directory: str, flag: str) -> str | None:
    """The prefix of the newest checkpoint in a directory, or of its only one, if any.

    Raises:
      UserError: it holds several without numbers.
    """
    if numbered := checkpoints(directory):
        return numbered[-1]
    prefixes = _prefixes(directory)
    if len(prefixes) > 1:
        names = ", ".join(map(os.path.basename, prefixes))
        raise UserError(f"holds several checkpoints ({names})", f"{flag}={directory}", "name one")
    return prefixes[0] if prefixes else None


def _prefixes(directory: str) -> list[str]:
    indices = files.glob(os.path.join(directory, "*.index"))
    return sorted(path.removesuffix(".index") for path in indices)


def checkpoint_prefix(path: str, flag: str) -> str:
    """The prefix of the checkpoint that `path`, a directory or a prefix, names.

    Raises:
      UserError: there is none, or the path names one of its files instead.
    """
    if path.endswith(".index") or ".data-" in os.path.basename(path):
        prefix = path.rsplit(".", 1)[0]
        raise UserError(
            "is one file of a checkpoint", f"{flag}={path}", f"give its prefix, {prefix}"
        )
    if tf.io.gfile.isdir(path):
        prefix = latest_checkpoint(path, flag)
        if prefix is None:
            raise UserError(
                "holds no checkpoint", f"{flag}={path}", "give a model directory or a prefix"
            )
        return prefix
    if not tf.io.gfile.exists(path + ".index"):
        raise UserError("is no checkpoint", f"{flag}={path}", f"{path}.index does not exist")
    return path


def directory_of(path: str) -> str:
    """The model directory that a path or checkpoint prefix belongs to."""
    return path if tf.io.gfile.isdir(path) else os.path.dirname(path) or "."


def fingerprint(path: str, flag: str) -> str:
    """Tells checkpoints apart by what they hold, wherever they lie: their index has checksums.

    Raises:
      UserError: see checkpoint_prefix().
    """
    prefix = checkpoint_prefix(path, flag)
    return f"{os.path.basename(prefix)} ({files.sha256(prefix + '.index')[:16]})"


def open_checkpoint(prefix: str, flag: str) -> tf.train.CheckpointReader:
    """A reader of a checkpoint's variables by name.

    Raises:
      UserError: it is damaged.
    """
    try:
        return tf.train.load_checkpoint(prefix)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise damaged(prefix, flag, error) from error


def damaged(prefix: str, flag: str, error: Exception) -> UserError:
    """The error for a checkpoint whose files cannot be read."""
    reason = " ".join(str(getattr(error, "message", None) or error).split())
    return UserError("is damaged", f"{flag}={prefix}", f"copy it anew, or use another ({reason})")
