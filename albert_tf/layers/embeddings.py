"""Factorised embeddings: tables of width E, much smaller than the encoder (paper, 3.1)."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.functional import Dropout, dimensions, layer_norm
from albert_tf.layers.parameters import ParameterLayer


class FactorizedEmbeddings(ParameterLayer):
    """Sum of word, segment and position embeddings, normalised."""

    def __init__(self, config: AlbertConfig, seed: int, name: str = "embeddings"):
        super().__init__(config, seed, name)
        width = config.embedding_size
        self.word_embeddings = self.add_normal("word_embeddings", [config.vocab_size, width])
        self.token_type_embeddings = self.add_normal(
            "token_type_embeddings", [config.type_vocab_size, width]
        )
        self.position_embeddings = self.add_normal(
            "position_embeddings", [config.max_position_embeddings, width]
        )
        self.gamma = self.add_ones("LayerNorm/gamma", [width])
        self.beta = self.add_zeros("LayerNorm/beta", [width])

    def call(self, input_ids: tf.Tensor, segment_ids: tf.Tensor, dropout: Dropout) -> tf.Tensor:
        """int32 [batch, seq_length] twice -> float32 [batch, seq_length, embedding_size]."""
        seq_length = dimensions(input_ids)[1]
        words = tf.gather(self.word_embeddings, input_ids)
        # A product with so few rows is cheaper than a gather's scatter in the backward pass.
        one_hot = tf.one_hot(segment_ids, self.config.type_vocab_size)
        segments = tf.einsum("bst,te->bse", one_hot, self.token_type_embeddings)
        summed = words + segments + self.position_embeddings[:seq_length]
        normalized = layer_norm(summed, self.gamma, self.beta, self.config.layer_norm_eps)
        return dropout(normalized, self.config.hidden_dropout_prob)
