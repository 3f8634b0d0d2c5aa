"""What to export or to ask."""

from __future__ import annotations

from absl import flags

from albert_tf.errors import UserError

FLAGS = flags.FLAGS


def define_export() -> None:
    """Defines the flags of export_savedmodel.py."""
    flags.DEFINE_string("model_dir", None, "Directory of a fine-tuned model.")
    flags.DEFINE_string("output_dir", None, "Where versions 1, 2, ... are written.")


def define_prediction() -> None:
    """Defines the flags of predict.py."""
    flags.DEFINE_string("saved_model", None, "A SavedModel, or the directory of its versions.")
    flags.DEFINE_multi_string("text", [], "A text to classify; may be given several times.")
    flags.DEFINE_multi_string("text_b", [], "The second texts, for pairs.")
    flags.DEFINE_string("input_file", None, ".tsv, .csv, .jsonl, or plain text, a row a line.")
    flags.DEFINE_string("output_file", None, "JSON lines to write, for --input_file.")
    flags.DEFINE_integer("batch_size", 32, "Rows a request.", lower_bound=1)


def rows(is_pair: bool) -> list[dict[str, str]]:
    """The texts given as flags."""
    if not is_pair:
        if FLAGS.text_b:
            raise UserError("is not wanted", "--text_b", "this model takes single texts")
        return [{"text": text} for text in FLAGS.text]
    if len(FLAGS.text) != len(FLAGS.text_b):
        raise UserError(
            f"{len(FLAGS.text)} and {len(FLAGS.text_b)} given",
            "--text, --text_b",
            "this model takes pairs; give as many of each",
        )
    return [
        {"text": text, "text_b": text_b}
        for text, text_b in zip(FLAGS.text, FLAGS.text_b, strict=True)
    ]


def check_prediction() -> None:
    """Either texts, or both files."""
    if bool(FLAGS.text) == bool(FLAGS.input_file):
        raise UserError("give one of them", "--text, --input_file", "what shall be classified?")
    if bool(FLAGS.input_file) != bool(FLAGS.output_file):
        raise UserError("go together", "--input_file, --output_file", "give both")
    if FLAGS.text_b and FLAGS.input_file:
        raise UserError("has no effect with --input_file", "--text_b", "put the texts in the file")
