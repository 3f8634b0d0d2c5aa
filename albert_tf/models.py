"""Encoder, pretrainer and classifier, each from an AlbertConfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.embeddings import FactorizedEmbeddings
from albert_tf.layers.encoder import SharedEncoder
from albert_tf.layers.functional import dropout_for
from albert_tf.layers.heads import MaskedLMHead, PooledOutputHead, Pooler

COMPUTE_DTYPES = ("float32", "bfloat16")
SENTENCE_ORDER_LABELS = 2

Features = Mapping[str, tf.Tensor]


class AlbertModel(tf.keras.Model):
    """Base of our models: built from an AlbertConfig, variables created at construction.

    Args:
      config: sizes and rates.
      compute_dtype: "float32" or "bfloat16"; variables and outputs are float32 either way.
      seed: of the initial weights.
    """

    def __init__(
        self,
        config: AlbertConfig,
        compute_dtype: str = "float32",
        seed: int = 0,
        name: str | None = None,
    ):
        super().__init__(name=name)
        self.config = config
        self.step_dtype = compute_dtype
        self.seed = seed
        self.built = True  # there is nothing left for a first call to create

    def get_config(self) -> dict[str, Any]:
        """JSON values from which from_config() makes an equal model."""
        return {
            "config": self.config.to_dict(),
            "compute_dtype": self.step_dtype,
            "seed": self.seed,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> AlbertModel:
        """The reverse of get_config()."""
        return cls(**{**config, "config": AlbertConfig.from_dict(config["config"])})

    def in_float32(self) -> AlbertModel:
        """A model that computes in float32 with these weights: this one, or a copy."""
        if self.step_dtype == "float32":
            return self
        copy = self.from_config({**self.get_config(), "compute_dtype": "float32"})
        copy.set_weights(self.get_weights())
        return copy


class AlbertEncoder(AlbertModel):
    """Maps token ids to contextual vectors."""

    def __init__(self, config: AlbertConfig, *args: Any, name: str = "albert", **kwargs: Any):
        super().__init__(config, *args, name=name, **kwargs)
        self.embeddings = FactorizedEmbeddings(config, self.seed)
        self.encoder = SharedEncoder(config, self.seed)
        self.pooler = Pooler(config, self.seed)

    def call(
        self,
        inputs: Features,
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
        return_all_layers: bool = False,
        output_positions: tf.Tensor | None = None,
    ) -> dict[str, tf.Tensor]:
        """Runs the encoder.

        Args:
          inputs: input_ids, and optionally input_mask (default: all 1) and segment_ids
            (default: all 0), each int32 [batch, seq_length].
          training: whether dropout is applied.
          dropout_seed: int32 [2]; which dropout masks are drawn.
          return_all_layers: whether to add `all_layer_outputs`.
          output_positions: int32 [batch, outputs], column 0 being position 0, which is pooled:
            the positions at which the last layer is wanted; it skips the others, which saves
            most of its time. None for all.

        Returns:
          sequence_output [batch, seq_length, hidden] ([batch, outputs, hidden] with
          output_positions), pooled_output [batch, hidden], and on request all_layer_outputs, a
          list of [batch, seq_length, hidden], the last as sequence_output; all float32.
        """
        ids = tf.cast(inputs["input_ids"], tf.int32)
        mask = inputs.get("input_mask")
        segments = inputs.get("segment_ids")
        mask = tf.ones_like(ids) if mask is None else mask
        segments = tf.zeros_like(ids) if segments is None else segments
        self._check_length(ids)
        dropout = dropout_for(training, dropout_seed)
        embedded = self.embeddings(ids, segments, dropout)
        dtype = tf.as_dtype(self.step_dtype)
        layers = self.encoder(embedded, mask, dropout, dtype, output_positions)
        layers = [tf.cast(layer, tf.float32) for layer in layers]
        outputs = {"sequence_output": layers[-1], "pooled_output": self.pooler(layers[-1])}
        if return_all_layers:
            outputs["all_layer_outputs"] = layers
        return outputs

    def _check_length(self, ids: tf.Tensor) -> None:
        if ids.shape.rank != 2:
            raise ValueError(f"input_ids must be [batch, seq_length], not {ids.shape}")
        length, limit = ids.shape[1], self.config.max_position_embeddings
        if length is not None and length > limit:
            raise ValueError(f"seq_length {length} exceeds max_position_embeddings {limit}")


class AlbertPretrainer(AlbertModel):
    """Encoder with masked-LM and sentence-order heads."""

    def __init__(self, config: AlbertConfig, *args: Any, name: str = "pretrainer", **kwargs: Any):
        super().__init__(config, *args, name=name, **kwargs)
        self.encoder = AlbertEncoder(config, self.step_dtype, self.seed)
        self.masked_lm = MaskedLMHead(config, self.seed)
        self.sentence_order = PooledOutputHead(
            config, SENTENCE_ORDER_LABELS, self.seed, "sentence_order"
        )

    def call(
        self, inputs: Features, training: bool = False, dropout_seed: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Runs encoder and heads on the features of pretraining records.

        Args:
          inputs: input_ids, input_mask, segment_ids, int32 [batch, seq_length], and
            masked_lm_positions, int32 [batch, predictions].
          training: whether dropout is applied.
          dropout_seed: int32 [2].

        Returns:
          masked_lm_logits [batch, predictions, vocab] and sentence_order_logits [batch, 2]
          (class 0: in order, class 1: swapped), float32.
        """
        masked = tf.cast(inputs["masked_lm_positions"], tf.int32)
        outputs = self.encoder(
            inputs,
            training=training,
            dropout_seed=dropout_seed,
            output_positions=tf.concat([tf.zeros_like(masked[:, :1]), masked], axis=1),
        )
        masked_output = tf.cast(outputs["sequence_output"][:, 1:], self.step_dtype)
        return {
            "masked_lm_logits": self.masked_lm(
                masked_output, self.encoder.embeddings.word_embeddings
            ),
            "sentence_order_logits": self.sentence_order(outputs["pooled_output"]),
        }


