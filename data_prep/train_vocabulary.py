r"""Trains a SentencePiece vocabulary.

    python -m data_prep.train_vocabulary --input_file='corpus/*.txt.gz' --output_dir=vocabulary \
      --vocab_size=30000

Writes spm.model, spm.vocab, tokenizer.json and vocabulary.json.
"""

from __future__ import annotations

import flags.app as app  # first: it silences TensorFlow's start-up noise

# isort: split
from absl import logging

from albert_tf import files
from data_prep import vocabulary
from data_prep.documents import ReadingReport, read_documents
from flags import data_prep as data_prep_flags
from flags import tokenization as tokenization_flags


def main() -> None:
    """Trains the vocabulary that the flags describe."""
    config = data_prep_flags.vocabulary_config()
    documents = read_documents(data_prep_flags.input_files(), ReadingReport())
    output_dir = files.make_output_directory(data_prep_flags.FLAGS.output_dir)
    summary = vocabulary.train(documents, config, output_dir)
    for name, value in summary.items():
        logging.info("%s: %s", name, value)


if __name__ == "__main__":
    data_prep_flags.define_input_flags("Text files, plain or .gz, .xz, .bz2")
    tokenization_flags.define_normalization()
    data_prep_flags.define_vocabulary_flags()
    app.run(main, required=["input_file", "output_dir"])
