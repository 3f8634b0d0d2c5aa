"""Where a run's weights come from: its own checkpoint, another model's, or the initializer."""

from __future__ import annotations

from collections.abc import Sequence

from absl import logging

from albert_tf import loading
from albert_tf.errors import UserError
from albert_tf.models import AlbertEncoder
from albert_tf.training.trainer import Trainer


def prepare_weights(
    trainer: Trainer,
    encoder: AlbertEncoder,
    init_checkpoint: str | None,
    do_train: bool,
    reinitialize: Sequence[str] = (),
) -> int:
    """Sets the weights that a run starts from, or that it only evaluates.

    A run that has a checkpoint of its own goes on from it, whatever it started from.

    Args:
      trainer: of the run.
      encoder: of the model that is trained.
      init_checkpoint: another model, or None.
      do_train: whether the run trains, or only evaluates.
      reinitialize: see loading.initialize_encoder().

    Returns:
      The step that the weights belong to.

    Raises:
      UserError: init_checkpoint does not fit, or nothing has been trained that could be
        evaluated.
    """
    if trainer.restore():
        logging.info("going on from the checkpoint of step %d", trainer.checkpoint.step)
    elif not do_train:
        raise UserError(
            "holds no checkpoint", f"--output_dir={trainer.config.output_dir}", "train first"
        )
    elif init_checkpoint:
        kept = loading.initialize_encoder(encoder, init_checkpoint, reinitialize=reinitialize)
        logging.info(
            "encoder starts from %s; the heads and %d of its %d variables start from random values",
            init_checkpoint,
            kept,
            len(encoder.variables),
        )
    else:
        logging.info("all weights start from RANDOM values")
    return trainer.checkpoint.step
