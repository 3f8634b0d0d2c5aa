import json
import os
from unittest import mock

import numpy as np
import tensorflow as tf
from absl import logging
from absl.testing import parameterized

from albert_tf.checkpoint_files import checkpoints, latest_checkpoint
from albert_tf.data.pretraining import training_batches
from albert_tf.data.record_files import inspect_files
from albert_tf.errors import RunError, UserError
from albert_tf.optimization import OptimizationConfig
from albert_tf.tasks.pretraining import PretrainingTask
from albert_tf.training.strategy import StrategyConfig, create_strategy
from albert_tf.training.trainer import Trainer, TrainerConfig
from tests.tiny_models import pretraining_batch, tiny_config, write_records
from tests.tiny_vocabulary import VOCAB_SIZE

STEPS = 12


class TrainerTest(parameterized.TestCase, tf.test.TestCase):
    def setUp(self):
        super().setUp()
        directory = self.create_tempdir().full_path
        self.records = inspect_files(write_records(directory, rows=50), "--input_file")

    def trainer(self, output_dir, strategy="cpu", batch=8, steps=STEPS, dropout=0.1, **settings):
        config = TrainerConfig(
            output_dir, batch, **{"iterations_per_loop": 2, "save_checkpoints_steps": 4, **settings}
        )
        optimization = OptimizationConfig("lamb", 0.01, steps, 2)
        strategy = create_strategy(StrategyConfig(strategy))
        with strategy.scope():
            task = PretrainingTask(tiny_config(hidden_dropout_prob=dropout), seed=3)
        return task, Trainer(task, config, optimization, strategy)

    def batches(self, batch_size, skip_batches):
        return training_batches(self.records, VOCAB_SIZE, batch_size, skip_batches, seed=5)

    def metrics(self, output_dir):
        with open(os.path.join(output_dir, "metrics.jsonl")) as handle:
            lines = [json.loads(line) for line in handle]
        for line in lines:
            for rate in ("steps_per_second", "sequences_per_second"):
                line.pop(rate, None)
        return lines

    def test_a_killed_run_goes_on_as_if_it_had_not_been_killed(self):
        unbroken_dir, killed_dir = (self.create_tempdir().full_path for _ in range(2))
        unbroken, trainer = self.trainer(unbroken_dir)
        trainer.train(self.batches)

        def batches_until_killed(batch_size, skip_batches):
            def check(position, batch):
                tf.debugging.assert_less(position, np.int64(7), "killed")
                return batch

            return self.batches(batch_size, skip_batches).enumerate().map(check)

        _, trainer = self.trainer(killed_dir)
        with self.assertRaises(tf.errors.InvalidArgumentError):
            trainer.train(batches_until_killed)
        self.assertEndsWith(latest_checkpoint(killed_dir, "--output_dir"), "ckpt-4")

        resumed, trainer = self.trainer(killed_dir)
        self.assertTrue(trainer.restore())
        self.assertEqual(trainer.train(self.batches), STEPS)
        for a, b in zip(unbroken.model.weights, resumed.model.weights, strict=True):
            self.assertAllClose(a, b, atol=1e-6, msg=a.name)
        for a, b in zip(self.metrics(unbroken_dir), self.metrics(killed_dir), strict=True):
            self.assertAllClose(a.pop("step"), b.pop("step"))
            self.assertEqual(a.pop("kind"), b.pop("kind"))
            self.assertAllClose(a, b, atol=1e-5)

    def test_a_run_goes_on_without_its_state_file_and_names_a_damaged_checkpoint(self):
        output_dir = self.create_tempdir().full_path
        _, trainer = self.trainer(output_dir)
        trainer.train(self.batches)
        for content in (None, "", "gibberish"):
            state = os.path.join(output_dir, "checkpoint")
            os.remove(state)
            if content is not None:
                with open(state, "w") as handle:
                    handle.write(content)
            _, trainer = self.trainer(output_dir, keep_checkpoint_max=2)
            self.assertTrue(trainer.restore())
            self.assertEqual(trainer.checkpoint.step, STEPS)
            trainer.checkpoint.save(STEPS)
            self.assertLen(checkpoints(output_dir), 2)
        with open(os.path.join(output_dir, f"ckpt-{STEPS}.index"), "r+b") as handle:
            handle.truncate(20)
        _, trainer = self.trainer(output_dir)
        with self.assertRaisesRegex(UserError, "is damaged: .*ckpt-12: .* goes on from .*ckpt-8"):
            trainer.restore()

    def test_a_seed_beyond_32_bits_is_refused(self):
        with self.assertRaisesRegex(UserError, "does not fit 32 bits: --random_seed=4294967296"):
            TrainerConfig("", 8, random_seed=1 << 32)

    def test_tpu_flags_without_a_tpu_are_refused(self):
        for config in ({"strategy": "cpu", "tpu_name": "x"}, {"tpu_zone": "x"}):
            with self.assertRaisesRegex(UserError, "has no effect without a TPU: --tpu_"):
                StrategyConfig(**config)

    def test_the_update_does_not_depend_on_the_number_of_replicas(self):
        weights = []
        for strategy in ("cpu", "mirrored"):
            output_dir = self.create_tempdir().full_path
            task, trainer = self.trainer(output_dir, strategy, dropout=0.0)
            trainer.train(self.batches)
            weights.append([weight.numpy() for weight in task.model.weights])
            losses = [line["masked_lm_loss"] for line in self.metrics(output_dir)]
        for one, two in zip(*weights, strict=True):
            self.assertAllClose(one, two, atol=1e-5)
        self.assertAllInRange(losses, 0.0, 10.0)

    def test_a_finished_run_has_nothing_left_to_do(self):
        output_dir = self.create_tempdir().full_path
        _, trainer = self.trainer(output_dir)
        trainer.train(self.batches)
        before = sorted(os.listdir(output_dir))
        _, trainer = self.trainer(output_dir)
        self.assertTrue(trainer.restore())
        with mock.patch.object(logging, "info") as info:
            self.assertEqual(trainer.train(self.batches), STEPS)
        self.assertIn("already at step", info.call_args[0][0])
        self.assertEqual(sorted(os.listdir(output_dir)), before)

    def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_checkpoint(self):
        output_dir = self.create_tempdir().full_path

        def poisoned(batch_size, skip_batches):
            def poison(position, batch):
                weight = tf.where(position < 6, 1.0, float("nan"))
                return {**batch, "masked_lm_weights": batch["masked_lm_weights"] * weight}

            return self.batches(batch_size, skip_batches).enumerate().map(poison)

        _, trainer = self.trainer(output_dir)
        with self.assertRaisesRegex(RunError, "masked_lm_loss.* not finite: between step 6 and 8"):
            trainer.train(poisoned)
        self.assertEndsWith(latest_checkpoint(output_dir, "--output_dir"), "ckpt-4")

    def test_a_batch_that_the_replicas_cannot_share_is_refused(self):
        with self.assertRaisesRegex(UserError, "--train_batch_size=7"):
            self.trainer(self.create_tempdir().full_path, "mirrored", batch=7)

    def test_a_few_records_can_be_learnt_by_heart(self):
        batch = pretraining_batch(8)
        output_dir = self.create_tempdir().full_path
        _, trainer = self.trainer(output_dir, steps=300, dropout=0.0, iterations_per_loop=100)
        trainer.train(lambda size, skip: tf.data.Dataset.from_tensors(batch).repeat())
        first, *_, last = self.metrics(output_dir)
        self.assertAllClose(last["sentence_order_accuracy"], 1.0)
        self.assertLess(last["masked_lm_loss"], 0.3 * first["masked_lm_loss"])

    def test_training_batches_have_static_shapes(self):
        dataset = self.batches(4, 0)
        for name, spec in dataset.element_spec.items():
            self.assertTrue(spec.shape.is_fully_defined(), name)


if __name__ == "__main__":
    tf.test.main()
