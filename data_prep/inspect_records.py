"""Prints pretraining records readably, and statistics of all of them.

python -m data_prep.inspect_records --input_file='records/*.tfrecord' \
  --spm_model_file=vocabulary/spm.model --num_examples=3
"""

from __future__ import annotations

import itertools

import flags.app as app  # first: it silences TensorFlow's start-up noise

# isort: split
from data_prep import record_view
from flags import data_prep as data_prep_flags
from flags import tokenization as tokenization_flags


def main() -> None:
    """Prints what the flags ask for."""
    paths = data_prep_flags.input_files()
    tokenizer = tokenization_flags.tokenizer()
    num_examples = data_prep_flags.FLAGS.num_examples
    for record in itertools.islice(record_view.read_records(paths), num_examples):
        print(record_view.render(record, tokenizer) + "\n")
    for name, value in record_view.statistics(record_view.read_records(paths)).items():
        print(f"{name}: {value:.5g}" if isinstance(value, float) else f"{name}: {value}")


if __name__ == "__main__":
    data_prep_flags.define_input_flags("TFRecord files")
    tokenization_flags.define()
    data_prep_flags.define_inspection_flags()
    app.run(main, required=["input_file", "spm_model_file"])
