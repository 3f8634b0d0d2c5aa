"""Reads official TF1 checkpoints into our models."""

from __future__ import annotations

import os

import tensorflow as tf

from albert_tf.checkpoint_conversion.tf1_names import variable_map
from albert_tf.checkpoint_files import damaged, open_checkpoint
from albert_tf.errors import UserError
from albert_tf.models import AlbertModel


def load_tf1_checkpoint(model: AlbertModel, prefix: str, flag: str = "--init_checkpoint") -> None:
    """Assigns every variable of `model` from a TF1 checkpoint.

    Args:
      model: an encoder, pretrainer or classifier of the checkpoint's sizes.
      prefix: checkpoint prefix, e.g. ".../model.ckpt-best".
      flag: where the path came from, for messages.

    Raises:
      UserError: variables are missing, left over or of another shape, which lists them, or the
        checkpoint is damaged.
    """
    reader = open_checkpoint(prefix, flag)
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
    # Optimizer slots lie below their variable's name; heads of another task are not asked for.
    extra = sorted(
        name
        for name in set(shapes) - set(names)
        if name.startswith("bert/") and os.path.dirname(name) not in names
    )
    if extra:
        raise UserError(
            f"holds {len(extra)} variables that the model lacks",
            f"{flag}={prefix}",
            "mend the config; left over: " + ", ".join(extra),
        )
    try:
        for name, variable in names.items():
            variable.assign(reader.get_tensor(name))
    except tf.errors.OpError as error:
        raise damaged(prefix, flag, error) from error
