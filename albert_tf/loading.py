"""Loads encoders, pretrainers and classifiers from our model directories and TF1 checkpoints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import tensorflow as tf
from absl import logging

from albert_tf import model_directory
from albert_tf.checkpoint_conversion.tf1 import load_tf1_checkpoint
from albert_tf.checkpoint_files import checkpoint_prefix, damaged, directory_of, open_checkpoint
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertEncoder, AlbertModel, AlbertPretrainer

Model = TypeVar("Model", bound=AlbertModel)

MEANING = (
    *("num_attention_heads", "hidden_act", "layer_norm_eps"),
    *("num_hidden_groups", "inner_group_num", "parameter_sharing"),
)
"""What changes a model's meaning but not the shape of any one weight."""

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""In every checkpoint of TensorFlow 2."""


def load_encoder(path: str, compute_dtype: str = "float32") -> AlbertEncoder:
    """The encoder of a pretrained or fine-tuned model.

    Args:
      path: a directory with albert_config.json and checkpoints, ours or official TF1 ones, or
        the prefix of one checkpoint in it.
      compute_dtype: "float32" or "bfloat16".

    Raises:
      UserError: there is no such model, or it lacks variables.
    """
    encoder = AlbertEncoder(config_of(path, "path"), compute_dtype)
    initialize_encoder(encoder, path, "path")
    return encoder


def load_pretrainer(path: str, compute_dtype: str = "float32") -> AlbertPretrainer:
    """The pretrained model with its masked-LM and sentence-order heads; as load_encoder()."""
    return _load_whole(AlbertPretrainer(config_of(path, "path"), compute_dtype), path)


def load_classifier(model_dir: str, compute_dtype: str = "float32") -> AlbertClassifier:
    """The fine-tuned classifier of a model directory; as load_encoder()."""
    config = model_directory.load_config(model_dir)
    labels = model_directory.read_task(model_dir).get("labels")
    if not labels:
        raise UserError(
            "is not a fine-tuned classifier", f"--model_dir={model_dir}", "fine-tune it"
        )
    return _load_whole(
        AlbertClassifier(config, len(labels), compute_dtype), model_dir, "--model_dir"
    )


def _load_whole(model: Model, path: str, flag: str = "path") -> Model:
    _assign(model, checkpoint_prefix(path, flag), flag)
    return model


def initialize_encoder(
    encoder: AlbertEncoder,
    path: str,
    flag: str = "--init_checkpoint",
    reinitialize: Sequence[str] = (),
) -> int:
    """Gives an encoder the weights of a checkpoint; heads and optimizer slots are left alone.

    Args:
      encoder: of the checkpoint's sizes.
      path: a directory with checkpoints, or the prefix of one.
      flag: where the path came from, for messages.
      reinitialize: parts of variable names, such as "pooler"; these variables keep the values
        that they have.

    Returns:
      How many variables keep their values.

    Raises:
      UserError: there is no checkpoint, it lacks variables of the encoder, its config means
        another model, or the encoder has no variable to reinitialize under a name.
    """
    prefix = checkpoint_prefix(path, flag)
    _check_meaning(encoder.config, path, flag)
    kept = [(variable, variable.numpy()) for variable in matching_variables(encoder, reinitialize)]
    _assign(encoder, prefix, flag, "encoder")
    for variable, value in kept:
        variable.assign(value)
    return len(kept)


def _check_meaning(config: AlbertConfig, path: str, flag: str) -> None:
    """Compares a config with the one beside a checkpoint, where there is one."""
    if not tf.io.gfile.exists(os.path.join(directory_of(path), model_directory.CONFIG_FILE)):
        return
    theirs = config_of(path, flag)
    for name in MEANING:
        here, there = getattr(config, name), getattr(theirs, name)
        if here != there:
            raise UserError(
                f"its {name} is {there}, the model's {here}",
                f"{flag}={path}",
                "use its own config: the weights mean nothing with another",
            )
    if config.num_hidden_layers != theirs.num_hidden_layers:
        logging.warning(
            "%s was trained with %d layers; here it runs %d",
            path,
            theirs.num_hidden_layers,
            config.num_hidden_layers,
        )


def matching_variables(encoder: AlbertEncoder, parts: Sequence[str]) -> list[tf.Variable]:
    """The encoder's variables whose names, such as attention_0/query/kernel, hold any of `parts`.

    Raises:
      UserError: a part is in no name.
    """
    for part in parts:
        if not part:
            raise UserError("holds an empty name", "--reinitialize", "drop the extra comma")
        if not any(part in variable.name for variable in encoder.trainable_variables):
            raise UserError(
                "no variable is called so",
                f"--reinitialize={part}",
                "e.g. pooler, or query,key",
            )
    return [
        variable
        for variable in encoder.trainable_variables
        if any(part in variable.name for part in parts)
    ]


def config_of(path: str, flag: str = "--init_checkpoint") -> AlbertConfig:
    """The config of the model directory that `path` is or lies in."""
    return model_directory.load_config(directory_of(path), flag)


def _assign(model: AlbertModel, prefix: str, flag: str, path: str = "") -> None:
    """Gives every variable of `model` its value in a checkpoint, and leaves none of it over.

    Args:
      model: what is loaded.
      prefix: of the checkpoint.
      flag: where the path came from, for messages.
      path: where `model` is in a model of ours that the checkpoint may hold, e.g. "encoder".
    """
    names = open_checkpoint(prefix, flag).get_variable_to_shape_map()
    if OBJECT_GRAPH not in names:  # name-based, as the official code writes them
        load_tf1_checkpoint(model, prefix, flag)
        return
    start = "/".join(filter(None, ("model", path, "")))
    there = [name for name in names if name.startswith(start) and ".OPTIMIZER_SLOT" not in name]
    if len(there) > len(model.variables):
        raise UserError(
            f"holds {len(there)} variables, the model only {len(model.variables)}",
            f"{flag}={prefix}",
            "use the config of the checkpoint; it may have more groups or another sharing",
        )
    root = tf.train.Checkpoint(**{path: model}) if path else model
    try:
        status = tf.train.Checkpoint(model=root).restore(prefix)
        status.assert_existing_objects_matched().expect_partial()
    except (AssertionError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            "does not fit the model",
            f"{flag}={prefix}",
            f"use a checkpoint of its kind and size ({reason})",
        ) from error
    except tf.errors.OpError as error:
        raise damaged(prefix, flag, error) from error
