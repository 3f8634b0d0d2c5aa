"""A Keras layer that creates its variables at construction, with official names and seeds."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import tensorflow as tf

from albert_tf.config import AlbertConfig


def truncated_normal(stddev: float, seed: int, name: str) -> Callable[..., tf.Tensor]:
    """An initializer whose values depend on the seed and the variable's name alone."""

    def initialize(shape: Sequence[int], dtype: tf.DType = tf.float32, **_: object) -> tf.Tensor:
        return tf.random.stateless_truncated_normal(
            shape, seed=[seed, zlib.crc32(name.encode())], stddev=stddev, dtype=dtype
        )

    return initialize


class ParameterLayer(tf.keras.layers.Layer):
    """Base of all our layers: float32 variables, no automatic casting.

    Variable names carry "LayerNorm" and "bias" where the official ones do, since LAMB and AdamW
    exclude variables by those names.
    """

    def __init__(self, config: AlbertConfig, seed: int, name: str):
        super().__init__(name=name, dtype=tf.float32, autocast=False)
        self.config = config
        self.seed = seed
        self.built = True  # there is nothing left for a first call to create

    def add_normal(self, name: str, shape: Sequence[int]) -> tf.Variable:
        """A kernel or table, drawn from a truncated normal of the config's initializer_range."""
        full_name = f"{self.name}/{name}"
        initializer = truncated_normal(self.config.initializer_range, self.seed, full_name)
        return self.add_weight(name=full_name, shape=shape, initializer=initializer)

    def add_zeros(self, name: str, shape: Sequence[int]) -> tf.Variable:
        """A bias or LayerNorm beta."""
        return self.add_weight(name=f"{self.name}/{name}", shape=shape, initializer="zeros")

    def add_ones(self, name: str, shape: Sequence[int]) -> tf.Variable:
        """A LayerNorm gamma."""
        return self.add_weight(name=f"{self.name}/{name}", shape=shape, initializer="ones")
