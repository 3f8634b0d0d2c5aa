import json
import os

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.serving.prediction import predict_file


class Echo:
    """A predictor that answers every row alike."""

    is_pair = False

    def predict(self, rows):
        return [{"label": "yes", "probabilities": {"yes": 1.0}} for _ in rows]


class PredictFileTest(tf.test.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = self.create_tempdir().full_path
        self.output = os.path.join(self.directory, "answers.jsonl")

    def predict(self, name, content, batch_size=2):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(content)
        predict_file(Echo(), path, self.output, batch_size)
        with open(self.output, encoding="utf-8") as handle:
            return [json.loads(line) for line in handle]

    def test_fields_come_back_as_they_were_even_if_they_have_no_utf8(self):
        rows = [{"text": "cut \ud83d"}, {"text": "東京 😀", "\udc00": ["\\ud800", "\udfff"]}]
        answers = self.predict("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        for row, answer in zip(rows, answers, strict=True):
            self.assertEqual(answer, {**row, "prediction": "yes", "probabilities": {"yes": 1.0}})

    def test_a_bad_row_behind_good_ones_is_named_and_leaves_the_old_answers(self):
        self.predict("rows.jsonl", '{"text": "old"}\n')
        for bad in ("[" * 100_000, "null", '{"text": null}', '{"text": 1}', "{"):
            with self.assertRaisesRegex(UserError, "bad.jsonl:4: "):
                self.predict("bad.jsonl", '{"text": "x"}\n' * 3 + bad)
        with open(self.output) as handle:
            self.assertEqual(json.loads(handle.read())["text"], "old")
        self.assertCountEqual(
            os.listdir(self.directory), ["answers.jsonl", "bad.jsonl", "rows.jsonl"]
        )


if __name__ == "__main__":
    tf.test.main()
