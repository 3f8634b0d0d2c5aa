"""Loads encoders, pretrainers and classifiers from our model directories and TF1 checkpoints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import tensorflow as tf
from absl import logging

from albert_tf import model_directory
from albert_tf.checkpoint_conversion.tf1 import load_tf1_checkpoint
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertEncoder, AlbertModel, AlbertPretrainer
from albert_tf.training.checkpointing import latest_checkpoint

Model = TypeVar("Model", bound=AlbertModel)

UNSEEN_IN_SHAPES = ("num_attention_heads", "hidden_act", "layer_norm_eps")
"""What changes a model's meaning but not the shape of any weight."""


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
    return _load_whole(AlbertClassifier(config, len(labels), compute_dtype), model_dir)


def _load_whole(model: Model, path: str) -> Model:
    prefix = checkpoint_prefix(path, "path")
    if is_tf1_checkpoint(prefix):
        load_tf1_checkpoint(model, prefix, "path")
    else:
        _restore(tf.train.Checkpoint(model=model), prefix, "path")
    return model


def initialize_encoder(
    encoder: AlbertEncoder,
    path: str,
    flag: str = "--init_checkpoint",
    reinitialize: Sequence[str] = (),
) -> None:
    """Gives an encoder the weights of a checkpoint; heads and optimizer slots are left alone.

    Args:
      encoder: of the checkpoint's sizes.
      path: a directory with checkpoints, or the prefix of one.
      flag: where the path came from, for messages.
      reinitialize: parts of variable names, such as "pooler"; these variables keep the values
        that they have.

    Raises:
      UserError: there is no checkpoint, it lacks variables of the encoder, its config means
        another model, or the encoder has no variable to reinitialize under a name.
    """
    prefix = checkpoint_prefix(path, flag)
    _check_meaning(encoder.config, path, flag)
    kept = [(variable, variable.numpy()) for variable in matching_variables(encoder, reinitialize)]
    if is_tf1_checkpoint(prefix):
        load_tf1_checkpoint(encoder, prefix, flag)
    else:
        model = tf.train.Checkpoint(encoder=encoder)
        _restore(tf.train.Checkpoint(model=model), prefix, flag)
    for variable, value in kept:
        variable.assign(value)


def _check_meaning(config: AlbertConfig, path: str, flag: str) -> None:
    """Compares a config with the one beside a checkpoint, where there is one."""
    if not tf.io.gfile.exists(os.path.join(directory_of(path), model_directory.CONFIG_FILE)):
        return
    theirs = config_of(path, flag)
    for name in UNSEEN_IN_SHAPES:
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


def checkpoint_prefix(path: str, flag: str) -> str:
    """The prefix of the checkpoint that `path` names.

    Raises:
      UserError: there is none, or the path names one of its files instead.
    """
    if path.endswith(".index") or ".data-" in os.path.basename(path):
        prefix = path.rsplit(".", 1)[0]
        raise UserError(
            "is one file of a checkpoint", f"{flag}={path}", f"give its prefix, {prefix}"
        )
    if tf.io.gfile.isdir(path):
        prefix = latest_checkpoint(path)
        if prefix is None:
            raise UserError(
                "holds no checkpoint", f"{flag}={path}", "give a model directory or a prefix"
            )
    else:
        prefix = path
    if not tf.io.gfile.exists(prefix + ".index"):
        raise UserError("is no checkpoint", f"{flag}={path}", f"{prefix}.index does not exist")
    return prefix


def config_of(path: str, flag: str = "--init_checkpoint") -> AlbertConfig:
    """The config of the model directory that `path` is or lies in."""
    return model_directory.load_config(directory_of(path), flag)


def directory_of(path: str) -> str:
    """The model directory that a path or checkpoint prefix belongs to."""
    return path if tf.io.gfile.isdir(path) else os.path.dirname(path) or "."


def is_tf1_checkpoint(prefix: str) -> bool:
    """Whether a checkpoint is name-based, as the official code writes them."""
    names = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    return "_CHECKPOINTABLE_OBJECT_GRAPH" not in names


def _restore(checkpoint: tf.train.Checkpoint, prefix: str, flag: str) -> None:
    try:
        status = checkpoint.restore(prefix)
        status.assert_existing_objects_matched().expect_partial()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            "does not fit the model",
            f"{flag}={prefix}",
            f"use a checkpoint of its kind and size ({reason})",
        ) from error
