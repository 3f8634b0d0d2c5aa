"""Reads labelled texts, single or in pairs, from TSV, CSV and JSON lines."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator

import tensorflow as tf

from albert_tf import files
from albert_tf.errors import UserError

EXTENSIONS = (".tsv", ".csv", ".jsonl")

_UNUSABLE_LABEL = re.compile("\\s*|.*[\ud800-\udfff].*", re.DOTALL)
"""Blank, or with a lone surrogate, which JSON can spell but no exported model can answer."""


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
    """One row.

    Attributes:
      text: the text, or the first of a pair; may be empty.
      text_b: the second of a pair, or None; may be empty.
      label: the class.
      line: where it stands in its file.
    """

    text: str
    text_b: str | None
    label: str
    line: int = dataclasses.field(default=0, compare=False)


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


def _delimited_records(path: str, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    csv.field_size_limit(1 << 30)
    if path.endswith(".tsv"):
        reader = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.DictReader(lines, strict=True)
    try:
        for values in reader:
            where = f"{path}:{reader.line_num}"
            if None in values:
                raise UserError("has more columns than the header", where, "mend the row")
            if missing := [name for name, value in values.items() if value is None]:
                raise UserError(
                    f"lacks the column {missing[0]!r}",
                    where,
                    f"it has {len(values) - len(missing)} columns, the header {len(values)}",
                )
            yield reader.line_num, values
    except csv.Error as error:
        begin = reader.line_num + 1  # line_num is where the last good row ends.
        raise UserError("is malformed", f"{path}:{begin}", str(error)) from error


def _json_records(path: str, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError("is not valid JSON", f"{path}:{number}", str(error)) from error
        if not isinstance(values, dict):
            raise UserError("is not a JSON object", f"{path}:{number}", "write one object a line")
        yield number, values


def _row(path: str, line: int, values: dict[str, object], columns: Columns) -> LabelledText:
    where = f"{path}:{line}"

    def field(column: str, kinds: tuple[type, ...], expected: str) -> object:
        if column not in values:
            have = ", ".join(values)
            raise UserError(
                f"lacks the column {column!r}", where, f"it has {have}; see --text_column"
            )
        value = values[column]
        # A bool would pass for an int, and NaN, which is not equal to itself, for a number.
        if type(value) not in kinds or value != value:
            raise UserError(
                f"has no {expected} in {column!r}", where, f"mend {json.dumps(value)[:40]}"
            )
        return value

    text = field(columns.text, (str,), "text")
    text_b = field(columns.text_b, (str,), "text") if columns.text_b else None
    label = str(field(columns.label, (str, int, float), "text or number"))
    if _UNUSABLE_LABEL.fullmatch(label):
        raise UserError(f"has the label {label!r}", where, "label the row or remove it")
    return LabelledText(text, text_b, label, line)
