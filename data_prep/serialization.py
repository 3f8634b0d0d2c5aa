"""Writes record_schema.to_example(features).SerializeToString() by hand, which is faster.

Building the message value by value costs more than choosing what to mask, and most values are
0 or 1, whose protocol buffer encoding is the byte itself. Format: the Example message of
tensorflow/core/example/example.proto, numbers packed.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping, Sequence

from albert_tf.data.record_schema import PREDICTION_WEIGHTS

_FLAG_FEATURES = frozenset(["input_mask", "segment_ids", "token_boundary"])
"""Features of zeros and ones."""

_FIELD_1, _FLOAT_LIST, _INT64_LIST = b"\x0a", b"\x12", b"\x1a"
"""Tags of the length-delimited fields 1, 2 and 3."""

_FIELD_2 = b"\x12"


class _Varints(dict):
    """The base-128 encoding of every non-negative integer asked for so far."""

    def __missing__(self, number: int) -> bytes:
        digits, rest = bytearray(), number
        while rest > 127:
            digits.append(rest & 127 | 128)
            rest >>= 7
        digits.append(rest)
        self[number] = bytes(digits)
        return self[number]


_VARINTS = _Varints()
_varint = _VARINTS.__getitem__


def serialize_example(features: Mapping[str, Sequence[float]]) -> bytes:
    """Serializes the features of a record, in the order given, as a tf.train.Example."""
    entries = []
    for name, values in features.items():
        if name in _FLAG_FEATURES:
            kind, packed = _INT64_LIST, bytes(values)
        elif name == PREDICTION_WEIGHTS:
            kind, packed = _FLOAT_LIST, _float_struct(len(values)).pack(*values)
        else:
            kind, packed = _INT64_LIST, b"".join(map(_varint, values))
        entries += (_header(name, kind, len(packed)), packed)
    entries = b"".join(entries)
    return _FIELD_1 + _varint(len(entries)) + entries


@functools.cache
def _header(name: str, kind: bytes, packed_length: int) -> bytes:
    """What precedes the packed numbers of a feature: an entry of the map from name to Feature."""
    key = name.encode()
    header, length = b"", packed_length
    for tag in (_FIELD_1, kind, _FIELD_2):
        header = tag + _varint(length) + header
        length = len(header) + packed_length
    header = _FIELD_1 + _varint(len(key)) + key + header
    return _FIELD_1 + _varint(len(header) + packed_length) + header


@functools.cache
def _float_struct(length: int) -> struct.Struct:
    return struct.Struct(f"<{length}f")
