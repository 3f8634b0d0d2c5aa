"""Multi-head self-attention with its residual connection and LayerNorm."""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.functional import Dropout, dense, dimensions, gather_positions
from albert_tf.layers.operations import Operations, residual_layer_norm
from albert_tf.layers.parameters import ParameterLayer

MASKED_SCORE = -10000.0
"""Added to the scores of masked keys; the official value, which float16 can hold too."""


class AttentionWeights(NamedTuple):
    """A block's weights as the step uses them: cast once, query, key and value joined."""

    qkv_kernel: tf.Tensor
    qkv_bias: tf.Tensor
    output_kernel: tf.Tensor
    output_bias: tf.Tensor
    gamma: tf.Tensor
    beta: tf.Tensor


class AttentionBlock(ParameterLayer):
    """The attention half of an encoder layer; variables have the official shapes."""

    def __init__(self, config: AlbertConfig, seed: int, name: str):
        super().__init__(config, seed, name)
        hidden = config.hidden_size
        for projection in ("query", "key", "value", "output"):
            # "output" is a property of Keras layers, hence the suffixes.
            kernel = self.add_normal(f"{projection}/kernel", [hidden, hidden])
            setattr(self, f"{projection}_kernel", kernel)
            setattr(self, f"{projection}_bias", self.add_zeros(f"{projection}/bias", [hidden]))
        self.gamma = self.add_ones("LayerNorm/gamma", [hidden])
        self.beta = self.add_zeros("LayerNorm/beta", [hidden])

    def prepare(self, dtype: tf.DType) -> AttentionWeights:
        """Casts and joins the weights, once a step however many layers share them."""
        kernels = [self.query_kernel, self.key_kernel, self.value_kernel]
        biases = [self.query_bias, self.key_bias, self.value_bias]
        return AttentionWeights(
            tf.cast(tf.concat(kernels, axis=1), dtype),
            tf.cast(tf.concat(biases, axis=0), dtype),
            tf.cast(self.output_kernel, dtype),
            tf.convert_to_tensor(self.output_bias),
            tf.convert_to_tensor(self.gamma),
            tf.convert_to_tensor(self.beta),
        )

    def call(
        self,
        x: tf.Tensor,
        attention_bias: tf.Tensor,
        weights: AttentionWeights,
        dropout: Dropout,
        operations: Operations,
        output_positions: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Runs the block.

        Args:
          x: [batch * seq_length, hidden].
          attention_bias: float32 [batch, 1, 1, seq_length], from attention_bias().
          weights: from prepare().
          dropout: for the probabilities and the output.
          operations: plain or fused.
          output_positions: int32 [batch, outputs], the positions that attend; None for all.

        Returns:
          [batch * outputs, hidden] in the dtype of `x`; outputs is seq_length if all attend.
        """
        config = self.config
        hidden, heads = config.hidden_size, config.num_attention_heads
        depth = hidden // heads
        seq_length = dimensions(attention_bias)[-1]

        def project(rows: tf.Tensor, length: int | tf.Tensor, columns: slice) -> list[tf.Tensor]:
            """Some of query, key and value, each [batch, heads, length, depth]."""
            projected = dense(rows, weights.qkv_kernel[:, columns], weights.qkv_bias[columns])
            kinds = projected.shape[-1] // hidden
            projected = tf.reshape(projected, [-1, length, kinds, heads, depth])
            return tf.unstack(tf.transpose(projected, [2, 0, 3, 1, 4]))

        if output_positions is None:
            residual = x
            query, key, value = project(x, seq_length, slice(None))
        else:
            residual = gather_positions(x, output_positions, seq_length)
            outputs = dimensions(output_positions)[1]
            (query,) = project(residual, outputs, slice(hidden))
            key, value = project(x, seq_length, slice(hidden, None))
        scores = tf.matmul(query, key, transpose_b=True)
        probabilities = operations.softmax(scores, 1.0 / math.sqrt(depth), attention_bias)
        probabilities = dropout(probabilities, config.attention_probs_dropout_prob)
        context = tf.matmul(probabilities, value)
        context = tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [-1, hidden])

        output = tf.matmul(context, weights.output_kernel)
        return residual_layer_norm(output, residual, weights, config, dropout, operations)


def attention_bias(input_mask: tf.Tensor) -> tf.Tensor:
    """int32 [batch, seq_length], 1 = attend -> float32 [batch, 1, 1, seq_length].

    A row that masks everything is shifted as a whole, so it attends as if nothing were masked.
    """
    return (1.0 - tf.cast(input_mask[:, tf.newaxis, tf.newaxis, :], tf.float32)) * MASKED_SCORE
