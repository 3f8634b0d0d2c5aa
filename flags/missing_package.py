"""Says in one line, with exit status 2, that a package is missing; imported before any package."""

from __future__ import annotations

import sys
from types import TracebackType


def _excepthook(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        print(
            f"error: is not installed: the package {package}: run `make venv` and use "
            ".venv/bin/python, or `pip install -r requirements.txt`",
            file=sys.stderr,
        )
        sys.exit(2)
    sys.__excepthook__(kind, error, traceback)


sys.excepthook = _excepthook
