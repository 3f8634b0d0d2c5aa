"""Which vocabulary, and how text is normalised for it."""

from __future__ import annotations

import os

from absl import flags

from albert_tf.errors import UserError
from albert_tf.tokenization import SPM_MODEL_FILE, AlbertTokenizer, read_settings

FLAGS = flags.FLAGS


def define() -> None:
    """Defines the flags of an AlbertTokenizer."""
    flags.DEFINE_string(
        "spm_model_file",
        None,
        "The SentencePiece model, a .model file. Where a directory of ours is given, such as that "
        "of the records, its own is the default.",
    )
    define_normalization()


def define_normalization() -> None:
    """Defines --do_lower_case and --keep_accents."""
    flags.DEFINE_bool("do_lower_case", True, "Lower-case all text; the vocabulary must agree.")
    flags.DEFINE_bool(
        "keep_accents", False, "Keep accents; the official vocabularies are without them."
    )


def tokenizer(directory: str | None = None) -> AlbertTokenizer:
    """The tokenizer that the flags name, else the one that `directory` holds.

    Args:
      directory: a data or model directory, or None.

    Raises:
      UserError: there is none, or a flag contradicts the settings beside the vocabulary.
    """
    path = FLAGS.spm_model_file
    if not path:
        if directory is None or read_settings(directory) is None:
            raise UserError(
                "no vocabulary given", "--spm_model_file", f"give one, since {directory} holds none"
            )
        path = os.path.join(directory, SPM_MODEL_FILE)
    settings = {name: FLAGS[name].value for name in ("do_lower_case", "keep_accents")}
    for name, value in (read_settings(os.path.dirname(path)) or {}).items():
        if FLAGS[name].present and FLAGS[name].value != value:
            raise UserError(
                f"contradicts the settings beside {path}",
                f"--{name}={FLAGS[name].value}",
                "drop the flag: the vocabulary was trained otherwise",
            )
        settings[name] = value
    return AlbertTokenizer(path, **settings)
