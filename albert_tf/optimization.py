"""LAMB and AdamW as the official code has them, its schedule, and clipping."""

from __future__ import annotations

import dataclasses
import math
import re
import warnings
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its end-of-life notice; requirements.txt says why we pin it
    import tensorflow_addons as tfa

from albert_tf.errors import UserError

OPTIMIZERS = ("lamb", "adamw")

# Official optimization.py: variables so named are neither decayed nor layer-adapted.
EXCLUDED_NAMES = ("LayerNorm", "layer_norm", "bias")

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-6


@dataclasses.dataclass(frozen=True)
class OptimizationConfig:
    """How weights are updated; names and defaults of the official flags.

    Attributes:
      optimizer: one of OPTIMIZERS, in any case.
      learning_rate: peak of the schedule.
      num_train_steps: updates in all, where the rate reaches 0. None: see with_steps().
      num_warmup_steps: updates of linear warm-up. None: a tenth of all.
      weight_decay_rate: decoupled decay.
      clip_norm: limit of the global norm of the gradients.
      bias_correction: whether LAMB's moments are corrected; the official code does not.
    """

    optimizer: str
    learning_rate: float
    num_train_steps: int | None
    num_warmup_steps: int | None
    weight_decay_rate: float = 0.01
    clip_norm: float = 1.0
    bias_correction: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimizer", self.optimizer.lower())
        if self.optimizer not in OPTIMIZERS:
            raise UserError(
                "unknown optimizer",
                f"--optimizer={self.optimizer}",
                f"choose {' or '.join(OPTIMIZERS)}",
            )
        for name in ("learning_rate", "num_train_steps", "clip_norm"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UserError("must be above 0", f"--{name}={value}", "raise it")
        warmup, steps = self.num_warmup_steps, self.num_train_steps
        if warmup is not None and not 0 <= warmup <= (math.inf if steps is None else steps):
            raise UserError(
                "must lie between 0 and num_train_steps",
                f"--num_warmup_steps={warmup}",
                "choose at least 0" if warmup < 0 else f"choose at most {steps}",
            )
        if not 0 <= self.weight_decay_rate < math.inf:
            raise UserError(
                "must not be negative", f"--weight_decay_rate={self.weight_decay_rate}", "raise it"
            )

    def with_steps(self, num_train_steps: int) -> OptimizationConfig:
        """The config with the counts that are still open; `num_train_steps` if that one is."""
        steps = num_train_steps if self.num_train_steps is None else self.num_train_steps
        warmup = steps // 10 if self.num_warmup_steps is None else self.num_warmup_steps
        return dataclasses.replace(self, num_train_steps=steps, num_warmup_steps=warmup)


class WarmupLinearDecay(tf.keras.optimizers.schedules.LearningRateSchedule):
    """The official schedule: linear warm-up, then linear decay to 0 over the *total* steps.

    The rate therefore drops by learning_rate * warmup / total where warm-up ends.
    """

    def __init__(self, learning_rate: float, num_train_steps: int, num_warmup_steps: int):
        self.learning_rate = learning_rate
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """The rate of the update that is the `step`-th from 0; update 0 has rate 0 in warm-up."""
        step = tf.cast(step, tf.float32)
        total = tf.cast(self.num_train_steps, tf.float32)
        decayed = self.learning_rate * (1.0 - tf.minimum(step, total) / total)
        if not self.num_warmup_steps:
            return decayed
        warmed = self.learning_rate * step / self.num_warmup_steps
        return tf.where(step < self.num_warmup_steps, warmed, decayed)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "learning_rate": self.learning_rate,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
        }


class Lamb(tfa.optimizers.LAMB):
    """tensorflow-addons' LAMB without its bias correction, as the official LAMBOptimizer.

    With m and v the moments of the gradient, u = m / (sqrt(v) + epsilon) + decay * w, and
    w -= rate * |w| / |u| * u; the ratio is 1 where either norm is 0. With layer_adaptation off
    it is the official AdamWeightDecayOptimizer.

    Args:
      learning_rate: a number or a schedule of the step.
      layer_adaptation: whether updates are scaled by the trust ratio.
      bias_correction: whether moments are corrected, as the LAMB paper has it.
      excluded_names: regular expressions of variables neither decayed nor adapted.
    """

    def __init__(
        self,
        learning_rate: float | tf.keras.optimizers.schedules.LearningRateSchedule,
        weight_decay_rate: float = 0.01,
        layer_adaptation: bool = True,
        bias_correction: bool = False,
        excluded_names: Sequence[str] = EXCLUDED_NAMES,
        name: str = "Lamb",
    ):
        super().__init__(
            learning_rate=learning_rate,
            beta_1=BETA_1,
            beta_2=BETA_2,
            epsilon=EPSILON,
            weight_decay=weight_decay_rate,
            exclude_from_weight_decay=list(excluded_names),
            exclude_from_layer_adaptation=list(excluded_names) if layer_adaptation else [""],
            name=name,
        )
        self.bias_correction = bias_correction

    def is_excluded(self, variable_name: str) -> bool:
        """Whether a variable of this name is neither decayed nor layer-adapted."""
        return any(re.search(pattern, variable_name) for pattern in self.exclude_from_weight_decay)

    def _resource_apply_dense(
        self, grad: tf.Tensor, var: tf.Variable, apply_state: Any = None
    ) -> tf.Operation:
        if self.bias_correction:
            return super()._resource_apply_dense(grad, var, apply_state)
        hyper = (apply_state or {}).get((var.device, var.dtype.base_dtype))
        hyper = hyper or self._fallback_apply_state(var.device, var.dtype.base_dtype)
        m_slot, v_slot = self.get_slot(var, "m"), self.get_slot(var, "v")
        # Python numbers, since 1 - float32(.999) is 5e-5 off .001.
        m = BETA_1 * m_slot + (1 - BETA_1) * grad
        v = BETA_2 * v_slot + (1 - BETA_2) * tf.square(grad)
        update = m / (tf.sqrt(v) + EPSILON)
        if self._do_use_weight_decay(var):
            update += hyper["weight_decay"] * var
        ratio = 1.0
        if self._do_layer_adaptation(var):
            weight_norm, update_norm = tf.norm(var), tf.norm(update)
            both = tf.logical_and(weight_norm > 0, update_norm > 0)
            ratio = tf.where(both, tf.math.divide_no_nan(weight_norm, update_norm), 1.0)
        return tf.group(
            m_slot.assign(m, use_locking=self._use_locking),
            v_slot.assign(v, use_locking=self._use_locking),
            var.assign_sub(hyper["lr_t"] * ratio * update, use_locking=self._use_locking),
        )


def create_optimizer(config: OptimizationConfig) -> Lamb:
    """The optimizer that a config describes, with the official schedule."""
    schedule = WarmupLinearDecay(
        config.learning_rate, config.num_train_steps, config.num_warmup_steps
    )
    return Lamb(
        schedule,
        weight_decay_rate=config.weight_decay_rate,
        layer_adaptation=config.optimizer == "lamb",
        bias_correction=config.bias_correction,
        name=config.optimizer,
    )
