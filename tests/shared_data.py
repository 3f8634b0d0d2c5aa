"""Finds the project's real corpora and golden numbers, which live beside the repository."""

from __future__ import annotations

import pathlib
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
TEST_DATA = REPOSITORY / "tests" / "data"
SHARED = REPOSITORY.parent / "shared"


def shared_path(name: str) -> str:
    """The absolute path of a file below ../shared; skips the test where that is absent."""
    path = SHARED / name
    if not path.exists():
        raise unittest.SkipTest(f"../shared/{name} is not here")
    return str(path)
