"""Exports a fine-tuned model as a SavedModel that takes raw text.

python export_savedmodel.py --model_dir=DIR --output_dir=DIR
"""

from __future__ import annotations

import flags.app as app  # first: it silences TensorFlow's start-up noise

# isort: split
from absl import flags as absl_flags

import flags.serving
from albert_tf.serving.export import export_classifier

FLAGS = absl_flags.FLAGS

flags.serving.define_export()


def main() -> None:
    """Flags -> one call."""
    print(export_classifier(FLAGS.model_dir, FLAGS.output_dir))


if __name__ == "__main__":
    app.run(main, required=["model_dir", "output_dir"])
