"""Checkpoints of a run: model, optimizer with its step, and input position."""

from __future__ import annotations

import os

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.models import AlbertModel


class RunCheckpoint:
    """Saves and restores the whole state of a run in `output_dir`.

    The input position is the number of batches consumed; with the seed it decides every batch
    to come, so a resumed run reads exactly what the unbroken one would have read.
    """

    def __init__(
        self,
        output_dir: str,
        model: AlbertModel,
        optimizer: tf.keras.optimizers.legacy.Optimizer,
        keep_checkpoint_max: int,
    ):
        self.input_position = tf.Variable(0, dtype=tf.int64, name="input_position")
        self._optimizer = optimizer
        checkpoint = tf.train.Checkpoint(
            model=model, optimizer=optimizer, input_position=self.input_position
        )
        self._checkpoint = checkpoint
        self._manager = tf.train.CheckpointManager(
            checkpoint, output_dir, max_to_keep=keep_checkpoint_max, checkpoint_name="ckpt"
        )

    @property
    def step(self) -> int:
        """Updates done so far."""
        return int(self._optimizer.iterations.numpy())

    def restore_latest(self) -> bool:
        """Restores the newest checkpoint, if there is one.

        Raises:
          UserError: it lacks variables of this model.
        """
        path = self._manager.latest_checkpoint
        if path is None:
            return False
        try:
            status = self._checkpoint.restore(path)
            status.assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise UserError(
                "checkpoint does not fit this model",
                path,
                f"choose another --output_dir ({str(error).splitlines()[0]})",
            ) from error
        return True

    def save(self, input_position: int) -> str:
        """Writes a checkpoint under its final name only when it is whole."""
        self.input_position.assign(input_position)
        return self._manager.save(checkpoint_number=self.step)


def latest_checkpoint(directory: str) -> str | None:
    """The prefix of the newest checkpoint in a directory that can be read, if any.

    Released directories have no state file; their only checkpoint is taken.
    """
    state = tf.train.get_checkpoint_state(directory)
    if state is None:
        indices = tf.io.gfile.glob(os.path.join(directory, "*.index"))
        return indices[0].removesuffix(".index") if len(indices) == 1 else None
    # Paths in the state file may be absolute; the directory may have been moved since.
    return os.path.join(directory, os.path.basename(state.model_checkpoint_path))
