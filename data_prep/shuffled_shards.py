"""Shuffles records of any number in bounded memory: by spilling and sorting by a random key.

Each record carries a 64-bit key that is uniform over [0, 2^64). A shard takes an equal range of
keys and holds its records in the order of their keys, so its bytes do not depend on who spilled
which record when.
"""

from __future__ import annotations

import contextlib
import glob
import os
import struct
from collections.abc import Iterator, Sequence

import tensorflow as tf

from albert_tf import files

KEY_RANGE = 1 << 64

_HEADER = struct.Struct(">IQ")
"""Length of the record and its key; big-endian, so entries sort like their keys."""

_KEY_OFFSET = 4
_FAN_OUT = 64


class RecordSpill:
    """Collects keyed records and appends them to one local file per shard.

    Args:
      directory: a local directory, which several processes may spill to.
      num_shards: number of ranges of keys.
      buffer_bytes: records held in memory before they are written.
    """

    def __init__(self, directory: str, num_shards: int, buffer_bytes: int = 4 << 20):
        self._directory = directory
        self._buffer_bytes = buffer_bytes
        self._buffers = [bytearray() for _ in range(num_shards)]
        self._size = 0

    def add(self, key: int, record: bytes) -> None:
        """Adds one record."""
        buffer = self._buffers[key * len(self._buffers) // KEY_RANGE]
        buffer += _HEADER.pack(len(record), key)
        buffer += record
        self._size += _HEADER.size + len(record)
        if self._size > self._buffer_bytes:
            self.flush()

    def flush(self) -> None:
        """Writes what is held in memory."""
        for shard, buffer in enumerate(self._buffers):
            if buffer:
                path = os.path.join(self._directory, f"{shard:05d}.{os.getpid()}")
                with open(path, "ab") as handle:
                    handle.write(buffer)
                buffer.clear()
        self._size = 0


def write_shard(
    spill_directory: str,
    shard: int,
    num_shards: int,
    path: str,
    compression: str,
    memory_bytes: int,
) -> int:
    """Writes the spilled records of one shard, in the order of their keys, to a TFRecord file.

    Args:
      spill_directory: where RecordSpill wrote.
      shard: index of the range of keys.
      num_shards: number of ranges.
      path: of the file, which appears whole or not at all; if there are no records, not.
      compression: "" or "GZIP".
      memory_bytes: about how much memory to use at most.

    Returns:
      The number of records.
    """
    spilled = sorted(glob.glob(os.path.join(glob.escape(spill_directory), f"{shard:05d}.*")))
    if not spilled:
        return 0
    low = -(-shard * KEY_RANGE // num_shards)
    high = -(-(shard + 1) * KEY_RANGE // num_shards)
    count = 0
    with files.atomic_path(path) as temporary, tf.io.TFRecordWriter(temporary, compression) as out:
        for record in _sorted_records(spilled, low, high, memory_bytes):
            out.write(record)
            count += 1
    return count


def _sorted_records(
    paths: Sequence[str], low: int, high: int, memory_bytes: int
) -> Iterator[bytes]:
    """Yields the records of spill files by key (low <= key < high), then removes the files."""
    # Sorting holds an object per record beside its bytes: about twice the bytes in all.
    if 2 * sum(map(os.path.getsize, paths)) <= memory_bytes or high - low <= _FAN_OUT:
        entries = [entry for path in paths for _, entry in _read_entries(path)]
        entries.sort(key=_key_and_record)
        for entry in entries:
            yield entry[_HEADER.size :]
    else:
        bounds = [low + -(-(high - low) * part // _FAN_OUT) for part in range(_FAN_OUT + 1)]
        parts = [f"{paths[0]}.{part:02d}" for part in range(_FAN_OUT)]
        with contextlib.ExitStack() as stack:
            handles = [stack.enter_context(open(part, "wb")) for part in parts]
            for path in paths:
                for key, entry in _read_entries(path):
                    handles[(key - low) * _FAN_OUT // (high - low)].write(entry)
        for part, part_low, part_high in zip(parts, bounds, bounds[1:], strict=False):
            yield from _sorted_records([part], part_low, part_high, memory_bytes)
    for path in paths:
        os.remove(path)


def _key_and_record(entry: bytes) -> bytes:
    return entry[_KEY_OFFSET:]


def _read_entries(path: str) -> Iterator[tuple[int, bytes]]:
    """Yields (key, header and record) of a spill file."""
    with open(path, "rb", buffering=1 << 20) as handle:
        while header := handle.read(_HEADER.size):
            length, key = _HEADER.unpack(header)
            yield key, header + handle.read(length)
