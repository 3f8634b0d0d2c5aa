"""The one exception that means "the user can mend this"."""

from __future__ import annotations


class UserError(Exception):
    """An unusable flag, path, file or value; shown as one line, exit status 2.

    Args:
      what: what is wrong, e.g. "matches no file".
      where: the flag, path or line it concerns, e.g. "--input_file=corpus/*.txt".
      remedy: what the user should do about it.
    """

    def __init__(self, what: str, where: str, remedy: str):
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        return f"{self.what}: {self.where}: {self.remedy}"


class RunError(Exception):
    """A run that cannot go on, e.g. a loss that is not finite; one line, exit status 1."""
