import os

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.data.pretraining import (
    evaluation_examples,
    faults_named,
    label_statistics,
    training_batches,
)
from albert_tf.data.record_files import inspect_files
from albert_tf.data.record_schema import to_example
from albert_tf.errors import UserError
from albert_tf.training.evaluation import pad_batches
from tests.shared_data import shared_path
from tests.tiny_models import PREDICTIONS, SEQ_LENGTH, pretraining_arrays, write_records
from tests.tiny_vocabulary import VOCAB_SIZE


def keys(batch) -> list[bytes]:
    return [row.tobytes() for row in batch["input_ids"]]


class PretrainingRecordsTest(parameterized.TestCase, tf.test.TestCase):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.get_temp_dir(), self.id())
        os.makedirs(self.path, exist_ok=True)
        self.shards = write_records(self.path, rows=30)
        self.records = inspect_files(self.shards, "--input_file")

    def take(self, count, skip=0, seed=1):
        batches = training_batches(self.records, VOCAB_SIZE, 5, skip, seed).take(count)
        return [keys(batch) for batch in batches.as_numpy_iterator()]

    def test_the_same_seed_gives_the_same_batches_and_another_others(self):
        self.assertEqual(self.take(20), self.take(20))
        self.assertNotEqual(self.take(20), self.take(20, seed=2))

    def test_skipped_batches_are_those_already_consumed(self):
        self.assertEqual(self.take(20)[13:], self.take(7, skip=13))

    def test_every_record_is_used(self):
        seen = {key for batch in self.take(60) for key in batch}
        self.assertLen(seen, 30)

    def test_evaluation_sees_every_record_once_and_pads_with_weight_zero(self):
        examples = evaluation_examples(self.records, VOCAB_SIZE)
        batches = list(pad_batches(examples, 8).as_numpy_iterator())
        weights = np.concatenate([batch["example_weights"] for batch in batches])
        self.assertAllEqual(weights, [1.0] * 30 + [0.0] * 2)
        ids = np.concatenate([batch["input_ids"] for batch in batches])
        self.assertLen({row.tobytes() for row in ids[:30]}, 30)
        self.assertAllEqual(ids[30:], np.zeros([2, SEQ_LENGTH]))

    def test_baselines_are_the_commonest_labels(self):
        arrays = pretraining_arrays(30)
        masked = arrays["masked_lm_ids"][arrays["masked_lm_weights"] > 0]
        swapped = arrays["next_sentence_labels"].mean()
        statistics = label_statistics(evaluation_examples(self.records, VOCAB_SIZE), VOCAB_SIZE)
        self.assertEqual(statistics["records"], 30)
        self.assertAllClose(
            statistics["masked_lm_baseline"], np.bincount(masked).max() / len(masked)
        )
        self.assertAllClose(statistics["sentence_order_baseline"], max(swapped, 1 - swapped))

    def test_lengths_that_do_not_fit_are_refused(self):
        for asked in ({"max_seq_length": 64}, {"max_predictions_per_seq": 20}):
            with self.assertRaisesRegex(UserError, f"hold {SEQ_LENGTH} tokens and {PREDICTIONS}"):
                inspect_files(self.shards, "--input_file", **asked)

    def test_damaged_and_empty_shards_are_named(self):
        with open(self.shards[0], "rb") as handle:
            cut_short = handle.read()[:100]
        for content in (b"", b"no records here", cut_short):
            bad = os.path.join(self.path, "bad.tfrecord")
            with open(bad, "wb") as handle:
                handle.write(content)
            with self.assertRaisesRegex(UserError, "bad.tfrecord"):
                inspect_files([self.shards[0], bad], "--input_file")

    def test_a_shard_that_is_damaged_behind_its_first_record_is_named_when_it_is_met(self):
        with open(self.shards[1], "r+b") as handle:
            handle.truncate(os.path.getsize(self.shards[1]) - 10)
        records = inspect_files(self.shards, "--input_file")
        with (
            self.assertRaisesRegex(UserError, f"damaged .*: {self.shards[1]}: "),
            faults_named(records, VOCAB_SIZE),
        ):
            list(training_batches(records, VOCAB_SIZE, 5, 0, seed=1).take(20))

    def test_ids_beyond_the_vocabulary_are_an_error_not_zeros(self):
        with (
            self.assertRaisesRegex(UserError, f"{self.shards[0]}: .* input_ids outside 0 to 49"),
            faults_named(self.records, 50),
        ):
            list(training_batches(self.records, 50, 5, 0, seed=1).take(20))

    @parameterized.parameters(
        ("input_ids", -1),
        ("masked_lm_ids", VOCAB_SIZE),
        ("masked_lm_positions", SEQ_LENGTH),
        ("segment_ids", 2),
        ("next_sentence_labels", 2),
    )
    def test_a_number_that_the_model_cannot_look_up_is_an_error(self, name, number):
        arrays = pretraining_arrays(6)
        arrays[name][3, 0] = number
        path = os.path.join(self.path, "odd.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for row in range(6):
                example = to_example({key: values[row] for key, values in arrays.items()})
                writer.write(example.SerializeToString())
        records = inspect_files([path], "--input_file")
        with (
            self.assertRaisesRegex(UserError, f"odd.tfrecord: .* {name} outside 0 to"),
            faults_named(records, VOCAB_SIZE),
        ):
            list(training_batches(records, VOCAB_SIZE, 2, 0, seed=1).take(3))

    def test_other_errors_are_not_blamed_on_the_records(self):
        with (
            self.assertRaisesRegex(tf.errors.InvalidArgumentError, "of the model"),
            faults_named(self.records, VOCAB_SIZE),
        ):
            raise tf.errors.InvalidArgumentError(None, None, "of the model")

    def test_records_of_the_official_code_are_read(self):
        path = shared_path("golden/data_prep/official_128.tfrecord")
        records = inspect_files([path], "--input_file")
        self.assertEqual((records.max_seq_length, records.max_predictions_per_seq), (128, 20))
        batch = next(training_batches(records, 30_000, 4, 0, 1).as_numpy_iterator())
        self.assertEqual(batch["masked_lm_weights"].shape, (4, 20))


if __name__ == "__main__":
    tf.test.main()
