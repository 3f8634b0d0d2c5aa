"""Stateless pieces of the model: normalisation, activations, dropout, shapes."""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

GELU_SCALE, GELU_CUBIC = math.sqrt(2 / math.pi), 0.044715
"""Constants of the tanh form of GELU."""


def layer_norm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Normalises the last axis; statistics in float32, result in the dtype of `x`."""
    values = tf.cast(x, tf.float32)
    mean, variance = tf.nn.moments(values, axes=[-1], keepdims=True)
    return tf.cast(tf.nn.batch_normalization(values, mean, variance, beta, gamma, epsilon), x.dtype)


def gelu(x: tf.Tensor) -> tf.Tensor:
    """GELU in the tanh form, as official configs mean by "gelu"; computed in float32."""
    values = tf.cast(x, tf.float32)
    inner = GELU_SCALE * values * (1.0 + GELU_CUBIC * values * values)
    return tf.cast(0.5 * values * (1.0 + tf.tanh(inner)), x.dtype)


_ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {"gelu": gelu, "relu": tf.nn.relu}


def activation(name: str) -> Callable[[tf.Tensor], tf.Tensor]:
    """The function that a config's hidden_act names."""
    return _ACTIVATIONS[name]


def dense(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """x [rows, in] times kernel [in, out] plus bias [out]."""
    return tf.nn.bias_add(tf.matmul(x, kernel), bias)


def dimensions(x: tf.Tensor) -> list[int | tf.Tensor]:
    """The sizes of `x`, static where known (always, inside a train step)."""
    dynamic = tf.shape(x)
    return [dynamic[axis] if size is None else size for axis, size in enumerate(x.shape)]


def gather_positions(x: tf.Tensor, positions: tf.Tensor, seq_length: int | tf.Tensor) -> tf.Tensor:
    """Rows of x [batch * seq_length, width] at positions [batch, n] -> [batch * n, width]."""
    starts = tf.range(dimensions(positions)[0]) * seq_length
    return tf.gather(x, tf.reshape(starts[:, tf.newaxis] + positions, [-1]))


class Dropout:
    """Dropout whose masks depend on a seed and the order of the calls alone.

    A resumed run thus draws the masks that the unbroken run would have drawn.

    Args:
      seed: int32 [2], or None to keep everything (inference).
    """

    def __init__(self, seed: tf.Tensor | None):
        self._seed = seed
        self._site = 0

    @property
    def active(self) -> bool:
        """Whether anything is dropped: training, not inference."""
        return self._seed is not None

    def __call__(self, x: tf.Tensor, rate: float) -> tf.Tensor:
        """Zeroes a share `rate` of `x` and scales the rest to keep the mean."""
        if self._seed is None or rate == 0:
            return x
        self._site += 1
        seed = tf.random.experimental.stateless_fold_in(self._seed, self._site)
        return tf.nn.experimental.stateless_dropout(x, rate, seed=seed)


def dropout_for(training: bool, seed: tf.Tensor | None) -> Dropout:
    """Dropout of a model call; training without a seed draws one from TensorFlow's generator."""
    if not training:
        return Dropout(None)
    if seed is None:
        seed = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
    return Dropout(seed)
