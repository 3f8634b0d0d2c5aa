"""What stands on the encoder: pooler, masked-LM head, sentence-order and classification heads."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.functional import activation, dense, dimensions, layer_norm
from albert_tf.layers.parameters import ParameterLayer


class Pooler(ParameterLayer):
    """tanh of a dense layer on the first position, [CLS]."""

    def __init__(self, config: AlbertConfig, seed: int, name: str = "pooler"):
        super().__init__(config, seed, name)
        self.kernel = self.add_normal("kernel", [config.hidden_size, config.hidden_size])
        self.bias = self.add_zeros("bias", [config.hidden_size])

    def call(self, sequence_output: tf.Tensor) -> tf.Tensor:
        """float32 [batch, seq_length, hidden] -> [batch, hidden]."""
        return tf.tanh(dense(sequence_output[:, 0], self.kernel, self.bias))


class MaskedLMHead(ParameterLayer):
    """Predicts masked pieces; its output matrix is the word embedding table."""

    def __init__(self, config: AlbertConfig, seed: int, name: str = "masked_lm"):
        super().__init__(config, seed, name)
        width = config.embedding_size
        self.transform_kernel = self.add_normal("transform/kernel", [config.hidden_size, width])
        self.transform_bias = self.add_zeros("transform/bias", [width])
        self.gamma = self.add_ones("transform/LayerNorm/gamma", [width])
        self.beta = self.add_zeros("transform/LayerNorm/beta", [width])
        self.output_bias = self.add_zeros("output_bias", [config.vocab_size])

    def call(self, masked_output: tf.Tensor, word_embeddings: tf.Tensor) -> tf.Tensor:
        """Logits of masked positions.

        Args:
          masked_output: [batch, predictions, hidden] in the compute dtype, the encoder's output
            at these positions only: the vocabulary product is the dear one.
          word_embeddings: float32 [vocab, embedding_size].

        Returns:
          float32 [batch, predictions, vocab].
        """
        dtype = masked_output.dtype
        batch, predictions, hidden = dimensions(masked_output)
        x = tf.reshape(masked_output, [-1, hidden])
        x = dense(x, tf.cast(self.transform_kernel, dtype), tf.cast(self.transform_bias, dtype))
        x = activation(self.config.hidden_act)(x)
        x = layer_norm(x, self.gamma, self.beta, self.config.layer_norm_eps)
        logits = tf.matmul(x, tf.cast(word_embeddings, dtype), transpose_b=True)
        logits = tf.cast(logits, tf.float32) + self.output_bias
        return tf.reshape(logits, [batch, predictions, self.config.vocab_size])


class PooledOutputHead(ParameterLayer):
    """A linear layer on the pooled output: sentence order, or a fine-tuned classifier."""

    def __init__(self, config: AlbertConfig, num_labels: int, seed: int, name: str):
        super().__init__(config, seed, name)
        # [labels, hidden] as in official checkpoints; the name keeps it decayed and adapted.
        self.output_weights = self.add_normal("output_weights", [num_labels, config.hidden_size])
        self.output_bias = self.add_zeros("output_bias", [num_labels])

    def call(self, pooled_output: tf.Tensor) -> tf.Tensor:
        """float32 [batch, hidden] -> float32 [batch, num_labels]."""
        return tf.nn.bias_add(
            tf.matmul(pooled_output, self.output_weights, transpose_b=True), self.output_bias
        )
