"""Maps a function over items with several processes and a bounded number of items in flight."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from albert_tf.errors import RunError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_state: Any = None
"""What `start` returned in this worker process."""


class WorkerPool:
    """Processes that share nothing but what `start(*start_args)` makes in each of them.

    Args:
      num_workers: number of processes; with 1, work is done in this process.
      start_method: "fork", "spawn" or None for the default of multiprocessing.
      start: makes the state that mapped functions get; runs once in each process.
      start_args: its arguments, which must be picklable.
    """

    def __init__(
        self,
        num_workers: int,
        start_method: str | None,
        start: Callable[..., Any],
        start_args: tuple[Any, ...],
    ):
        self._num_workers = num_workers
        self._executor = None
        if num_workers > 1:
            self._executor = concurrent.futures.ProcessPoolExecutor(
                num_workers,
                multiprocessing.get_context(start_method),
                initializer=_start_worker,
                initargs=(start, start_args),
            )
        else:
            self._local_state = start(*start_args)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, error_type: Any, *_: Any) -> None:
        if self._executor:
            self._executor.shutdown(wait=error_type is None, cancel_futures=True)

    def map(
        self, function: Callable[[Any, _Item], _Result], items: Iterable[_Item]
    ) -> Iterator[_Result]:
        """Yields function(state, item) of each item, in the order in which they finish.

        Items are taken from the iterable as workers become free, not all at once.

        Raises:
          RunError: a worker process was killed, e.g. for want of memory.
        """
        if not self._executor:
            for item in items:
                yield function(self._local_state, item)
            return
        pending: set[concurrent.futures.Future] = set()
        try:
            for item in items:
                if len(pending) > 2 * self._num_workers:
                    done, pending = concurrent.futures.wait(
                        pending, return_when=concurrent.futures.FIRST_COMPLETED
                    )
                    for future in done:
                        yield future.result()
                pending.add(self._executor.submit(_call, function, item))
            for future in concurrent.futures.as_completed(pending):
                yield future.result()
        except BrokenProcessPool as error:
            raise RunError("a worker process died: is there enough memory?") from error


def _start_worker(start: Callable[..., Any], start_args: tuple[Any, ...]) -> None:
    global _state
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The main process handles the keyboard.
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _state = start(*start_args)


def _exit_with_parent() -> None:
    """Ends this worker if the main process is killed, which would leave it waiting for ever."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _call(function: Callable[[Any, _Item], _Result], item: _Item) -> _Result:
    return function(_state, item)
