"""How a run proceeds, and where."""

from __future__ import annotations

from absl import flags

from albert_tf.training.strategy import STRATEGIES, StrategyConfig
from albert_tf.training.trainer import TrainerConfig

FLAGS = flags.FLAGS


def define(
    train_batch_size: int,
    eval_batch_size: int,
    save_checkpoints_steps: int,
    iterations_per_loop: int,
) -> None:
    """Defines the flags with a script's official defaults."""
    flags.DEFINE_string("output_dir", None, "Model directory to write; a run there is resumed.")
    flags.DEFINE_boolean("do_train", True, "Whether to train.")
    flags.DEFINE_boolean("do_eval", True, "Whether to evaluate at the end.")
    flags.DEFINE_integer("train_batch_size", train_batch_size, "Sequences an update, in all.")
    flags.DEFINE_integer("eval_batch_size", eval_batch_size, "Sequences an evaluation batch.")
    flags.DEFINE_integer("save_checkpoints_steps", save_checkpoints_steps, "Checkpoint interval.")
    flags.DEFINE_integer("keep_checkpoint_max", 5, "Checkpoints kept.")
    flags.DEFINE_integer("iterations_per_loop", iterations_per_loop, "Steps between reports.")
    flags.DEFINE_integer("random_seed", 12345, "Of initial weights, dropout and data order.")
    flags.DEFINE_enum("strategy", "auto", STRATEGIES, "Where to run.")
    flags.DEFINE_string("tpu_name", None, "TPU name or grpc address; local on a TPU VM.")
    flags.DEFINE_string("tpu_zone", None, "Compute Engine zone of the TPU.")
    flags.DEFINE_string("gcp_project", None, "Google Cloud project of the TPU.")


def trainer_config() -> TrainerConfig:
    """How the flags say to proceed."""
    return TrainerConfig(
        output_dir=FLAGS.output_dir,
        train_batch_size=FLAGS.train_batch_size,
        iterations_per_loop=FLAGS.iterations_per_loop,
        save_checkpoints_steps=FLAGS.save_checkpoints_steps,
        keep_checkpoint_max=FLAGS.keep_checkpoint_max,
        random_seed=FLAGS.random_seed,
        run_flags=_run_flags(),
    )


def _run_flags() -> str:
    given = [FLAGS[name] for name in FLAGS if FLAGS[name].present and name != "flagfile"]
    return "".join(flag.serialize() + "\n" for flag in given)


def strategy_config() -> StrategyConfig:
    """Where the flags say to run."""
    return StrategyConfig(FLAGS.strategy, FLAGS.tpu_name, FLAGS.tpu_zone, FLAGS.gcp_project)
