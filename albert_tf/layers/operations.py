"""The elementwise stretches of an encoder layer, plain and fused.

A training step spends as long on these as on matrix products where the model is small. FUSED
compiles each stretch with XLA and has hand-written gradients that keep few intermediates; matrix
products and column sums stay outside, since XLA's are slow on CPUs. It compiles once a shape, so
training and evaluation use it, and serving, with its many shapes, PLAIN. Both compute in float32
and round once to the dtype of their input, so they give equal numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers import functional


class Operations(NamedTuple):
    """One implementation of each stretch.

    bias_gelu(x [rows, width], bias [width]) -> [rows, width].
    add_layer_norm(x, residual [rows, width], bias, gamma, beta [width], epsilon) -> [rows, width].
    softmax(scores [batch, heads, from, to], scale, bias [batch, 1, 1, to]) -> like scores.
    """

    bias_gelu: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    add_layer_norm: Callable[..., tf.Tensor]
    softmax: Callable[[tf.Tensor, float, tf.Tensor], tf.Tensor]


def _plain_bias_gelu(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    return tf.cast(functional.gelu(tf.nn.bias_add(tf.cast(x, tf.float32), bias)), x.dtype)


def _plain_add_layer_norm(x, residual, bias, gamma, beta, epsilon: float) -> tf.Tensor:
    summed = tf.cast(residual, tf.float32) + tf.nn.bias_add(tf.cast(x, tf.float32), bias)
    return tf.cast(functional.layer_norm(summed, gamma, beta, epsilon), x.dtype)


def _plain_softmax(scores: tf.Tensor, scale: float, bias: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.nn.softmax(tf.cast(scores, tf.float32) * scale + bias), scores.dtype)


def _column_sums(x: tf.Tensor) -> tf.Tensor:
    """[rows, width] -> float32 [width], as a product, which is the fastest way on a CPU."""
    ones = tf.ones([1, functional.dimensions(x)[0]], tf.float32)
    return tf.matmul(ones, tf.cast(x, tf.float32))[0]


@tf.function(jit_compile=True)
def _bias_gelu_forward(x, bias):
    return functional.gelu(tf.cast(x, tf.float32) + bias)


@tf.function(jit_compile=True)
def _bias_gelu_backward(x, bias, upstream):
    values = tf.cast(x, tf.float32) + bias
    square = values * values
    tanh = tf.tanh(functional.GELU_SCALE * values * (1.0 + functional.GELU_CUBIC * square))
    inner_slope = functional.GELU_SCALE * (1.0 + 3 * functional.GELU_CUBIC * square)
    slope = 0.5 * (1.0 + tanh) + 0.5 * values * (1.0 - tanh * tanh) * inner_slope
    return tf.cast(tf.cast(upstream, tf.float32) * slope, x.dtype)


@tf.custom_gradient
def _fused_bias_gelu(x: tf.Tensor, bias: tf.Tensor):
    def gradient(upstream):
        to_x = _bias_gelu_backward(x, bias, upstream)
        return to_x, _column_sums(to_x)

    return tf.cast(_bias_gelu_forward(x, bias), x.dtype), gradient


@tf.function(jit_compile=True)
def _add_layer_norm_forward(x, residual, bias, gamma, beta, epsilon):
    summed = tf.cast(x, tf.float32) + tf.cast(residual, tf.float32) + bias
    mean = tf.reduce_mean(summed, axis=-1, keepdims=True)
    centered = summed - mean
    variance = tf.reduce_mean(centered * centered, axis=-1, keepdims=True)
    inverse_deviation = tf.math.rsqrt(variance + epsilon)
    normalized = centered * inverse_deviation
    return (
        tf.cast(normalized * gamma + beta, x.dtype),
        tf.cast(normalized, x.dtype),
        inverse_deviation,
    )


@tf.function(jit_compile=True)
def _add_layer_norm_backward(normalized, inverse_deviation, gamma, upstream):
    normalized_f32, upstream_f32 = (tf.cast(t, tf.float32) for t in (normalized, upstream))
    scaled = upstream_f32 * gamma
    product = upstream_f32 * normalized_f32
    mean = tf.reduce_mean(scaled, axis=-1, keepdims=True)
    along = tf.reduce_mean(scaled * normalized_f32, axis=-1, keepdims=True)
    to_sum = inverse_deviation * (scaled - mean - normalized_f32 * along)
    return tf.cast(to_sum, normalized.dtype), tf.cast(product, normalized.dtype)


def _fused_add_layer_norm(x, residual, bias, gamma, beta, epsilon: float) -> tf.Tensor:
    @tf.custom_gradient
    def apply(x, residual, bias, gamma, beta):
        output, normalized, inverse_deviation = _add_layer_norm_forward(
            x, residual, bias, gamma, beta, epsilon
        )

        def gradient(upstream):
            to_sum, product = _add_layer_norm_backward(
                normalized, inverse_deviation, gamma, upstream
            )
            return (
                to_sum,
                to_sum,
                _column_sums(to_sum),
                _column_sums(product),
                _column_sums(upstream),
            )

        return output, gradient

    return apply(x, residual, bias, gamma, beta)


@tf.function(jit_compile=True)
def _softmax_forward(scores, scale, bias):
    return _plain_softmax(scores, scale, bias)


@tf.function(jit_compile=True)
def _softmax_backward(probabilities, scale, upstream):
    p, up = tf.cast(probabilities, tf.float32), tf.cast(upstream, tf.float32)
    to_scores = (up - tf.reduce_sum(up * p, axis=-1, keepdims=True)) * p * scale
    return tf.cast(to_scores, probabilities.dtype)


def _fused_softmax(scores: tf.Tensor, scale: float, bias: tf.Tensor) -> tf.Tensor:
    @tf.custom_gradient
    def apply(scores):
        probabilities = _softmax_forward(scores, scale, bias)
        return probabilities, lambda upstream: _softmax_backward(probabilities, scale, upstream)

    return apply(scores)


PLAIN = Operations(_plain_bias_gelu, _plain_add_layer_norm, _plain_softmax)
FUSED = Operations(_fused_bias_gelu, _fused_add_layer_norm, _fused_softmax)


class ResidualWeights(Protocol):
    """What a block adds after its last product."""

    output_bias: tf.Tensor
    gamma: tf.Tensor
    beta: tf.Tensor


def residual_layer_norm(
    output: tf.Tensor,
    residual: tf.Tensor,
    weights: ResidualWeights,
    config: AlbertConfig,
    dropout: functional.Dropout,
    operations: Operations,
) -> tf.Tensor:
    """The end of both halves of a layer: LayerNorm(residual + dropout(output + bias))."""
    bias, rate = weights.output_bias, config.hidden_dropout_prob
    if dropout.active and rate:
        output = dropout(tf.nn.bias_add(output, tf.cast(bias, output.dtype)), rate)
        bias = tf.zeros_like(bias)
    return operations.add_layer_norm(
        output, residual, bias, weights.gamma, weights.beta, config.layer_norm_eps
    )
