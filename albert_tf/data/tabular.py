"""Reads labelled texts, single or in pairs, from TSV, CSV and JSON lines."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import os
from collections.abc import Iterable, Iterator

import tensorflow as tf

from albert_tf import files
from albert_tf.errors import UserError

EXTENSIONS = (".tsv", ".csv", ".jsonl")


@dataclasses.dataclass(frozen=True)
class Columns:
    """Names of the columns, or of the JSON fields.

    Attributes:
      text: the text, or the first of a pair.
      text_b: the second of a pair, or None.
      label: the class.
    """

    text: str = "text"
    text_b: str | None = None
    label: str = "label"


@dataclasses.dataclass(frozen=True)
class LabelledText:
    """One row; text_b is None for single texts."""

    text: str
    text_b: str | None
    label: str


def find_split(data_dir: str, split: str) -> list[str]:
    """Files of a split: train.tsv; dev.jsonl, or several such as dev_matched.tsv.

    Raises:
      UserError: there is none.
    """
    files.require_directory(data_dir, "--data_dir")
    names = [
        name
        for name in sorted(tf.io.gfile.listdir(data_dir))
        if os.path.splitext(name)[1] in EXTENSIONS and is_of_split(name, split)
    ]
    if not names:
        raise UserError(
            f"holds no file of the {split} split",
            f"--data_dir={data_dir}",
            f"name one {split}.tsv, {split}.csv or {split}.jsonl",
        )
    for first, second in itertools.pairwise(names):
        if os.path.splitext(first)[0] == os.path.splitext(second)[0]:
            raise UserError(
                f"holds both {first} and {second}",
                f"--data_dir={data_dir}",
                "keep one of them, or rename one, e.g. dev_other.tsv",
            )
    return [os.path.join(data_dir, name) for name in names]


def is_of_split(name: str, split: str) -> bool:
    """Whether a file name is `split` with an extension, or begins with `split` and "_"."""
    stem = os.path.splitext(name)[0]
    return stem == split or stem.startswith(split + "_")


def read_rows(path: str, columns: Columns, flag: str = "--data_dir") -> list[LabelledText]:
    """All rows of a file, in order; blank lines are passed over.

    TSV is read without quoting, as GLUE files must be; CSV with the usual quotes.

    Raises:
      UserError: a row lacks a column, or is malformed; it names file and line.
    """
    rows = [_row(path, line, values, columns) for line, values in read_records(path, flag)]
    if not rows:
        raise UserError("holds no row", path, "give a file with labelled texts")
    return rows


def read_records(path: str, flag: str) -> Iterator[tuple[int, dict[str, object]]]:
    """Yields (line number, values by column) of a TSV, CSV or JSON lines file.

    Raises:
      UserError: the file is missing, not UTF-8 or malformed.
    """
    files.require_file(path, flag)
    with tf.io.gfile.GFile(path, "rb") as raw:
        content = raw.read()
    try:
        lines = io.StringIO(content.decode("utf-8-sig"), newline="")
        parse = _json_records if path.endswith(".jsonl") else _delimited_records
        yield from parse(path, lines)
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8", f"{flag}={path}", f"convert it ({error})") from error
    except csv.Error as error:
        raise UserError("is malformed", f"{flag}={path}", str(error)) from error


def _delimited_records(path: str, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    csv.field_size_limit(1 << 30)
    if path.endswith(".tsv"):
        reader = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.DictReader(lines, strict=True)
    for values in reader:
        if None in values:
            raise UserError(
                "has more columns than the header", f"{path}:{reader.line_num}", "mend the row"
            )
        yield reader.line_num, values


def _json_records(path: str, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            raise UserError("is not valid JSON", f"{path}:{number}", str(error)) from error
        if not isinstance(values, dict):
            raise UserError("is not a JSON object", f"{path}:{number}", "write one object a line")
        yield number, values


def _row(path: str, line: int, values: dict[str, object], columns: Columns) -> LabelledText:
    def value(column: str) -> str:
        if values.get(column) is None:
            have = ", ".join(str(name) for name in values)
            raise UserError(
                f"lacks the column {column!r}",
                f"{path}:{line}",
                f"it has {have}; see --text_column",
            )
        return str(values[column])

    text_b = value(columns.text_b) if columns.text_b else None
    return LabelledText(value(columns.text), text_b, value(columns.label))
