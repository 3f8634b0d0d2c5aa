import json
import os
import shutil
import subprocess
import sys
from unittest import mock

import numpy as np
import tensorflow as tf

from albert_tf import loading, model_directory
from albert_tf.errors import RunError, UserError
from albert_tf.models import AlbertClassifier
from albert_tf.serving import export
from albert_tf.serving.export import (
    IDS_SIGNATURE,
    TEXT_SIGNATURE,
    export_classifier,
    latest_version,
    read_model_card,
)
from albert_tf.serving.prediction import Predictor, predict_file
from albert_tf.tokenization import AlbertTokenizer
from tests.tiny_models import tiny_config
from tests.tiny_vocabulary import tiny_spm_model_file

LABELS = ["no", "perhaps", "yes"]
TEXTS = ["the village", "", "A much longer Text, with 1,000 words. " * 9, "Café [MASK] 東京"]


def write_model(directory: str, pair: bool = False, num_train_steps: int = 1) -> str:
    """A classifier of step 1 in a model directory."""
    config = tiny_config()
    task = {
        "task": "sequence_classification",
        "labels": LABELS,
        "max_seq_length": 16,
        "truncation": "head_tail",
        "pair": pair,
    }
    tokenizer = AlbertTokenizer(tiny_spm_model_file())
    run = {"optimization": {"num_train_steps": num_train_steps}}
    description = model_directory.Description(config, tokenizer, task, run, "")
    model_directory.claim(directory, description)
    model = AlbertClassifier(config, len(LABELS), seed=4)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), directory, 1)
    manager.save()
    return directory


