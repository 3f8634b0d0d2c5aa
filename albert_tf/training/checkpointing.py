"""Checkpoints of a run: model, optimizer with its step, and input position."""

from __future__ import annotations

import functools
import os

import tensorflow as tf

from albert_tf.checkpoint_files import checkpoints
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
        self._output_dir = output_dir
        self._keep_checkpoint_max = keep_checkpoint_max
        self._checkpoint = tf.train.Checkpoint(
            model=model, optimizer=optimizer, input_position=self.input_position
        )

    @property
    def step(self) -> int:
        """Updates done so far."""
        return int(self._optimizer.iterations.numpy())

    def restore_latest(self) -> bool:
        """Restores the newest checkpoint, if there is one.

        Raises:
          UserError: it lacks variables of this model, or is damaged.
        """
        prefixes = checkpoints(self._output_dir)
        if not prefixes:
            return False
        path = prefixes[-1]
        try:
            status = self._checkpoint.restore(path)
            status.assert_existing_objects_matched()
        except (AssertionError, ValueError) as error:
            raise UserError(
                "checkpoint does not fit this model",
                path,
                f"choose another --output_dir ({str(error).splitlines()[0]})",
            ) from error
        except tf.errors.OpError as error:
            before = f"goes on from {prefixes[-2]}" if prefixes[1:] else "starts anew"
            raise UserError(
                "checkpoint is damaged", path, f"delete {path}.*, and the run {before}"
            ) from error
        return True

    def save(self, input_position: int) -> str:
        """Writes a checkpoint under its final name only when it is whole."""
        self.input_position.assign(input_position)
        return self._manager.save(checkpoint_number=self.step)

    @functools.cached_property
    def _manager(self) -> tf.train.CheckpointManager:
        # The files decide, see checkpoint_files; TensorFlow's state file follows them.
        if prefixes := checkpoints(self._output_dir):
            order = [float(i + 1) for i in range(len(prefixes))]  # stands for the time of writing
            tf.compat.v1.train.update_checkpoint_state(
                self._output_dir, prefixes[-1], prefixes, all_model_checkpoint_timestamps=order
            )
        elif tf.io.gfile.exists(state := os.path.join(self._output_dir, "checkpoint")):
            tf.io.gfile.remove(state)
        return tf.train.CheckpointManager(
            self._checkpoint,
            self._output_dir,
            max_to_keep=self._keep_checkpoint_max,
            checkpoint_name="ckpt",
        )
