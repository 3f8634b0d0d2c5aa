"""The command lines, run as users run them."""

import os
import pathlib
import subprocess
import sys
import tempfile

import tensorflow as tf

from tests.data_prep.corpora import make_documents, write_corpus
from tests.shared_data import REPOSITORY
from tests.tiny_vocabulary import tiny_spm_model_file


def start(script: str, **flags) -> subprocess.Popen:
    """Starts a script under a locale that is not UTF-8."""
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    return subprocess.Popen(
        [sys.executable, "-m", f"data_prep.{script}", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


class ScriptsTest(tf.test.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=self.get_temp_dir()))
        documents = [*make_documents(20, 8), ["Naïve cafés — 東京.", "Ünïcode stays whole."]]
        self.corpus = write_corpus(self.directory / "with a space.txt", documents)

    def test_records_are_made_and_can_be_inspected(self):
        vocabulary = start(
            "train_vocabulary",
            input_file=self.corpus,
            output_dir=self.directory / "vocabulary",
            vocab_size=80,
        )
        self.assertIn("pieces_per_word", vocabulary.communicate()[1])
        self.assertEqual(vocabulary.returncode, 0)
        model = self.directory / "vocabulary" / "spm.model"
        records = start(
            "create_pretraining_data",
            input_file=self.corpus,
            output_dir=self.directory / "records",
            spm_model_file=model,
            max_seq_length=64,
            num_workers=2,
        )
        _, log = records.communicate()
        self.assertEqual(records.returncode, 0, log)
        self.assertIn("records of length 64 with 10 predictions", log)
        inspection = start(
            "inspect_records",
            input_file=self.directory / "records" / "*.tfrecord",
            spm_model_file=model,
            num_examples=2,
        )
        shown, log = inspection.communicate()
        self.assertEqual(inspection.returncode, 0, log)
        self.assertEqual(shown.count("[CLS]"), 2)
        self.assertRegex(shown, r"swapped_share: 0\.\d+")

    def test_unusable_flags_and_files_are_one_line_and_status_2(self):
        good = {
            "input_file": self.corpus,
            "output_dir": self.directory / "out",
            "spm_model_file": tiny_spm_model_file(),
        }
        empty = self.directory / "empty.txt"
        empty.write_text("\n \n")
        bad = {
            "is out of range: --max_seq_length=7": {"max_seq_length": 7},
            "no text in any file": {"input_file": empty},
        }
        processes = {
            expected: start("create_pretraining_data", **(good | flags))
            for expected, flags in bad.items()
        }
        for expected, process in processes.items():
            _, errors = process.communicate()
            self.assertEqual(process.returncode, 2, errors)
            lines = [line for line in errors.splitlines() if line.startswith("error: ")]
            self.assertLen(lines, 1, errors)
            self.assertIn(expected, lines[0])
            self.assertNotIn("Traceback", errors)
        self.assertEqual(list(self.directory.glob("out/*.tfrecord")), [])


if __name__ == "__main__":
    tf.test.main()
