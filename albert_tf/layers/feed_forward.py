"""The feed-forward half of an encoder layer with its residual connection and LayerNorm."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.functional import Dropout, activation
from albert_tf.layers.operations import Operations, residual_layer_norm
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
            tf.convert_to_tensor(self.intermediate_bias),
            tf.cast(self.output_kernel, dtype),
            tf.convert_to_tensor(self.output_bias),
            tf.convert_to_tensor(self.gamma),
            tf.convert_to_tensor(self.beta),
        )

    def call(
        self,
        x: tf.Tensor,
        weights: FeedForwardWeights,
        dropout: Dropout,
        operations: Operations,
    ) -> tf.Tensor:
        """[batch * seq_length, hidden] -> the same shape and dtype."""
        config = self.config
        inner = tf.matmul(x, weights.intermediate_kernel)
        if config.hidden_act == "gelu":
            inner = operations.bias_gelu(inner, weights.intermediate_bias)
        else:
            bias = tf.cast(weights.intermediate_bias, x.dtype)
            inner = activation(config.hidden_act)(tf.nn.bias_add(inner, bias))
        output = tf.matmul(inner, weights.output_kernel)
        return residual_layer_norm(output, x, weights, config, dropout, operations)
