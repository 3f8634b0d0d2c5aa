import json
import os
import re

import tensorflow as tf
from absl.testing import parameterized

from albert_tf.data.classification import tokenize_rows
from albert_tf.data.tabular import Columns, LabelledText, find_split, read_rows
from albert_tf.errors import UserError
from albert_tf.tokenization import AlbertTokenizer
from tests.shared_data import shared_path
from tests.tiny_vocabulary import tiny_spm_model_file


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
        ("a.tsv", "text\tlabel\nx\t1\nonly text\n", "lacks the column 'label': .*a.tsv:3"),
        ("a.tsv", "label\ttext\tunused\n1\tx\n", "lacks the column 'unused': .*a.tsv:2"),
        ("a.tsv", "text\tlabel\nx\t1\textra\n", "a.tsv:2"),
        ("a.tsv", "sentence\tlabel\nx\t1\n", "'text'.*sentence"),
        ("a.jsonl", '{"text": "x", "label": 1}\n{"text": \n', "a.jsonl:2"),
        ("a.jsonl", "[1]\n", "a.jsonl:1"),
        ("a.jsonl", "[" * 100_000, "a.jsonl:1"),
        ("a.csv", b"text,label\n\xe9,1\n", "not UTF-8"),
        ("a.csv", "", "is empty"),
        ("a.csv", "text,label\n", "no row"),
        ("a.csv", 'label,text\n0,a\n1,"unclosed\n0,b\n', "malformed: .*a.csv:3"),
    )
    def test_malformed_files_are_refused_by_file_and_line(self, name, content, message):
        with self.assertRaisesRegex(UserError, message):
            read_rows(self.write(name, content), Columns())

    @parameterized.parameters("", " ", "\u3000", "\ud83d")
    def test_unusable_labels_are_refused_by_file_and_line(self, label):
        row = json.dumps({"text": "x", "label": label})
        path = self.write("a.jsonl", '{"text": "x", "label": 1}\n' + row)
        with self.assertRaisesRegex(UserError, f"label {re.escape(repr(label))}: .*a.jsonl:2"):
            read_rows(path, Columns())

    @parameterized.product(
        value=("null", "true", "[1]", '{"a": 1}', "NaN"), column=("text", "text_b", "label")
    )
    def test_json_values_that_are_no_text_are_refused_by_file_and_line(self, value, column):
        fields = {"text": '"x"', "text_b": '"y"', "label": "0"} | {column: value}
        row = ", ".join(f'"{name}": {spelled}' for name, spelled in fields.items())
        path = self.write("a.jsonl", "\n{" + row + "}")
        with self.assertRaisesRegex(UserError, f"has no text.* in '{column}': .*a.jsonl:2"):
            read_rows(path, Columns("text", "text_b"))

    def test_numbers_are_labels_but_no_texts(self):
        path = self.write("a.jsonl", '{"text": "x", "label": 2.5}')
        self.assertEqual(read_rows(path, Columns())[0].label, "2.5")
        with self.assertRaisesRegex(UserError, "has no text in 'label'"):
            read_rows(path, Columns(text="label", label="text"))

    def test_empty_texts_are_data(self):
        path = self.write("a.tsv", "text\ttext_b\tlabel\n\t\t1\n")
        self.assertEqual(read_rows(path, Columns("text", "text_b")), [LabelledText("", "", "1")])

    def test_an_unknown_label_is_named_with_its_line_and_ten_known_ones(self):
        path = self.write("dev.tsv", "text\tlabel\nx\t3\n\ny\tnone\n")
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        for known, named in ((4, "0, 1, 2, 3$"), (12, "0, 1, .*, 8, 9 and 2 more$")):
            labels = [str(label) for label in range(known)]
            with self.assertRaisesRegex(UserError, f"'none': {path}:4: .*{named}"):
                tokenize_rows(read_rows(path, Columns()), labels, tokenizer, 16, "head", path)

    @parameterized.parameters(("", "", 2), ("x" * 99, "", 16), ("a", "b", 5))
    def test_texts_of_any_length_are_packed(self, text, text_b, length):
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        rows = [LabelledText(text, text_b, "0")]
        texts = tokenize_rows(rows, ["0", "1"], tokenizer, 16, "head", "dev.tsv")
        self.assertAllEqual(texts.row_lengths, [length])

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
