"""Runs a command and measures it."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence

import psutil

SAMPLING_SECONDS = 0.5

# glibc otherwise hands the buffers of every step back to the kernel and takes them anew, which
# costs a fifth of the time of a small model's step on a CPU.
MALLOC_SETTINGS = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    "MALLOC_TOP_PAD_": str(2**28),
}


def run_measured(command: Sequence[str]) -> tuple[int, float, float]:
    """Runs a command to its end.

    Returns:
      Exit status, wall seconds, and the most memory in MB that it and its children held together.
    """
    start = time.monotonic()
    with subprocess.Popen(command, env=MALLOC_SETTINGS | os.environ) as process:
        peak = [0.0]
        watcher = threading.Thread(target=_watch, args=(process, peak), daemon=True)
        watcher.start()
        try:
            status = process.wait()
        except KeyboardInterrupt:  # the child has it too and stops by itself
            status = process.wait()
        watcher.join()
    return status, time.monotonic() - start, peak[0]


def _watch(process: subprocess.Popen, peak: list[float]) -> None:
    while process.poll() is None:
        peak[0] = max(peak[0], _tree_memory_mb(process.pid))
        time.sleep(SAMPLING_SECONDS)


def _tree_memory_mb(pid: int) -> float:
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    total = 0
    for process in tree:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 1e6
