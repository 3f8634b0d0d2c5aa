"""The shared encoder: follows the config's schedule of attention and feed-forward blocks."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.attention import AttentionBlock, attention_bias
from albert_tf.layers.feed_forward import FeedForwardBlock
from albert_tf.layers.functional import Dropout, dense, dimensions
from albert_tf.layers.operations import FUSED, PLAIN
from albert_tf.layers.parameters import ParameterLayer


class SharedEncoder(ParameterLayer):
    """Cross-layer parameter sharing (paper, 3.1) as AlbertConfig.block_schedule() lays it out."""

    def __init__(self, config: AlbertConfig, seed: int, name: str = "encoder"):
        super().__init__(config, seed, name)
        self.schedule = config.block_schedule()
        # The official code projects only where the widths differ.
        self.has_projection = config.embedding_size != config.hidden_size
        if self.has_projection:
            self.projection_kernel = self.add_normal(
                "embedding_hidden_mapping_in/kernel", [config.embedding_size, config.hidden_size]
            )
            self.projection_bias = self.add_zeros(
                "embedding_hidden_mapping_in/bias", [config.hidden_size]
            )
        attention_blocks = 1 + max(attention for attention, _ in self.schedule)
        ffn_blocks = 1 + max(ffn for _, ffn in self.schedule)
        self.attention_blocks = [
            AttentionBlock(config, seed, f"attention_{i}") for i in range(attention_blocks)
        ]
        self.ffn_blocks = [FeedForwardBlock(config, seed, f"ffn_{i}") for i in range(ffn_blocks)]

    def call(
        self,
        embeddings: tf.Tensor,
        input_mask: tf.Tensor,
        dropout: Dropout,
        compute_dtype: tf.DType,
        output_positions: tf.Tensor | None = None,
    ) -> list[tf.Tensor]:
        """Runs every layer.

        Args:
          embeddings: float32 [batch, seq_length, embedding_size].
          input_mask: int32 [batch, seq_length], 1 = attend.
          dropout: for the sub-layers.
          compute_dtype: of matrix products and activations.
          output_positions: int32 [batch, outputs]; where the last layer's output is wanted, None
            for everywhere. That layer computes nothing else, since no later one would look.

        Returns:
          The output of each block run, [batch, seq_length, hidden] in compute_dtype, but
          [batch, outputs, hidden] of the last with output_positions.
        """
        batch, seq_length = dimensions(embeddings)[:2]
        hidden = self.config.hidden_size
        x = tf.reshape(tf.cast(embeddings, compute_dtype), [-1, self.config.embedding_size])
        if self.has_projection:
            kernel = tf.cast(self.projection_kernel, compute_dtype)
            x = dense(x, kernel, tf.cast(self.projection_bias, compute_dtype))
        bias = attention_bias(input_mask)
        attention_weights = [block.prepare(compute_dtype) for block in self.attention_blocks]
        ffn_weights = [block.prepare(compute_dtype) for block in self.ffn_blocks]
        # Fused operations compile once a shape: for a graph of one shape, not for eager calls.
        one_shape = not tf.executing_eagerly() and embeddings.shape.is_fully_defined()
        operations = FUSED if dropout.active or one_shape else PLAIN
        outputs = []
        for layer, (attention, ffn) in enumerate(self.schedule, start=1):
            positions = output_positions if layer == len(self.schedule) else None
            weights = attention_weights[attention]
            x = self.attention_blocks[attention](x, bias, weights, dropout, operations, positions)
            x = self.ffn_blocks[ffn](x, ffn_weights[ffn], dropout, operations)
            length = seq_length if positions is None else dimensions(positions)[1]
            outputs.append(tf.reshape(x, [batch, length, hidden]))
        return outputs
