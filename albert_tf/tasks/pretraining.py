"""Pretraining: masked-LM and sentence-order losses (paper, 3.1; official run_pretraining.py)."""

from __future__ import annotations

import tensorflow as tf
from scipy import stats

from albert_tf.config import AlbertConfig
from albert_tf.data.record_schema import SENTENCE_LABEL
from albert_tf.models import AlbertPretrainer
from albert_tf.tasks.task import (
    Batch,
    Ratio,
    example_weights,
    weighted_accuracy,
    weighted_cross_entropy,
)

MASKED_LM_EPSILON = 1e-5
"""The official loss divides by the number of predictions plus this."""


class PretrainingTask:
    """The sum of both losses, equally weighted."""

    loss_names = ("masked_lm_loss", "sentence_order_loss")
    metric_names = ("masked_lm_accuracy", "sentence_order_accuracy")

    def __init__(self, config: AlbertConfig, compute_dtype: str = "float32", seed: int = 0):
        self.model = AlbertPretrainer(config, compute_dtype, seed)

    def losses(self, batch: Batch, outputs: Batch) -> dict[str, Ratio]:
        """One replica's share of both losses."""
        labels, weights = _sentence_labels(batch)
        return {
            "masked_lm_loss": weighted_cross_entropy(
                outputs["masked_lm_logits"],
                batch["masked_lm_ids"],
                batch["masked_lm_weights"],
                MASKED_LM_EPSILON,
            ),
            "sentence_order_loss": weighted_cross_entropy(
                outputs["sentence_order_logits"], labels, weights
            ),
        }

    def metrics(self, batch: Batch, outputs: Batch) -> dict[str, Ratio]:
        """One replica's share of both accuracies."""
        labels, weights = _sentence_labels(batch)
        return {
            "masked_lm_accuracy": weighted_accuracy(
                outputs["masked_lm_logits"], batch["masked_lm_ids"], batch["masked_lm_weights"]
            ),
            "sentence_order_accuracy": weighted_accuracy(
                outputs["sentence_order_logits"], labels, weights
            ),
        }


def _sentence_labels(batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
    labels = batch[SENTENCE_LABEL][:, 0]
    return labels, example_weights(batch, labels)


def accuracy_interval(accuracy: float, count: int) -> tuple[float, float]:
    """The 95 % Wilson interval of an accuracy over `count` examples."""
    interval = stats.binomtest(round(accuracy * count), count).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)
