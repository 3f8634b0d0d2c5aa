import hypothesis
import tensorflow as tf
from hypothesis import strategies as st

from albert_tf.data import record_schema
from data_prep.serialization import serialize_example

FLAGS_LIST = st.lists(st.integers(0, 1), max_size=300)
NUMBERS = st.lists(st.integers(0, 1 << 40), max_size=300)


class SerializeExampleTest(tf.test.TestCase):
    @hypothesis.settings(deadline=None)
    @hypothesis.given(ids=NUMBERS, mask=FLAGS_LIST, weights=FLAGS_LIST, label=st.integers(0, 1))
    def test_the_message_is_that_of_to_example(self, ids, mask, weights, label):
        features = {
            "input_ids": ids,
            "input_mask": mask,
            "masked_lm_positions": ids[::-1],
            record_schema.PREDICTION_WEIGHTS: list(map(float, weights)),
            record_schema.SENTENCE_LABEL: [label],
        }
        parsed = tf.train.Example.FromString(serialize_example(features))
        self.assertEqual(parsed, record_schema.to_example(features))


if __name__ == "__main__":
    tf.test.main()
