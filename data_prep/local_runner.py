"""Makes pretraining data on one machine with several processes, in bounded memory.

The main process reads documents; workers tokenise, pair and mask them and spill the records by a
random key; then workers sort and write the shards. Neither the records nor their bytes on disk
depend on the number of workers, the start method or the order of the input files.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tqdm
from absl import logging

from albert_tf.data.record_files import UNFINISHED
from albert_tf.errors import UserError
from albert_tf.tokenization import AlbertTokenizer
from data_prep import manifest as manifests
from data_prep.counts import summarize, warn_of_oddities
from data_prep.documents import ReadingReport, read_documents
from data_prep.instances import Counts, InstanceConfig, InstanceMaker, document_digest
from data_prep.process_memory import tree_memory_mb
from data_prep.shuffled_shards import RecordSpill, write_shard
from data_prep.worker_pool import WorkerPool

_BATCH_CHARACTERS = 1 << 18
"""Text that a worker takes at a time."""


@dataclasses.dataclass(frozen=True)
class RunnerConfig:
    """Where and how fast records are made, but not which.

    Attributes:
      output_dir: an existing directory, for the shards and the manifest.
      num_shards: number of TFRecord files; fewer are written if there are fewer records.
      compression: "none" or "gzip".
      num_workers: number of processes; 1 works in this process.
      shuffle_memory_mb: memory for sorting, of all processes together.
      start_method: "fork" or "spawn"; None for the default of multiprocessing.
    """

    output_dir: str
    num_shards: int = 4
    compression: str = "none"
    num_workers: int = 1
    shuffle_memory_mb: int = 1024
    start_method: str | None = None

    def __post_init__(self):
        bounds = {"num_shards": (1, 99_999), "num_workers": (1, 1024)}
        for name, (least, most) in (bounds | {"shuffle_memory_mb": (16, 1 << 20)}).items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise UserError("is out of range", f"--{name}={value}", f"give {least} to {most}")
        if self.compression not in ("none", "gzip"):
            raise UserError("is unknown", f"--compression={self.compression}", "give none or gzip")


class _Document(NamedTuple):
    lines: list[str]
    digest: bytes
    occurrence: int


class _ShardTask(NamedTuple):
    shard: int
    path: str
    memory_bytes: int


def run(
    config: InstanceConfig,
    tokenizer: AlbertTokenizer,
    input_files: Sequence[str],
    runner: RunnerConfig,
) -> dict[str, Any]:
    """Makes the records of `input_files` and returns the manifest of the directory.

    A run that was finished before is not done again; the leftovers of an unfinished one are
    removed first.

    Raises:
      UserError: the input is unusable, or the directory holds other records.
      RunError: a worker process died.
    """
    description = manifests.describe(
        config, tokenizer, input_files, runner.num_shards, runner.compression
    )
    if finished := manifests.claim_directory(runner.output_dir, description):
        logging.info("%s already holds these records: nothing to do", runner.output_dir)
        return finished
    marker = os.path.join(runner.output_dir, UNFINISHED)
    with tempfile.TemporaryDirectory(
        prefix="spill.",
        dir=None if manifests.is_remote(marker) else marker,
        ignore_cleanup_errors=True,  # Workers may still spill when a run fails.
    ) as spill:
        worker_args = (config, tokenizer, spill, runner.num_shards, runner.compression)
        try:
            with WorkerPool(runner.num_workers, runner.start_method, _Worker, worker_args) as pool:
                counts = _make_records(pool, input_files, description, runner)
                shards = _write_shards(pool, runner)
        except (OSError, tf.errors.OpError) as error:
            raise UserError(
                "cannot be written", f"--output_dir={runner.output_dir}", str(error)
            ) from error
    manifest = description | {
        "counts": dict(sorted(counts.items())),
        "statistics": summarize(counts, config.max_seq_length),
        "shards": shards,
    }
    tokenizer.save(runner.output_dir)
    manifests.finish(runner.output_dir, manifest)
    warn_of_oddities(counts, config)
    return manifest


class _Worker:
    """What a process needs to make records and to write shards."""

    def __init__(
        self,
        config: InstanceConfig,
        tokenizer: AlbertTokenizer,
        spill_directory: str,
        num_shards: int,
        compression: str,
    ):
        self._maker = InstanceMaker(config, tokenizer)
        self._spill_directory = spill_directory
        self._num_shards = num_shards
        self._compression = "GZIP" if compression == "gzip" else ""
        self._spill = RecordSpill(spill_directory, num_shards)

    def make_records(self, batch: Sequence[_Document]) -> Counts:
        """Spills the records of some documents and returns their totals."""
        counts: Counts = collections.Counter()
        encoded = self._maker.encode([document.lines for document in batch], counts)
        for document, sentences in zip(batch, encoded, strict=True):
            for key, record in self._maker.records(
                sentences, document.digest, document.occurrence, counts
            ):
                self._spill.add(key, record)
                counts["record_bytes"] += len(record)
        self._spill.flush()
        return counts

    def write_shard(self, task: _ShardTask) -> tuple[int, int]:
        """Writes a shard and returns its index and number of records."""
        return task.shard, write_shard(
            self._spill_directory,
            task.shard,
            self._num_shards,
            task.path,
            self._compression,
            task.memory_bytes,
        )


def _make_records(
    pool: WorkerPool, input_files: Sequence[str], description: dict[str, Any], runner: RunnerConfig
) -> Counts:
    """Spills the records of all documents and returns the totals."""
    counts: Counts = collections.Counter()
    report = ReadingReport()
    total = sum(entry["bytes"] for entry in description["input"])
    batches = _batches(read_documents(input_files, report))
    with _Progress(total) as progress:
        for batch_counts in pool.map(_Worker.make_records, batches):
            counts.update(batch_counts)
            progress.show(report.bytes_read, counts["records"])
    counts["undecodable_bytes"] = report.undecodable_bytes
    if not counts["records"]:
        raise UserError(
            "no pair of segments can be made of its documents",
            f"--input_file={input_files[0]}{',...' if len(input_files) > 1 else ''}",
            "give documents of more than one word",
        )
    logging.info("memory: at most %d MB, all processes together", progress.peak_megabytes)
    return counts


def _batches(documents: Iterable[list[str]]) -> Iterator[list[_Document]]:
    """Groups documents, numbering those of equal content; keeps 70 bytes a document in memory."""
    seen: set[int] = set()
    repeats: collections.Counter[int] = collections.Counter()
    batch: list[_Document] = []
    size = 0
    for lines in documents:
        digest = document_digest(lines)
        key = int.from_bytes(digest[:8], "little")
        if key in seen:
            repeats[key] += 1
        seen.add(key)
        batch.append(_Document(lines, digest, repeats.get(key, 0)))
        size += sum(map(len, lines))
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _write_shards(pool: WorkerPool, runner: RunnerConfig) -> list[dict[str, Any]]:
    """Sorts and writes all shards; returns name, records and bytes of those that hold records."""

    def path_of(shard: int) -> str:
        name = f"data-{shard:05d}-of-{runner.num_shards:05d}.tfrecord"
        return os.path.join(runner.output_dir, name)

    memory = (runner.shuffle_memory_mb << 20) // runner.num_workers
    tasks = [_ShardTask(shard, path_of(shard), memory) for shard in range(runner.num_shards)]
    written = sorted(pool.map(_Worker.write_shard, tasks))
    return [
        {
            "file": os.path.basename(path_of(shard)),
            "records": records,
            "bytes": tf.io.gfile.stat(path_of(shard)).length,
        }
        for shard, records in written
        if records
    ]


class _Progress:
    """A progress bar over the bytes of the input, with records a second and memory."""

    def __init__(self, total_bytes: int):
        interval = 0.5 if sys.stderr.isatty() else 10
        self._bar = tqdm.tqdm(
            total=total_bytes, unit="B", unit_scale=True, mininterval=interval, desc="records"
        )
        self._interval = interval
        self._started = self._shown = time.monotonic()
        self.peak_megabytes = 0.0

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.close()

    def show(self, bytes_read: int, records: int) -> None:
        """Brings the bar up to date."""
        now = time.monotonic()
        if now - self._shown > self._interval or not self.peak_megabytes:
            self._shown = now
            resident = tree_memory_mb()
            self.peak_megabytes = max(self.peak_megabytes, resident)
            rate = records / max(1e-3, now - self._started)
            self._bar.set_postfix_str(
                f"{records} records, {rate:.0f}/s, {resident:.0f} MB memory",
                refresh=False,
            )
        self._bar.update(bytes_read - self._bar.n)
