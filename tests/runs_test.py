"""Whole runs on tiny data: records -> pretraining -> fine-tuning -> export -> prediction."""

import dataclasses
import json
import os
import random

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.data.record_files import inspect_files
from albert_tf.data.tabular import Columns
from albert_tf.errors import UserError
from albert_tf.finetuning import FinetuningRun, finetune
from albert_tf.optimization import OptimizationConfig
from albert_tf.pretraining import PretrainingRun, pretrain
from albert_tf.serving.export import export_classifier
from albert_tf.serving.prediction import Predictor
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.training.strategy import StrategyConfig
from albert_tf.training.trainer import TrainerConfig
from tests.tiny_models import SEQ_LENGTH, pretraining_batch, tiny_config, write_records
from tests.tiny_vocabulary import tiny_spm_model_file

GOOD = ["a", "happy", "village", "had", "good", "bread"]
BAD = ["the", "sad", "river", "lost", "all", "its", "fish"]


def write_reviews(directory: str) -> None:
    """Rows whose class shows in single words; two dev files of uneven size."""
    rng = random.Random(0)
    for name, rows in (("train.jsonl", 96), ("dev_long.jsonl", 13), ("dev_short.jsonl", 5)):
        with open(os.path.join(directory, name), "w") as handle:
            for _ in range(rows):
                words, label = rng.choice([(GOOD, "good"), (BAD, "bad")])
                text = " ".join(rng.choices(words, k=rng.randint(1, 12)))
                handle.write(json.dumps({"text": text, "label": label}) + "\n")


