"""Reads official TF1 checkpoints into our models."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.checkpoint_conversion.tf1_names import variable_map
from albert_tf.errors import UserError
from albert_tf.models import AlbertModel


def load_tf1_checkpoint(model: AlbertModel, prefix: str, flag: str = "--init_checkpoint") -> None:
    """Assigns every variable of `model` from a TF1 checkpoint.

    Args:
      model: an encoder, pretrainer or classifier of the checkpoint's sizes.
      prefix: checkpoint prefix, e.g. ".../model.ckpt-best".
      flag: where the path came from, for messages.

    Raises:
      UserError: a variable is missing or of another shape; all of them are listed.
    """
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    names = variable_map(model)
    missing = sorted(set(names) - set(shapes))
    if missing:
        raise UserError(
            f"lacks {len(missing)} of {len(names)} variables",
            f"{flag}={prefix}",
            "use a checkpoint of this architecture; missing: " + ", ".join(missing),
        )
    wrong = [
        f"{name} is {shapes[name]}, the model has {variable.shape.as_list()}"
        for name, variable in names.items()
        if list(shapes[name]) != variable.shape.as_list()
    ]
    if wrong:
        raise UserError(
            "has other sizes than the model",
            f"{flag}={prefix}",
            "mend the config: " + "; ".join(wrong),
        )
    for name, variable in names.items():
        variable.assign(reader.get_tensor(name))
