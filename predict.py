"""Asks an exported SavedModel.

python predict.py --saved_model=DIR --text="What a film!" --text="Two hours too long."
python predict.py --saved_model=DIR --input_file=rows.jsonl --output_file=answers.jsonl
"""

from __future__ import annotations

import flags.app as app  # first: it silences TensorFlow's start-up noise

# isort: split
from absl import flags as absl_flags
from absl import logging

import flags.serving
from albert_tf.serving.prediction import Predictor, predict_file

FLAGS = absl_flags.FLAGS

flags.serving.define_prediction()


def main() -> None:
    """Flags -> one call."""
    flags.serving.check_prediction()
    predictor = Predictor(FLAGS.saved_model)
    if FLAGS.input_file:
        count = predict_file(predictor, FLAGS.input_file, FLAGS.output_file, FLAGS.batch_size)
        logging.info("%d rows answered in %s", count, FLAGS.output_file)
        return
    rows = flags.serving.rows(predictor.is_pair)
    for row, answer in zip(rows, predictor.predict(rows), strict=True):
        probability = answer["probabilities"][answer["label"]]
        print(f"{answer['label']}\t{probability:.3f}\t" + "\t".join(row.values()))


if __name__ == "__main__":
    app.run(main, required=["saved_model"])
