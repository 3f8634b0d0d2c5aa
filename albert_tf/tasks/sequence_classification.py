"""Classification of texts or pairs by the pooled output (official run_classifier.py)."""

from __future__ import annotations

from albert_tf.config import AlbertConfig
from albert_tf.data.classification import LABEL
from albert_tf.models import AlbertClassifier
from albert_tf.tasks.task import (
    Batch,
    Ratio,
    example_weights,
    weighted_accuracy,
    weighted_cross_entropy,
)


class SequenceClassificationTask:
    """Mean cross entropy over the classes."""

    loss_names = ("loss",)
    metric_names = ("accuracy",)

    def __init__(
        self,
        config: AlbertConfig,
        num_labels: int,
        compute_dtype: str = "float32",
        seed: int = 0,
        classifier_dropout: float = 0.1,
    ):
        self.model = AlbertClassifier(
            config, num_labels, compute_dtype, seed, classifier_dropout=classifier_dropout
        )

    def losses(self, batch: Batch, outputs: Batch) -> dict[str, Ratio]:
        """One replica's share of the loss."""
        weights = example_weights(batch, batch[LABEL])
        return {"loss": weighted_cross_entropy(outputs["logits"], batch[LABEL], weights)}

    def metrics(self, batch: Batch, outputs: Batch) -> dict[str, Ratio]:
        """One replica's share of the accuracy."""
        weights = example_weights(batch, batch[LABEL])
        return {"accuracy": weighted_accuracy(outputs["logits"], batch[LABEL], weights)}
