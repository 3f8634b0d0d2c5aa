"""Finding input files and writing output files whole or not at all (any tf.io.gfile path)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.errors import UserError


def expand_patterns(patterns: Sequence[str], flag: str) -> list[str]:
    """Expands globs into a sorted list of readable files without repeats.

    Args:
      patterns: paths or globs, local or any tf.io.gfile URL.
      flag: the flag they came from, for messages, e.g. "--input_file".

    Raises:
      UserError: a pattern matches nothing, or a match is a directory.
    """
    if not patterns:
        raise UserError("no file given", flag, "name at least one file or glob")
    files: set[str] = set()
    for pattern in patterns:
        # A name that exists is taken literally, so paths with brackets work.
        matches = [pattern] if tf.io.gfile.exists(pattern) else glob(pattern)
        if not matches:
            raise UserError(
                "matches no file", f"{flag}={pattern}", "check the path or quote the glob"
            )
        for match in matches:
            if tf.io.gfile.isdir(match):
                raise UserError(
                    "is a directory, not a file", f"{flag}={match}", f"write {match.rstrip('/')}/*"
                )
        files.update(matches)
    return sorted(files)


def glob(pattern: str) -> list[str]:
    """Like tf.io.gfile.glob, but an unreadable parent folder is an empty match."""
    try:
        return tf.io.gfile.glob(pattern)
    except tf.errors.OpError:
        return []


def require_file(path: str, flag: str) -> str:
    """Returns `path` if it is a file that is not empty, else raises UserError naming `flag`."""
    if not path:
        raise UserError("is required", flag, "give the path of a file")
    if not tf.io.gfile.exists(path):
        raise UserError("does not exist", f"{flag}={path}", "check the path")
    if tf.io.gfile.isdir(path):
        raise UserError("is a directory, not a file", f"{flag}={path}", "name the file in it")
    if tf.io.gfile.stat(path).length == 0:
        raise UserError("is empty", f"{flag}={path}", "give a file with content")
    return path


def require_directory(path: str, flag: str) -> str:
    """Returns `path` if it is an existing directory, else raises UserError naming `flag`."""
    if not path:
        raise UserError("is required", flag, "give the path of a directory")
    if not tf.io.gfile.isdir(path):
        raise UserError("is not a directory", f"{flag}={path}", "check the path")
    return path


def make_output_directory(path: str, flag: str = "--output_dir") -> str:
    """Creates `path` if needed; raises UserError if it cannot be a directory we write to."""
    if not path:
        raise UserError("is required", flag, "give the directory to write to")
    try:
        tf.io.gfile.makedirs(path)
        probe = os.path.join(path, ".writable")
        with tf.io.gfile.GFile(probe, "w") as handle:
            handle.write("")
        with contextlib.suppress(tf.errors.NotFoundError):  # Another process of the run probed too.
            tf.io.gfile.remove(probe)
    except (tf.errors.OpError, OSError) as error:
        reason = getattr(error, "message", None) or str(error)
        raise UserError(
            "cannot be written", f"{flag}={path}", f"choose another directory ({reason})"
        ) from error
    return path


@contextlib.contextmanager
def atomic_path(path: str) -> Iterator[str]:
    """Yields a temporary path that becomes `path` on success and vanishes on failure.

    One process at a time may write a path. The temporary name is always the same, so that what a
    killed process left behind is overwritten by the next.
    """
    temporary = f"{path}.unfinished"
    try:
        yield temporary
        tf.io.gfile.rename(temporary, path, overwrite=True)
    except BaseException:
        with contextlib.suppress(tf.errors.OpError):
            tf.io.gfile.remove(temporary)
        raise


def encode(text: str) -> bytes:
    """Encodes as UTF-8; a lone surrogate, which has none, becomes its escape in JSON."""
    return text.encode("utf-8", "backslashreplace")


def write_text(path: str, text: str) -> None:
    """Writes `text` to `path` as encode() has it, atomically."""
    with atomic_path(path) as temporary, tf.io.gfile.GFile(temporary, "wb") as handle:
        handle.write(encode(text))


def write_json(path: str, value: Any) -> None:
    """Writes `value` to `path` as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: str, flag: str) -> Any:
    """Reads a JSON file; raises UserError naming `flag` if it is missing or malformed."""
    require_file(path, flag)
    try:
        with tf.io.gfile.GFile(path, "r") as handle:
            return json.loads(handle.read())
    except (ValueError, RecursionError) as error:
        raise UserError("is not valid JSON", f"{flag}={path}", str(error)) from error


def sha256(path: str) -> str:
    """The SHA-256 of a file's bytes, as 64 hex digits."""
    digest = hashlib.sha256()
    with tf.io.gfile.GFile(path, "rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
