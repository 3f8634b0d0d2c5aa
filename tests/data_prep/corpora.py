"""Corpora that the tests of data preparation make up."""

from __future__ import annotations

import pathlib
import random
import re

_WORDS = re.findall(
    r"[a-z]+",
    "village river baker street morning bread children winter letters ships night glass water "
    "farmers barley circle teacher tea merchant clerk orchestra rain snow fox maps island cafe "
    "waiter bees flowers clock tower mayor key and the of was had never always",
)


def sentence(generator: random.Random, least: int = 6, most: int = 15) -> str:
    """A row of words with a full stop."""
    return " ".join(generator.choices(_WORDS, k=generator.randint(least, most))) + "."


def make_documents(
    num_documents: int, num_sentences: int, seed: int = 0, **length: int
) -> list[list[str]]:
    """Documents of made-up sentences."""
    generator = random.Random(seed)
    return [
        [sentence(generator, **length) for _ in range(num_sentences)] for _ in range(num_documents)
    ]


def write_corpus(path: pathlib.Path | str, documents: list[list[str]]) -> str:
    """Writes documents, a sentence a line, a blank line between; returns the path."""
    path = pathlib.Path(path)
    path.write_text("\n\n".join("\n".join(lines) for lines in documents) + "\n", "utf-8")
    return str(path)
