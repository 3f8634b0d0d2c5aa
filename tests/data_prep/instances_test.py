import tensorflow as tf
from absl.testing import parameterized

from albert_tf.errors import UserError
from data_prep.instances import InstanceConfig


class InstanceConfigTest(parameterized.TestCase, tf.test.TestCase):
    @parameterized.parameters((512, 77), (128, 20), (64, 10), (8, 2))
    def test_predictions_follow_from_the_length(self, max_seq_length, expected):
        config = InstanceConfig(max_seq_length=max_seq_length)
        self.assertEqual(config.max_predictions_per_seq, expected)

    def test_predictions_can_be_capped(self):
        self.assertEqual(InstanceConfig(max_predictions_per_seq=20).max_predictions_per_seq, 20)

    @parameterized.parameters(
        ("max_seq_length", 7),
        ("masked_lm_prob", 0.0),
        ("masked_lm_prob", 1.0),
        ("masked_lm_prob", float("nan")),
        ("max_predictions_per_seq", 0),
        ("max_predictions_per_seq", 513),
        ("ngram", 0),
        ("short_seq_prob", 1.5),
        ("short_seq_prob", float("nan")),
        ("dupe_factor", 0),
        ("split_sentences", "klingon"),
    )
    def test_unusable_values_are_named(self, field, value):
        with self.assertRaisesRegex(UserError, f"--{field}={value}"):
            InstanceConfig(**{field: value})


if __name__ == "__main__":
    tf.test.main()