class AlbertClassifier(AlbertModel):
    """Encoder with a linear classifier on the pooled output (official run_classifier.py).

    Args:
      config: sizes and rates.
      num_labels: number of classes.
      classifier_dropout: dropout of the pooled output, .1 in the paper's Table 14.
    """

    def __init__(
        self,
        config: AlbertConfig,
        num_labels: int,
        *args: Any,
        classifier_dropout: float = 0.1,
        name: str = "classifier",
        **kwargs: Any,
    ):
        super().__init__(config, *args, name=name, **kwargs)
        self.num_labels = num_labels
        self.classifier_dropout = classifier_dropout
        self.encoder = AlbertEncoder(config, self.step_dtype, self.seed)
        self.head = PooledOutputHead(config, num_labels, self.seed, "classifier")

    def get_config(self) -> dict[str, Any]:
        """JSON values from which from_config() makes an equal model."""
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
            "classifier_dropout": self.classifier_dropout,
        }

    def call(
        self, inputs: Features, training: bool = False, dropout_seed: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """As AlbertEncoder.call, but returns logits, float32 [batch, num_labels]."""
        outputs = self.encoder(
            inputs,
            training=training,
            dropout_seed=dropout_seed,
            output_positions=tf.zeros_like(inputs["input_ids"][:, :1], tf.int32),
        )
        pooled = outputs["pooled_output"]
        if training and self.classifier_dropout:
            if dropout_seed is not None:  # the encoder's dropout sites count from 1
                dropout_seed = tf.random.experimental.stateless_fold_in(dropout_seed, 0)
            pooled = dropout_for(training, dropout_seed)(pooled, self.classifier_dropout)
        return {"logits": self.head(pooled)}
