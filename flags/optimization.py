"""How weights are updated."""

from __future__ import annotations

from absl import flags

from albert_tf.optimization import OPTIMIZERS, OptimizationConfig

FLAGS = flags.FLAGS


def define(
    optimizer: str,
    learning_rate: float,
    num_train_steps: int | None,
    num_warmup_steps: int | None,
) -> None:
    """Defines the flags with a script's official defaults."""
    flags.DEFINE_string("optimizer", optimizer, f"One of {', '.join(OPTIMIZERS)}.")
    flags.DEFINE_float("learning_rate", learning_rate, "Peak learning rate.")
    flags.DEFINE_integer("num_train_steps", num_train_steps, "Updates in all.")
    flags.DEFINE_integer("num_warmup_steps", num_warmup_steps, "Updates of linear warm-up.")
    flags.DEFINE_float("weight_decay_rate", 0.01, "Decay, not of biases and LayerNorm.")
    flags.DEFINE_float("clip_norm", 1.0, "Limit of the gradients' global norm.")


def config() -> OptimizationConfig:
    """The config that the flags describe."""
    return OptimizationConfig(
        optimizer=FLAGS.optimizer,
        learning_rate=FLAGS.learning_rate,
        num_train_steps=FLAGS.num_train_steps,
        num_warmup_steps=FLAGS.num_warmup_steps,
        weight_decay_rate=FLAGS.weight_decay_rate,
        clip_norm=FLAGS.clip_norm,
    )
