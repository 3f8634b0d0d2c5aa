"""Runs a command and measures it."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from data_prep.process_memory import tree_memory_mb

SAMPLING_SECONDS = 0.5

# glibc otherwise hands the buffers of every step back to the kernel and takes them anew, which
# costs a fifth of the time of a small model's step on a CPU.
MALLOC_SETTINGS = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    "MALLOC_TOP_PAD_": str(2**28),
}


class Finished(NamedTuple):
    """What a command came to.

    Attributes:
      status: its exit status.
      seconds: wall time.
      peak_memory_mb: the most memory that it and its children held together.
      output: its standard output.
    """

    status: int
    seconds: float
    peak_memory_mb: float
    output: str


def run_measured(command: Sequence[str]) -> Finished:
    """Runs a command to its end and passes on what it prints."""
    start = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        command, env=MALLOC_SETTINGS | os.environ, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        peak = [0.0]
        watcher = threading.Thread(target=_watch, args=(process, peak), daemon=True)
        watcher.start()
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
            status = process.wait()
        except KeyboardInterrupt:  # the child has it too and stops by itself
            status = process.wait()
        watcher.join()
    return Finished(status, time.monotonic() - start, peak[0], "".join(lines))


def _watch(process: subprocess.Popen, peak: list[float]) -> None:
    while process.poll() is None:
        peak[0] = max(peak[0], tree_memory_mb(process.pid))
        time.sleep(SAMPLING_SECONDS)
