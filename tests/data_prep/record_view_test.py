import gzip
import os

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.data.record_files import inspect_files
from albert_tf.data.record_schema import to_example
from albert_tf.errors import UserError
from albert_tf.tokenization import AlbertTokenizer
from data_prep import record_view
from tests.tiny_models import pretraining_arrays, write_records
from tests.tiny_vocabulary import tiny_spm_model_file


def changed(**features) -> bytes:
    """A record with other features; None leaves one out."""
    values = {name: rows[0] for name, rows in pretraining_arrays(1).items()} | features
    example = to_example({name: v for name, v in values.items() if v is not None})
    return example.SerializeToString()


def picture() -> bytes:
    example = tf.train.Example()
    example.features.feature["image"].bytes_list.value.append(b"\x89PNG")
    example.features.feature["kindless"].SetInParent()
    return example.SerializeToString()


class ForeignFilesTest(parameterized.TestCase, tf.test.TestCase):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.create_tempdir().full_path, "foreign")

    def assert_refused(self, message):
        message = f"{message}.*: --input_file={self.path}: "
        for read in (lambda: list(record_view.read_records([self.path])), self.inspect):
            with self.assertRaisesRegex(UserError, message) as caught:
                read()
            self.assertNotIn("\n", str(caught.exception))
            self.assertNotRegex(str(caught.exception), "{{|Op:")

    def inspect(self):
        inspect_files([self.path], "--input_file")

    def write(self, *records: bytes):
        with tf.io.TFRecordWriter(self.path) as writer:
            for record in records:
                writer.write(record)

    @parameterized.parameters(
        (b"some text\n" * 20, "is damaged"),
        (gzip.compress(b"some text\n" * 20), "is damaged"),
        (b"\x1f\x8b", "holds no record"),
        (b"", "holds no record"),
    )
    def test_files_without_records_are_refused(self, content, message):
        with open(self.path, "wb") as handle:
            handle.write(content)
        self.assert_refused(message)

    @parameterized.named_parameters(
        ("no_example", b"\xff\xff\xff no example", "is damaged, or no .*Example"),
        ("nothing", b"", "input_ids, .*missing"),
        ("pictures", picture(), "input_ids, .*missing"),
        ("no_boundaries", changed(token_boundary=None), r"\(token_boundary missing"),
        ("empty", changed(input_ids=[]), "input_ids holds .*or none"),
        ("short", changed(input_mask=[1, 1]), "lengths do not agree: .*input_mask 2"),
        ("labels", changed(next_sentence_labels=[1, 0]), "lengths do not agree"),
        ("beyond", changed(masked_lm_positions=np.array([1, 2, 999])), "go beyond"),
    )
    def test_records_of_another_kind_are_refused(self, record, message):
        self.write(record)
        self.assert_refused(message)

    def test_a_file_cut_short_is_refused_behind_its_whole_records(self):
        whole = write_records(os.path.dirname(self.path), rows=5, shards=1)[0]
        with open(whole, "rb") as handle, open(self.path, "wb") as cut:
            cut.write(handle.read()[:-9])
        records = record_view.read_records([self.path])
        for _ in range(4):
            next(records)
        with self.assertRaisesRegex(UserError, f"is damaged.*{self.path}.*truncated record"):
            next(records)

    def test_a_record_of_padding_alone_is_shown(self):
        self.write(changed(input_mask=np.zeros(16, int), masked_lm_weights=np.zeros(3)))
        (record,) = record_view.read_records([self.path])
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        self.assertIn("0 pieces", record_view.render(record, tokenizer))


if __name__ == "__main__":
    tf.test.main()
