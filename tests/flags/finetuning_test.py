"""Flags become the run that they describe."""

import os
from unittest import mock

import tensorflow as tf
from absl.testing import flagsaver, parameterized

import flags.serving
import run_finetuning
from albert_tf.errors import UserError
from albert_tf.tokenization import AlbertTokenizer
from tests.tiny_models import tiny_config
from tests.tiny_vocabulary import VOCAB_SIZE, tiny_spm_model_file


class FinetuningFlagsTest(parameterized.TestCase, tf.test.TestCase):
    def run_of(self, **values):
        """The FinetuningRun that the script would start."""
        values = {"data_dir": "data", "output_dir": "model"} | values
        with (
            flagsaver.as_parsed(**{name: str(value) for name, value in values.items()}),
            mock.patch.object(run_finetuning, "finetune") as finetune,
        ):
            run_finetuning.main()
        return finetune.call_args.args[0]

    def model_directory(self) -> str:
        directory = self.create_tempdir().full_path
        with open(os.path.join(directory, "albert_config.json"), "w") as handle:
            handle.write(tiny_config(max_position_embeddings=512).to_json_string())
        AlbertTokenizer(tiny_spm_model_file(), do_lower_case=False).save(directory)
        return directory

    def test_a_preset_takes_its_vocabulary_size_from_the_vocabulary(self):
        run = self.run_of(
            from_scratch="true", model_preset="albert_base", spm_model_file=tiny_spm_model_file()
        )
        self.assertEqual(run.model.vocab_size, VOCAB_SIZE)
        self.assertEqual(run.model.hidden_size, 768)
        self.assertIsNone(run.init_checkpoint)

    def test_a_model_directory_needs_no_other_model_flag(self):
        directory = self.model_directory()
        run = self.run_of(init_checkpoint=directory)
        self.assertEqual(run.model, tiny_config(max_position_embeddings=512))
        self.assertEqual(run.tokenizer.spm_model_file, os.path.join(directory, "spm.model"))
        self.assertFalse(run.tokenizer.do_lower_case)

    def test_lists_and_numbers_arrive(self):
        run = self.run_of(
            from_scratch="true",
            model_preset="albert_base",
            spm_model_file=tiny_spm_model_file(),
            length_buckets="64,128",
            optimizer="lamb",
            learning_rate=0.5,
            num_train_steps=7,
            train_batch_size=4,
            text_b_column="second",
        )
        self.assertEqual(run.length_buckets, (64, 128))
        self.assertEqual(
            (run.optimization.optimizer, run.optimization.learning_rate), ("lamb", 0.5)
        )
        self.assertEqual((run.optimization.num_train_steps, run.trainer.train_batch_size), (7, 4))
        self.assertEqual(run.columns.text_b, "second")
        self.assertIn("--length_buckets=64,128\n", run.trainer.run_flags)

    def test_contradictions_are_refused(self):
        directory = self.model_directory()
        for values, message in (
            ({}, "--init_checkpoint, --from_scratch"),
            ({"init_checkpoint": directory, "from_scratch": "true"}, "not both"),
            ({"init_checkpoint": directory, "do_lower_case": "true"}, "--do_lower_case=True"),
            ({"init_checkpoint": directory, "length_buckets": "64,long"}, "not whole numbers"),
            (
                {"init_checkpoint": directory, "length_buckets": "64", "strategy": "tpu"},
                "a TPU needs one length",
            ),
            ({"from_scratch": "true"}, "no vocabulary given"),
            (
                {"from_scratch": "true", "spm_model_file": tiny_spm_model_file()},
                "no model given",
            ),
            (
                {
                    "init_checkpoint": directory,
                    "model_preset": "albert_base",
                    "albert_config_file": "x",
                },
                "both given",
            ),
        ):
            with self.assertRaisesRegex(UserError, message):
                self.run_of(**values)


class ServingFlagsTest(tf.test.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        flags.serving.define_prediction()

    def test_texts_become_rows(self):
        with flagsaver.as_parsed(text=["a", "b"], text_b=["c", "d"]):
            self.assertEqual(
                flags.serving.rows(is_pair=True),
                [{"text": "a", "text_b": "c"}, {"text": "b", "text_b": "d"}],
            )
            with self.assertRaisesRegex(UserError, "takes single texts"):
                flags.serving.rows(is_pair=False)
        with (
            flagsaver.as_parsed(text=["a", "b"], text_b=["c"]),
            self.assertRaisesRegex(UserError, "2 and 1 given"),
        ):
            flags.serving.rows(is_pair=True)

    def test_one_source_of_rows_is_needed(self):
        for values in ({}, {"text": ["a"], "input_file": "x"}, {"input_file": "x"}):
            with flagsaver.as_parsed(**values), self.assertRaises(UserError):
                flags.serving.check_prediction()

    def test_second_texts_beside_a_file_are_refused(self):
        given = {"input_file": "x", "output_file": "y", "text_b": ["b"]}
        with flagsaver.as_parsed(**given), self.assertRaisesRegex(UserError, "no effect with"):
            flags.serving.check_prediction()


if __name__ == "__main__":
    tf.test.main()
