import os

import tensorflow as tf
from absl.testing import parameterized

from albert_tf.data.tabular import Columns, LabelledText, find_split, read_rows
from albert_tf.errors import UserError
from tests.shared_data import shared_path


class TabularTest(parameterized.TestCase, tf.test.TestCase):
    def write(self, name, content):
        path = os.path.join(self.create_tempdir().full_path, name)
        with open(path, "wb") as handle:
            handle.write(content if isinstance(content, bytes) else content.encode())
        return path

    @parameterized.parameters(
        ("a.tsv", 'label\ttext\n1\tone "quote\n0\ttwo\n'),
        ("a.tsv", '\ufefflabel\ttext\r\n1\tone "quote\r\n\r\n0\ttwo'),
        ("a.csv", 'label,text\n1,"one ""quote"\n0,two\n'),
        ("a.jsonl", '{"label": 1, "text": "one \\"quote"}\n\n{"label": 0, "text": "two"}\n'),
    )
    def test_formats_give_the_same_rows(self, name, content):
        rows = read_rows(self.write(name, content), Columns())
        self.assertEqual(
            rows, [LabelledText('one "quote', None, "1"), LabelledText("two", None, "0")]
        )

    @parameterized.parameters(
        ("a.tsv", "text\tlabel\nx\t1\nonly text\n", "a.tsv:3"),
        ("a.tsv", "text\tlabel\nx\t1\textra\n", "a.tsv:2"),
        ("a.tsv", "sentence\tlabel\nx\t1\n", "'text'.*sentence"),
        ("a.jsonl", '{"text": "x", "label": 1}\n{"text": \n', "a.jsonl:2"),
        ("a.jsonl", "[1]\n", "a.jsonl:1"),
        ("a.csv", b"text,label\n\xe9,1\n", "not UTF-8"),
        ("a.csv", "", "is empty"),
        ("a.csv", "text,label\n", "no row"),
        ("a.csv", 'label,text\n0,a\n1,"unclosed\n0,b\n', "malformed"),
    )
    def test_malformed_files_are_refused_by_file_and_line(self, name, content, message):
        with self.assertRaisesRegex(UserError, message):
            read_rows(self.write(name, content), Columns())

    def test_pairs_have_two_texts(self):
        path = self.write("a.tsv", "q\ta\tlabel\nwhy\tso\tyes\n")
        self.assertEqual(
            read_rows(path, Columns("q", "a", "label")), [LabelledText("why", "so", "yes")]
        )

    def test_a_split_may_have_several_files(self):
        directory = os.path.dirname(self.write("dev_b.tsv", "x"))
        for name in ("dev_a.tsv", "train.tsv", "developers.tsv", "dev.md"):
            open(os.path.join(directory, name), "w").close()
        names = [os.path.basename(path) for path in find_split(directory, "dev")]
        self.assertEqual(names, ["dev_a.tsv", "dev_b.tsv"])
        with self.assertRaisesRegex(UserError, "test split"):
            find_split(directory, "test")

    def test_two_files_of_one_name_are_refused(self):
        directory = self.create_tempdir().full_path
        for name in ("train.csv", "train.jsonl"):
            open(os.path.join(directory, name), "w").close()
        with self.assertRaisesRegex(UserError, "both train.csv and train.jsonl"):
            find_split(directory, "train")

    def test_a_real_file_with_unbalanced_quotes_keeps_its_rows(self):
        path = shared_path("data/glue/MRPC/dev.tsv")
        rows = read_rows(path, Columns("#1 String", "#2 String", "Quality"))
        self.assertLen(rows, 408)


if __name__ == "__main__":
    tf.test.main()
