"""How much memory a process and its children hold."""

from __future__ import annotations

import contextlib

import psutil


def tree_memory_mb(pid: int | None = None) -> float:
    """Resident memory of a process and all below it, in MB; of this process by default."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for member in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += member.memory_info().rss
    return total / 1e6
