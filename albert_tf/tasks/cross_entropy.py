"""Softmax cross entropy, quick over a whole vocabulary too.

TensorFlow's own kernel takes a fifth of a small model's pretraining step on a CPU; compiled with
XLA, the same sums take a third of that.
"""

from __future__ import annotations

import tensorflow as tf

COMPILED_FROM_CLASSES = 1024
"""Where there are fewer, compiling would take longer than it saves."""


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """float32 logits [..., classes] and int32 labels [...] -> float32 [...]."""
    # Compiles once a shape: for a graph of one shape, not for eager calls.
    one_shape = not tf.executing_eagerly() and logits.shape.is_fully_defined()
    if not one_shape or logits.shape[-1] < COMPILED_FROM_CLASSES:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    flat = _compiled(tf.reshape(logits, [-1, logits.shape[-1]]), tf.reshape(labels, [-1]))
    return tf.reshape(flat, labels.shape)


def _compiled(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    @tf.custom_gradient
    def apply(logits: tf.Tensor):
        log_sums = _log_sum_exp(logits)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            return _to_logits(logits, labels, log_sums, upstream)

        return log_sums - tf.gather(logits, labels, batch_dims=1), gradient

    return apply(logits)


@tf.function(jit_compile=True, autograph=False)
def _log_sum_exp(logits: tf.Tensor) -> tf.Tensor:
    largest = tf.reduce_max(logits, axis=-1, keepdims=True)
    sums = tf.reduce_sum(tf.exp(logits - largest), axis=-1, keepdims=True)
    return (largest + tf.math.log(sums))[:, 0]


@tf.function(jit_compile=True, autograph=False)
def _to_logits(
    logits: tf.Tensor, labels: tf.Tensor, log_sums: tf.Tensor, upstream: tf.Tensor
) -> tf.Tensor:
    probabilities = tf.exp(logits - log_sums[:, tf.newaxis])
    return upstream[:, tf.newaxis] * (probabilities - tf.one_hot(labels, logits.shape[-1]))
