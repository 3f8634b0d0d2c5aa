"""What the trainer needs to know of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from albert_tf.models import AlbertModel
from albert_tf.tasks.cross_entropy import cross_entropy

Batch = dict[str, tf.Tensor]

EXAMPLE_WEIGHTS = "example_weights"
"""float32 [batch]: 0 for rows that only fill up the last evaluation batch."""


class Ratio(NamedTuple):
    """A mean kept as sum and weight, so that it can be summed over replicas and steps.

    epsilon is added to the summed weight; float32 scalars.
    """

    total: tf.Tensor
    weight: tf.Tensor
    epsilon: float = 0.0


def stack_ratios(ratios: Sequence[Ratio]) -> tf.Tensor:
    """float32 [ratios, 2] of totals and weights."""
    return tf.stack([tf.stack([ratio.total, ratio.weight]) for ratio in ratios])


def ratio_values(names: Sequence[str], sums: np.ndarray) -> dict[str, float]:
    """Totals over weights, [ratios, 2], by name; 0 where nothing was counted."""
    return {
        name: float(total / weight) if weight else 0.0
        for name, (total, weight) in zip(names, sums, strict=True)
    }


class Task(Protocol):
    """A thing that can be trained: a model, its losses and its metrics.

    Attributes:
      model: created under the strategy's scope.
      loss_names: keys of losses(), whose ratios are added up and differentiated.
      metric_names: keys of metrics().
    """

    model: AlbertModel
    loss_names: tuple[str, ...]
    metric_names: tuple[str, ...]

    def losses(self, batch: Batch, outputs: Batch) -> dict[str, Ratio]:
        """One replica's share of each loss."""

    def metrics(self, batch: Batch, outputs: Batch) -> dict[str, Ratio]:
        """One replica's share of each metric."""


def weighted_accuracy(logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> Ratio:
    """Share of labels [...] that are the argmax of logits [..., classes]."""
    correct = tf.cast(tf.equal(tf.argmax(logits, -1, tf.int32), labels), tf.float32)
    return Ratio(tf.reduce_sum(correct * weights), tf.reduce_sum(weights))


def weighted_cross_entropy(
    logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor, epsilon: float = 0.0
) -> Ratio:
    """Cross entropy of labels [...] under logits [..., classes]."""
    losses = cross_entropy(logits, labels)
    return Ratio(tf.reduce_sum(losses * weights), tf.reduce_sum(weights), epsilon)


def example_weights(batch: Batch, labels: tf.Tensor) -> tf.Tensor:
    """The batch's example weights, 1 each where it has none."""
    weights = batch.get(EXAMPLE_WEIGHTS)
    return tf.ones_like(labels, tf.float32) if weights is None else weights