class ExportTest(tf.test.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = os.path.join(cls().get_temp_dir(), "export")
        cls.model_dir = write_model(os.path.join(cls.root, "model"))
        cls.exports = os.path.join(cls.root, "exports")
        cls.path = export_classifier(cls.model_dir, cls.exports)
        cls.signatures = tf.saved_model.load(cls.path).signatures

    def probabilities(self, texts):
        return self.signatures[TEXT_SIGNATURE](tf.constant(texts))["probabilities"].numpy()

    def test_answers_do_not_depend_on_the_batch(self):
        together = self.probabilities(TEXTS)
        alone = np.concatenate([self.probabilities([text]) for text in TEXTS])
        self.assertAllClose(together, alone, atol=1e-6)
        self.assertAllClose(together.sum(-1), np.ones(len(TEXTS)))

    def test_an_empty_batch_has_an_empty_answer(self):
        answer = self.signatures[TEXT_SIGNATURE](tf.constant([], tf.string))
        self.assertEqual(answer["probabilities"].shape, [0, 3])

    def test_labels_name_the_probabilities(self):
        answer = self.signatures[TEXT_SIGNATURE](tf.constant(TEXTS))
        self.assertAllEqual(answer["labels"][2], LABELS)
        best = [LABELS[i] for i in answer["probabilities"].numpy().argmax(-1)]
        self.assertAllEqual(answer["label"], best)

    def test_text_and_ids_give_the_same_answer(self):
        ids = [2, *AlbertTokenizer(tiny_spm_model_file()).encode(TEXTS[0]), 3]
        inputs = {
            "input_ids": tf.constant([ids]),
            "input_mask": tf.ones([1, len(ids)], tf.int32),
            "segment_ids": tf.zeros([1, len(ids)], tf.int32),
        }
        answer = self.signatures[IDS_SIGNATURE](**inputs)
        self.assertAllClose(answer["probabilities"], self.probabilities(TEXTS[:1]), atol=1e-6)

    def test_the_model_itself_answers_the_same(self):
        model = loading.load_classifier(self.model_dir)
        ids = [2, *AlbertTokenizer(tiny_spm_model_file()).encode(TEXTS[0]), 3]
        logits = model({"input_ids": tf.constant([ids])})["logits"]
        self.assertAllClose(tf.nn.softmax(logits), self.probabilities(TEXTS[:1]), atol=1e-6)

    def test_a_moved_model_answers_in_a_fresh_process(self):
        moved = os.path.join(self.create_directory("elsewhere"), "model")
        shutil.copytree(self.path, moved)
        code = (
            "import sys, tensorflow_text, tensorflow as tf; m = tf.saved_model.load(sys.argv[1]);"
            "print(m.signatures['serving_default'](tf.constant(['the village']))"
            "['probabilities'].numpy().tolist())"
        )
        output = subprocess.run(
            [sys.executable, "-c", code, moved],
            cwd=self.create_directory("cwd"),
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        self.assertAllClose(json.loads(output), self.probabilities(TEXTS[:1]), atol=1e-6)

    def test_versions_count_up_and_nothing_unfinished_stays(self):
        # What a killed export left is replaced.
        os.makedirs(os.path.join(self.exports, ".unfinished", "variables"))
        second = export_classifier(self.model_dir, self.exports)
        self.assertEqual([os.path.basename(path) for path in (self.path, second)], ["1", "2"])
        self.assertEqual(latest_version(self.exports), second)
        self.assertCountEqual(os.listdir(self.exports), ["1", "2"])

    def test_an_unfinished_run_is_exported_with_a_warning(self):
        model_dir = write_model(os.path.join(self.root, "unfinished"), num_train_steps=9)
        exports = os.path.join(self.root, "unfinished_exports")
        with self.assertLogs("absl", "WARNING") as logs, self.save_by_copying():
            path = export_classifier(model_dir, exports)
        self.assertIn("UNFINISHED: this is ckpt-1 of 9 steps", "".join(logs.output))
        card = read_model_card(path)
        self.assertEqual(card["checkpoint"], "ckpt-1")
        self.assertEqual(card["run"]["optimization"]["num_train_steps"], 9)

    def test_an_export_that_answers_differently_is_not_kept(self):
        exports = os.path.join(self.root, "different")
        original = export._probabilities
        with (
            self.save_by_copying(),
            mock.patch.object(export, "_probabilities", lambda *args: original(*args) + 1e-3),
            self.assertRaisesRegex(RunError, "off by .*: not kept"),
        ):
            export_classifier(self.model_dir, exports)
        self.assertEmpty(os.listdir(exports))

    def test_the_model_card_says_where_it_comes_from(self):
        card = read_model_card(self.path)
        self.assertEqual(card["task"]["labels"], LABELS)
        self.assertEqual(card["versions"]["tensorflow"], tf.__version__)

    def test_what_is_no_model_is_refused(self):
        empty = self.create_directory("empty")
        for model_dir in (empty, "/no/such/dir"):
            with self.assertRaisesRegex(UserError, model_dir):
                export_classifier(model_dir, self.exports)
        for path in (empty, "/no/such/dir", self.model_dir):
            with self.assertRaisesRegex(UserError, f"--saved_model={path}"):
                Predictor(path)

    def save_by_copying(self):
        """Takes the saved model of setUpClass, of equal weights, for the seconds that it saves."""

        def copy(module, path, *args, **kwargs):
            shutil.copytree(self.path, path, dirs_exist_ok=True)

        return mock.patch.object(tf.saved_model, "save", copy)

    def create_directory(self, name: str) -> str:
        path = os.path.join(self.get_temp_dir(), name)
        os.makedirs(path, exist_ok=True)
        return path


class PredictionTest(tf.test.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = os.path.join(cls().get_temp_dir(), "prediction")
        model = write_model(os.path.join(cls.root, "model"), pair=True)
        cls.predictor = Predictor(export_classifier(model, os.path.join(cls.root, "exports")))

    def write(self, name, content):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(content)
        return path

    def test_every_row_of_a_file_is_answered_in_order(self):
        rows = [
            {"id": i, "text": f"text {i}", "text_b": "the village", "label": "mine"}
            for i in range(7)
        ]
        path = self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        output = os.path.join(self.root, "answers.jsonl")
        self.assertEqual(predict_file(self.predictor, path, output, batch_size=3), 7)
        with open(output) as handle:
            answers = [json.loads(line) for line in handle]
        self.assertEqual([answer["id"] for answer in answers], list(range(7)))
        expected = self.predictor.predict(rows)
        for answer, single in zip(answers, expected, strict=True):
            self.assertEqual(answer["label"], "mine")
            self.assertEqual(answer["prediction"], single["label"])
            self.assertEqual(list(answer["probabilities"]), LABELS)

    def test_a_lone_surrogate_is_a_replacement_character(self):
        cut, replaced = self.predictor.predict(
            [{"text": text, "text_b": "b"} for text in ("a \ud83d", "a \ufffd")]
        )
        self.assertEqual(cut, replaced)

    def test_a_row_without_text_is_named_and_nothing_is_written(self):
        path = self.write("rows.tsv", "text\ttext_b\na\tb\nonly one\n")
        output = os.path.join(self.root, "none.jsonl")
        with self.assertRaisesRegex(UserError, "rows.tsv:3"):
            predict_file(self.predictor, path, output, batch_size=2)
        self.assertFalse(os.path.exists(output))

    def test_plain_text_is_refused_by_a_model_of_pairs(self):
        path = self.write("rows.txt", "a line\n")
        with self.assertRaisesRegex(UserError, "takes pairs"):
            predict_file(self.predictor, path, os.path.join(self.root, "x"), batch_size=2)


if __name__ == "__main__":
    tf.test.main()
