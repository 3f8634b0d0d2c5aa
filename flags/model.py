"""Which model: a config file or a named size, and its initial weights."""

from __future__ import annotations

from absl import flags

from albert_tf import loading
from albert_tf.config import PRESETS, AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import COMPUTE_DTYPES

FLAGS = flags.FLAGS


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("albert_config_file", None, "albert_config.json of the model.")
    flags.DEFINE_enum(
        "model_preset",
        None,
        sorted(PRESETS),
        "A named size instead of --albert_config_file; its vocabulary size is the SentencePiece "
        "model's.",
    )
    flags.DEFINE_string(
        "init_checkpoint",
        None,
        "Model directory or checkpoint prefix, ours or an official TF1 one, whose weights to "
        "start from. Not for resuming: a run resumes by itself in its --output_dir.",
    )
    flags.DEFINE_enum(
        "compute_dtype", "float32", COMPUTE_DTYPES, "Of matrix products; weights stay float32."
    )


def config(vocab_size: int) -> AlbertConfig:
    """The config that the flags name, else that of --init_checkpoint.

    Args:
      vocab_size: of the SentencePiece model; a preset's size follows it.
    """
    given = [
        name for name in ("albert_config_file", "model_preset") if FLAGS[name].value is not None
    ]
    if len(given) > 1:
        raise UserError("both given", "--albert_config_file, --model_preset", "give one of them")
    if FLAGS.albert_config_file:
        return AlbertConfig.from_json_file(FLAGS.albert_config_file)
    if FLAGS.model_preset:
        return AlbertConfig.preset(FLAGS.model_preset, vocab_size=vocab_size)
    if FLAGS.init_checkpoint:
        return loading.config_of(FLAGS.init_checkpoint)
    raise UserError(
        "no model given",
        "--albert_config_file, --model_preset",
        "give one of them, or an --init_checkpoint whose directory has albert_config.json",
    )
