"""The feed-forward half of an encoder layer with its residual connection and LayerNorm."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.functional import Dropout, activation, dense, layer_norm
from albert_tf.layers.parameters import ParameterLayer


class FeedForwardWeights(NamedTuple):
    """A block's weights as the step uses them, cast once."""

    intermediate_kernel: tf.Tensor
    intermediate_bias: tf.Tensor
    output_kernel: tf.Tensor
    output_bias: tf.Tensor
    gamma: tf.Tensor
    beta: tf.Tensor


class FeedForwardBlock(ParameterLayer):
    """hidden -> intermediate -> hidden."""

    def __init__(self, config: AlbertConfig, seed: int, name: str):
        super().__init__(config, seed, name)
        hidden, intermediate = config.hidden_size, config.intermediate_size
        self.intermediate_kernel = self.add_normal("intermediate/kernel", [hidden, intermediate])
        self.intermediate_bias = self.add_zeros("intermediate/bias", [intermediate])
        self.output_kernel = self.add_normal("output/kernel", [intermediate, hidden])
        self.output_bias = self.add_zeros("output/bias", [hidden])
        self.gamma = self.add_ones("LayerNorm/gamma", [hidden])
        self.beta = self.add_zeros("LayerNorm/beta", [hidden])

    def prepare(self, dtype: tf.DType) -> FeedForwardWeights:
        """Casts the weights, once a step however many layers share them."""
        return FeedForwardWeights(
            tf.cast(self.intermediate_kernel, dtype),
            tf.cast(self.intermediate_bias, dtype),
            tf.cast(self.output_kernel, dtype),
            tf.cast(self.output_bias, dtype),
            tf.convert_to_tensor(self.gamma),
            tf.convert_to_tensor(self.beta),
        )

    def call(self, x: tf.Tensor, weights: FeedForwardWeights, dropout: Dropout) -> tf.Tensor:
        """[batch * seq_length, hidden] -> the same shape and dtype."""
        config = self.config
        inner = dense(x, weights.intermediate_kernel, weights.intermediate_bias)
        inner = activation(config.hidden_act)(inner)
        output = dense(inner, weights.output_kernel, weights.output_bias)
        output = dropout(output, config.hidden_dropout_prob)
        return layer_norm(x + output, weights.gamma, weights.beta, config.layer_norm_eps)
