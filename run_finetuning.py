"""Fine-tunes a pretrained ALBERT on labelled texts, and evaluates it on every dev file.

python run_finetuning.py --task_name=custom --data_dir=DIR --init_checkpoint=MODEL_DIR \
    --output_dir=DIR
"""

from __future__ import annotations

import flags.app as app  # first: it silences TensorFlow's start-up noise

# isort: split
from absl import flags as absl_flags

import flags.finetuning
import flags.model
import flags.optimization
import flags.tokenization
import flags.training
from albert_tf.checkpoint_files import directory_of
from albert_tf.finetuning import FinetuningRun, finetune

FLAGS = absl_flags.FLAGS

flags.finetuning.define()
flags.model.define()
flags.tokenization.define()
flags.optimization.define("adamw", 2e-5, None, None)
flags.training.define(32, 32, save_checkpoints_steps=1000, iterations_per_loop=100)


def main() -> None:
    """Flags -> config objects -> one call."""
    init_checkpoint = flags.finetuning.init_checkpoint()
    tokenizer = flags.tokenization.tokenizer(init_checkpoint and directory_of(init_checkpoint))
    finetune(
        FinetuningRun(
            data_dir=FLAGS.data_dir,
            columns=flags.finetuning.columns(),
            model=flags.model.config(tokenizer.vocab_size),
            tokenizer=tokenizer,
            init_checkpoint=init_checkpoint,
            reinitialize=tuple(FLAGS.reinitialize),
            max_seq_length=FLAGS.max_seq_length,
            truncation=FLAGS.truncation,
            length_buckets=flags.finetuning.length_buckets(),
            classifier_dropout=FLAGS.classifier_dropout,
            num_train_epochs=FLAGS.num_train_epochs,
            do_train=FLAGS.do_train,
            do_eval=FLAGS.do_eval,
            eval_batch_size=FLAGS.eval_batch_size,
            compute_dtype=FLAGS.compute_dtype,
            trainer=flags.training.trainer_config(),
            strategy=flags.training.strategy_config(),
            optimization=flags.optimization.config(),
        )
    )


if __name__ == "__main__":
    app.run(main, required=["data_dir", "output_dir"])
