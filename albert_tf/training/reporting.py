"""What a run tells: log lines, a progress bar on a terminal, metrics.jsonl and TensorBoard."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping

import tensorflow as tf
from absl import logging
from tqdm import tqdm

from albert_tf import files, model_directory

METRICS_FILE = "metrics.jsonl"
SUMMARIES = "tensorboard"


class Reporter:
    """Reports the steps of one run in `output_dir`.

    Args:
      output_dir: the model directory.
      num_train_steps: where the run ends.
      start_step: where this process starts; later lines of an interrupted run are dropped.
      sequences_per_step: the global batch size.
    """

    def __init__(
        self, output_dir: str, num_train_steps: int, start_step: int, sequences_per_step: int
    ):
        self._metrics_path = os.path.join(output_dir, METRICS_FILE)
        self._num_train_steps = num_train_steps
        self._sequences_per_step = sequences_per_step
        self._start_step = self._last_step = start_step
        self._last_time: float | None = None
        _keep(self._metrics_path, lambda line: line["step"] <= start_step)
        self._summaries = tf.summary.create_file_writer(os.path.join(output_dir, SUMMARIES))
        self._bar = tqdm(
            total=num_train_steps, initial=start_step, unit="step", disable=None, smoothing=0.1
        )

    def train(self, step: int, metrics: Mapping[str, float]) -> None:
        """Reports means over the steps since the last report."""
        now = time.monotonic()
        rates = {}
        # The first report's time is mostly tracing, so rates start with the second.
        if self._last_time is not None and step > self._last_step:
            steps_per_second = (step - self._last_step) / (now - self._last_time)
            rates = {
                "steps_per_second": steps_per_second,
                "sequences_per_second": steps_per_second * self._sequences_per_step,
            }
        _append(self._metrics_path, step, "train", {**metrics, **rates})
        _summarize(self._summaries, step, "train", {**metrics, **rates})
        self._bar.update(step - self._last_step)
        logging.info(
            "step %d/%d  %s", step, self._num_train_steps, self._line(step, metrics, rates)
        )
        self._last_step, self._last_time = step, now

    def close(self) -> None:
        """Flushes everything."""
        self._bar.close()
        self._summaries.close()

    def _line(self, step: int, metrics: Mapping[str, float], rates: Mapping[str, float]) -> str:
        parts = [f"{name} {value:.4g}" for name, value in metrics.items()]
        if rates:
            left = (self._num_train_steps - step) / rates["steps_per_second"]
            eta = time.strftime("%H:%M:%S", time.gmtime(left))
            days = f"{int(left // 86400)}d " if left >= 86400 else ""
            parts.append(f"{rates['sequences_per_second']:.1f} sequences/s  ETA {days}{eta}")
        return "  ".join(parts)


def report_evaluation(output_dir: str, step: int, metrics: Mapping[str, float]) -> None:
    """Reports metrics of held-out data, and keeps them in eval_results.json.

    An earlier evaluation of the same step is replaced.
    """
    path = os.path.join(output_dir, METRICS_FILE)
    _keep(path, lambda line: (line["step"], line["kind"]) != (step, "eval"))
    _append(path, step, "eval", metrics)
    summaries = tf.summary.create_file_writer(os.path.join(output_dir, SUMMARIES))
    _summarize(summaries, step, "eval", metrics)
    summaries.close()
    files.write_json(
        os.path.join(output_dir, model_directory.EVAL_RESULTS_FILE), {"step": step, **metrics}
    )
    shown = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
    logging.info("evaluation at step %d: %s", step, shown)


def _keep(path: str, wanted: Callable[[dict], bool]) -> None:
    """Drops the other lines of a metrics file, and one cut short when its process was killed."""
    if not tf.io.gfile.exists(path):
        return
    with tf.io.gfile.GFile(path, "r") as handle:
        lines = handle.read().splitlines()
    kept = []
    for line in lines:
        with contextlib.suppress(ValueError, KeyError):
            if wanted(json.loads(line)):
                kept.append(line + "\n")
    if len(kept) < len(lines):
        files.write_text(path, "".join(kept))


def _append(path: str, step: int, kind: str, metrics: Mapping[str, float]) -> None:
    with tf.io.gfile.GFile(path, "a") as handle:
        handle.write(json.dumps({"step": step, "kind": kind, **metrics}) + "\n")


def _summarize(
    writer: tf.summary.SummaryWriter, step: int, kind: str, metrics: Mapping[str, float]
) -> None:
    with writer.as_default(step=step):
        for name, value in metrics.items():
            tf.summary.scalar(f"{kind}/{name}", value)
