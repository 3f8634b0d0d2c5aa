"""What is fine-tuned, on which data, for how long."""

from __future__ import annotations

from absl import flags

from albert_tf.data.packing import TRUNCATIONS
from albert_tf.data.tabular import Columns
from albert_tf.errors import UserError

FLAGS = flags.FLAGS

TASKS = ("custom",)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_enum("task_name", "custom", TASKS, "custom: your own labelled texts.")
    flags.DEFINE_string(
        "data_dir",
        None,
        "Holds train.* and dev.* (or several dev_<name>.*), each .tsv, .csv or .jsonl.",
    )
    flags.DEFINE_string("text_column", "text", "Column or JSON field of the text.")
    flags.DEFINE_string("text_b_column", None, "Column of the second text, for pairs.")
    flags.DEFINE_string("label_column", "label", "Column of the class.")
    flags.DEFINE_integer("max_seq_length", 512, "Longest input, special tokens included.")
    flags.DEFINE_enum("truncation", "head", TRUNCATIONS, "What a longer single text keeps.")
    flags.DEFINE_list(
        "length_buckets",
        [],
        "Shorter lengths that batches may be padded to, e.g. 64,128; faster, not for TPU.",
    )
    flags.DEFINE_float("classifier_dropout", 0.1, "Dropout of the pooled output.")
    flags.DEFINE_float("num_train_epochs", 3.0, "Passes, where --num_train_steps is not given.")
    flags.DEFINE_list(
        "reinitialize",
        [],
        "Parts of names of variables that start from random weights, the others from "
        "--init_checkpoint, e.g. pooler,query,key: for what pretraining has left saturated.",
    )
    flags.DEFINE_boolean(
        "from_scratch", False, "Start from random weights, without --init_checkpoint."
    )


def columns() -> Columns:
    """The columns that the flags name."""
    return Columns(FLAGS.text_column, FLAGS.text_b_column, FLAGS.label_column)


def length_buckets() -> tuple[int, ...]:
    """The buckets as numbers."""
    try:
        return tuple(int(bound) for bound in FLAGS.length_buckets)
    except ValueError as error:
        raise UserError(
            "are not whole numbers", f"--length_buckets={FLAGS.length_buckets}", "e.g. 64,128"
        ) from error


def init_checkpoint() -> str | None:
    """The checkpoint to start from; None only if the user asked for random weights."""
    if FLAGS.from_scratch == bool(FLAGS.init_checkpoint):
        raise UserError(
            "give one of them, not both or none",
            "--init_checkpoint, --from_scratch",
            "name the model to fine-tune, or say that you want random weights",
        )
    return FLAGS.init_checkpoint
