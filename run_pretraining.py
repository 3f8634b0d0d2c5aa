"""Pretrains ALBERT on TFRecords: masked-LM and sentence-order losses, LAMB.

python run_pretraining.py --flagfile=flags/presets/pretrain_albert_base.flags \
    --input_file='gs://bucket/records/*.tfrecord' --output_dir=gs://bucket/model
"""

from __future__ import annotations

import flags.app as app  # first: it silences TensorFlow's start-up noise

# isort: split
from absl import flags as absl_flags

import flags.model
import flags.optimization
import flags.tokenization
import flags.training
from albert_tf import files
from albert_tf.data.record_files import RecordFiles, inspect_files
from albert_tf.pretraining import PretrainingRun, pretrain

FLAGS = absl_flags.FLAGS

absl_flags.DEFINE_list("input_file", None, "Records to train on: paths or globs.")
absl_flags.DEFINE_list("eval_input_file", None, "Held-out records; without them, no evaluation.")
absl_flags.DEFINE_integer("max_eval_steps", 100, "Batches that an evaluation takes at most.")
absl_flags.DEFINE_integer("max_seq_length", None, "Checked against the records, if given.")
absl_flags.DEFINE_integer("max_predictions_per_seq", None, "Checked likewise.")
flags.model.define()
flags.tokenization.define()
flags.optimization.define("lamb", 0.00176, 125_000, 3_125)
flags.training.define(4096, 64, save_checkpoints_steps=5000, iterations_per_loop=1000)


def main() -> None:
    """Flags -> config objects -> one call."""
    train = _records(FLAGS.input_file, "--input_file")
    evaluate = FLAGS.do_eval and FLAGS.eval_input_file
    tokenizer = flags.tokenization.tokenizer(train.directory)
    pretrain(
        PretrainingRun(
            model=flags.model.config(tokenizer.vocab_size),
            tokenizer=tokenizer,
            train=train,
            eval=_records(FLAGS.eval_input_file, "--eval_input_file") if evaluate else None,
            do_train=FLAGS.do_train,
            eval_batch_size=FLAGS.eval_batch_size,
            max_eval_steps=FLAGS.max_eval_steps,
            init_checkpoint=FLAGS.init_checkpoint,
            compute_dtype=FLAGS.compute_dtype,
            trainer=flags.training.trainer_config(),
            optimization=flags.optimization.config(),
            strategy=flags.training.strategy_config(),
        )
    )


def _records(patterns: list[str], flag: str) -> RecordFiles:
    return inspect_files(
        files.expand_patterns(patterns, flag),
        flag,
        FLAGS.max_seq_length,
        FLAGS.max_predictions_per_seq,
    )


if __name__ == "__main__":
    app.run(main, required=["input_file", "output_dir"])