class RunsTest(tf.test.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = os.path.join(cls().get_temp_dir(), "runs")
        cls.records = cls.directory("records")
        cls.reviews = cls.directory("reviews")
        cls.tokenizer = AlbertTokenizer(tiny_spm_model_file())
        write_records(cls.records, rows=40)
        write_reviews(cls.reviews)
        cls.pretrained = os.path.join(cls.root, "pretrained")
        pretrain(cls.pretraining_run(cls.pretrained))
        cls.finetuned = os.path.join(cls.root, "finetuned")
        finetune(cls.finetuning_run(cls.finetuned))

    @classmethod
    def directory(cls, name: str) -> str:
        path = os.path.join(cls.root, name)
        os.makedirs(path)
        return path

    @classmethod
    def pretraining_run(cls, output_dir: str, **changes) -> PretrainingRun:
        shards = [os.path.join(cls.records, name) for name in sorted(os.listdir(cls.records))]
        records = inspect_files(shards, "--input_file")
        run = PretrainingRun(
            model=tiny_config(),
            tokenizer=cls.tokenizer,
            train=records,
            eval=records,
            do_train=True,
            eval_batch_size=16,
            max_eval_steps=100,
            init_checkpoint=None,
            compute_dtype="float32",
            trainer=TrainerConfig(output_dir, 8, 5, 10, run_flags="--train_batch_size=8\n"),
            optimization=OptimizationConfig("lamb", 0.01, 10, 2),
            strategy=StrategyConfig("cpu"),
        )
        return dataclasses.replace(run, **changes)

    @classmethod
    def finetuning_run(cls, output_dir: str, **changes) -> FinetuningRun:
        run = FinetuningRun(
            data_dir=cls.reviews,
            columns=Columns(),
            model=tiny_config(),
            tokenizer=cls.tokenizer,
            init_checkpoint=cls.pretrained,
            reinitialize=(),
            max_seq_length=32,
            truncation="head_tail",
            length_buckets=(8, 16),
            classifier_dropout=0.1,
            num_train_epochs=20,
            do_train=True,
            do_eval=True,
            eval_batch_size=4,
            compute_dtype="float32",
            trainer=TrainerConfig(output_dir, 16, 20, 100),
            strategy=StrategyConfig("cpu"),
            optimization=OptimizationConfig("adamw", 0.003, None, None),
        )
        return dataclasses.replace(run, **changes)

    def results(self, model_dir: str) -> dict:
        with open(os.path.join(model_dir, "eval_results.json")) as handle:
            return json.load(handle)

    def test_pretraining_reports_metrics_with_baselines_and_interval(self):
        results = self.results(self.pretrained)
        self.assertEqual((results["step"], results["records"]), (10, 40))
        low, high = (results[f"sentence_order_accuracy_{end}"] for end in ("low", "high"))
        self.assertBetween(results["sentence_order_accuracy"], low, high)
        self.assertIn("masked_lm_baseline", results)

    def test_an_evaluation_stops_after_its_steps(self):
        run = self.pretraining_run(self.pretrained, do_train=False, max_eval_steps=2)
        before = self.results(self.pretrained)
        pretrain(run)
        self.assertEqual(self.results(self.pretrained)["records"], 32)
        pretrain(dataclasses.replace(run, max_eval_steps=100))
        self.assertEqual(self.results(self.pretrained), before)

    def test_a_model_directory_loads_by_its_path_alone(self):
        batch = pretraining_batch(2)
        pretrainer = albert_tf.load_pretrainer(self.pretrained)
        outputs = pretrainer(batch)
        self.assertEqual(outputs["masked_lm_logits"].shape, [2, 3, tiny_config().vocab_size])
        self.assertEqual(outputs["sentence_order_logits"].shape, [2, 2])
        encoder = albert_tf.load_encoder(self.pretrained)
        self.assertAllEqual(
            encoder(batch)["sequence_output"], pretrainer.encoder(batch)["sequence_output"]
        )
        by_prefix = albert_tf.load_encoder(os.path.join(self.pretrained, "ckpt-10"))
        for one, other in zip(by_prefix.weights, encoder.weights, strict=True):
            self.assertAllEqual(one, other)
        fine_tuned = albert_tf.load_encoder(self.finetuned)
        self.assertEqual(fine_tuned(batch)["sequence_output"].shape, [2, SEQ_LENGTH, 32])

    def test_all_but_the_reinitialized_variables_come_from_the_checkpoint(self):
        output_dir = os.path.join(self.root, "reinitialized")
        # The first step of a warm-up has rate 0: it shows where training starts.
        finetune(
            self.finetuning_run(
                output_dir,
                reinitialize=("pooler", "query"),
                optimization=OptimizationConfig("adamw", 0.003, 1, 1),
            )
        )
        pretrained, tuned = map(albert_tf.load_encoder, (self.pretrained, output_dir))
        for before, after in zip(pretrained.variables, tuned.variables, strict=True):
            if before.name.endswith(("pooler/kernel:0", "query/kernel:0")):
                self.assertNotAllClose(before, after, atol=1e-3)
            elif not any(part in before.name for part in ("pooler", "query")):
                self.assertAllEqual(before, after)

    def test_names_to_reinitialize_must_exist(self):
        output_dir = os.path.join(self.root, "never")
        with self.assertRaisesRegex(UserError, "no variable is called so: --reinitialize=poller"):
            finetune(self.finetuning_run(output_dir, reinitialize=("query", "poller")))
        with self.assertRaisesRegex(UserError, "holds an empty name: --reinitialize"):
            finetune(self.finetuning_run(output_dir, reinitialize=("pooler", "")))
        with self.assertRaisesRegex(UserError, "without --init_checkpoint"):
            self.finetuning_run(output_dir, reinitialize=("query",), init_checkpoint=None)
        self.assertFalse(os.path.exists(output_dir))

    def test_fine_tuning_learns_and_reports_each_dev_file(self):
        results = self.results(self.finetuned)
        self.assertEqual((results["long_rows"], results["short_rows"]), (13, 5))
        self.assertGreater(results["long_accuracy"], 0.9)
        with open(os.path.join(self.finetuned, "predictions_dev_long.jsonl")) as handle:
            predictions = [json.loads(line) for line in handle]
        right = [row["label"] == row["prediction"] for row in predictions]
        self.assertAllClose(np.mean(right), results["long_accuracy"])

    @pytest.mark.slow  # the next one says it of a model that is harder to serve alike
    def test_the_served_model_agrees_with_the_evaluation(self):
        self.assert_served_as_evaluated(self.finetuned)

    def test_a_model_trained_in_bfloat16_is_evaluated_as_it_is_served(self):
        output_dir = os.path.join(self.root, "bfloat16")
        finetune(
            self.finetuning_run(
                output_dir,
                compute_dtype="bfloat16",
                optimization=OptimizationConfig("adamw", 0.003, 5, None),
                length_buckets=(),
            )
        )
        self.assert_served_as_evaluated(output_dir)

    def assert_served_as_evaluated(self, model_dir: str) -> None:
        predictor = Predictor(export_classifier(model_dir, self.create_tempdir().full_path))
        with open(os.path.join(self.reviews, "dev_long.jsonl")) as handle:
            rows = [json.loads(line) for line in handle]
        with open(os.path.join(model_dir, "predictions_dev_long.jsonl")) as handle:
            predictions = [json.loads(line) for line in handle]
        for answer, row in zip(predictor.predict(rows), predictions, strict=True):
            self.assertEqual(answer["label"], row["prediction"])
            self.assertAllClose(answer["probabilities"], row["probabilities"], atol=1e-5)

    def test_the_same_command_again_changes_nothing(self):
        before = self.results(self.finetuned)
        with open(os.path.join(self.finetuned, "metrics.jsonl")) as handle:
            metrics = handle.read()
        finetune(self.finetuning_run(self.finetuned))
        self.assertEqual(self.results(self.finetuned), before)
        with open(os.path.join(self.finetuned, "metrics.jsonl")) as handle:
            self.assertEqual(handle.read(), metrics)

    def test_another_run_in_the_same_directory_is_refused(self):
        changed = OptimizationConfig("lamb", 0.02, 10, 2)
        with self.assertRaisesRegex(UserError, "optimization.learning_rate is 0.01, not 0.02"):
            pretrain(self.pretraining_run(self.pretrained, optimization=changed))
        with self.assertRaisesRegex(UserError, "holds another run"):
            finetune(self.finetuning_run(self.pretrained))

    def test_unusable_checkpoints_stop_before_anything_is_written(self):
        for checkpoint, message in (
            ("/no/such/model", "is no checkpoint"),
            (self.reviews, "holds no checkpoint"),
            (os.path.join(self.pretrained, "ckpt-10.index"), "give its prefix"),
        ):
            output_dir = os.path.join(self.root, "never")
            with self.assertRaisesRegex(UserError, message):
                finetune(self.finetuning_run(output_dir, init_checkpoint=checkpoint))
            with self.assertRaisesRegex(UserError, message):
                pretrain(self.pretraining_run(output_dir, init_checkpoint=checkpoint))
            self.assertFalse(os.path.exists(output_dir))

    def test_a_checkpoint_that_means_another_model_is_refused(self):
        output_dir = os.path.join(self.root, "never")
        with self.assertRaisesRegex(UserError, "its num_attention_heads is 2, the model's 4"):
            finetune(self.finetuning_run(output_dir, model=tiny_config(num_attention_heads=4)))
        # Without a config beside it, what is left over tells.
        unshared = os.path.join(self.root, "unshared")
        grouped = tiny_config(num_hidden_groups=2)
        pretrain(self.pretraining_run(unshared, model=grouped, eval=None))
        with self.assertRaisesRegex(UserError, "its num_hidden_groups is 2, the model's 1"):
            finetune(self.finetuning_run(output_dir, init_checkpoint=unshared))
        os.remove(os.path.join(unshared, "albert_config.json"))
        with self.assertRaisesRegex(UserError, "holds 41 variables, the model only 25"):
            finetune(self.finetuning_run(output_dir, init_checkpoint=unshared))
        self.assertFalse(os.path.exists(output_dir))

    def test_other_mistakes_stop_before_anything_is_written(self):
        output_dir = os.path.join(self.root, "never")
        short = tiny_config(max_position_embeddings=SEQ_LENGTH - 1)
        other = tiny_config(hidden_size=64)
        for run, message in (
            (self.finetuning_run(output_dir, do_train=False), "holds no checkpoint"),
            (self.finetuning_run(output_dir, model=other), "does not fit the model"),
            (self.pretraining_run(output_dir, do_train=False), "holds no checkpoint"),
        ):
            with self.assertRaisesRegex(UserError, message):
                (finetune if isinstance(run, FinetuningRun) else pretrain)(run)
        with self.assertRaisesRegex(UserError, "15 positions: --input_file"):
            self.pretraining_run(output_dir, model=short)
        self.assertFalse(os.path.exists(output_dir))

    def test_records_and_checkpoints_of_another_vocabulary_are_refused(self):
        output_dir = os.path.join(self.root, "never")
        other = AlbertTokenizer(tiny_spm_model_file())
        other.model_proto += b"\n"
        run = self.finetuning_run(output_dir, tokenizer=other)
        with self.assertRaisesRegex(UserError, "has another vocabulary than .*: --init_checkpoint"):
            finetune(run)
        run = self.pretraining_run(output_dir)
        manifest = {"vocabulary": {"sha256": "0" * 64}, "settings": {}, "input": []}
        records = dataclasses.replace(run.train, manifests={"records/manifest.json": manifest})
        with self.assertRaisesRegex(UserError, "made with another vocabulary .*records/manifest"):
            pretrain(dataclasses.replace(run, train=records))
        self.assertFalse(os.path.exists(output_dir))

    def test_records_and_checkpoints_normalised_otherwise_are_refused(self):
        output_dir = os.path.join(self.root, "never")
        cased = AlbertTokenizer(tiny_spm_model_file(), do_lower_case=False)
        with self.assertRaisesRegex(UserError, "has do_lower_case=True, but .* with False"):
            finetune(self.finetuning_run(output_dir, tokenizer=cased))
        run = self.pretraining_run(output_dir)
        manifest = {
            "vocabulary": {"sha256": self.tokenizer.sha256},
            "settings": {"do_lower_case": True, "keep_accents": True},
            "input": [],
        }
        records = dataclasses.replace(run.train, manifests={"records/manifest.json": manifest})
        with self.assertRaisesRegex(UserError, "has keep_accents=True.*records/manifest"):
            pretrain(dataclasses.replace(run, train=records))
        self.assertFalse(os.path.exists(output_dir))

    def test_other_training_texts_make_another_run(self):
        reviews = self.directory("moved_reviews")
        write_reviews(reviews)
        finetune(self.finetuning_run(self.finetuned, data_dir=reviews))  # the same texts
        with open(os.path.join(reviews, "train.jsonl"), "a") as handle:
            handle.write('{"text": "a village", "label": "good"}\n')
        with self.assertRaisesRegex(UserError, "holds another run, whose .*train.jsonl|steps"):
            finetune(self.finetuning_run(self.finetuned, data_dir=reviews))
        with self.assertRaisesRegex(UserError, "holds another run, whose columns.text is 'text'"):
            columns = Columns(text="label")
            finetune(self.finetuning_run(self.finetuned, columns=columns))

    def test_a_vocabulary_larger_than_the_model_is_refused(self):
        with self.assertRaisesRegex(UserError, "pieces, the model's config 100"):
            pretrain(
                self.pretraining_run(
                    os.path.join(self.root, "never"), model=tiny_config(vocab_size=100)
                )
            )

    def test_a_label_that_training_lacks_is_named(self):
        reviews = self.directory("odd_reviews")
        write_reviews(reviews)
        with open(os.path.join(reviews, "dev_long.jsonl"), "a") as handle:
            handle.write('{"text": "a village", "label": "so-so"}\n')
        with self.assertRaisesRegex(UserError, "unknown label 'so-so': .*dev_long.jsonl:14"):
            finetune(self.finetuning_run(os.path.join(self.root, "never"), data_dir=reviews))


if __name__ == "__main__":
    tf.test.main()
