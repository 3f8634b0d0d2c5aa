r"""Makes pretraining records (masked words and sentence order) out of text files.

    python -m data_prep.create_pretraining_data --input_file='corpus/*.txt.gz' \
      --output_dir=records --spm_model_file=vocabulary/spm.model --max_seq_length=512

A line is a sentence and a blank line ends a document; see --split_sentences for paragraphs.
"""

from __future__ import annotations

import flags.app as app  # first: it silences TensorFlow's start-up noise

# isort: split
from absl import logging

from data_prep import local_runner
from flags import data_prep as data_prep_flags
from flags import tokenization as tokenization_flags


def main() -> None:
    """Makes the records that the flags describe."""
    config = data_prep_flags.instance_config()
    input_files = data_prep_flags.input_files()
    tokenizer = tokenization_flags.tokenizer()
    runner = data_prep_flags.runner_config()
    manifest = local_runner.run(config, tokenizer, input_files, runner)
    for title in ("counts", "statistics"):
        for name, value in manifest[title].items():
            logging.info("%s: %s", name, value)
    logging.info(
        "%d records of length %d with %d predictions in %s",
        manifest["counts"]["records"],
        config.max_seq_length,
        config.max_predictions_per_seq,
        runner.output_dir,
    )


if __name__ == "__main__":
    data_prep_flags.define_input_flags("Text files, plain or .gz, .xz, .bz2")
    tokenization_flags.define()
    data_prep_flags.define_instance_flags()
    data_prep_flags.define_runner_flags()
    app.run(main, required=["input_file", "spm_model_file", "output_dir"])
