import contextlib
import io
import pathlib
import subprocess
import sys

import tensorflow as tf
from absl.testing import flagsaver, parameterized

from quickstart import run
from quickstart.process import run_measured
from tests.shared_data import REPOSITORY


class ProcessTest(tf.test.TestCase):
    def test_status_time_memory_and_output_of_a_command(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            finished = run_measured(["sh", "-c", "echo one; echo two; sleep 1; exit 3"])
        self.assertEqual(finished.status, 3)
        self.assertBetween(finished.seconds, 1.0, 60.0)
        self.assertGreater(finished.peak_memory_mb, 0.0)
        self.assertEqual(finished.output, "one\ntwo\n")
        self.assertEqual(printed.getvalue(), finished.output)


class RunTest(parameterized.TestCase, tf.test.TestCase):
    def test_a_step_is_shown_as_a_command_that_can_be_typed(self):
        quickstart, printed = run.Quickstart(pathlib.Path("x")), io.StringIO()
        with contextlib.redirect_stdout(printed):
            quickstart.step("help", "json.tool", help=True, text=("a b", "c"))
        shown = printed.getvalue().split("=== help\n$ ")[1]
        words = ["python -m json.tool", "--help", "'--text=a b'", "--text=c"]
        self.assertStartsWith(shown, " \\\n    ".join(words))
        self.assertGreater(quickstart.seconds["help"], 0)

    def test_a_step_that_fails_ends_the_quickstart_with_its_status(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as caught:
            run.Quickstart(pathlib.Path("x")).step("export", "json.tool", model_dir="x")
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("error: the step failed with status 2: export: ", errors.getvalue())

    @flagsaver.flagsaver
    def test_other_settings_have_directories_of_their_own(self):
        names = set()
        for corpus, language, vocab_size in (
            ("", "en", 8000),
            ("", "en", 2000),
            ("a.txt", "en", 8000),
            ("a.txt", "de", 8000),
            ("a.txt", "de", 2000),
            ("b.txt", "en", 8000),
        ):
            run.FLAGS.corpus, run.FLAGS.language = corpus, language
            run.FLAGS.vocab_size = vocab_size
            names.add(run._run_name())
        self.assertLen(names, 6)
        self.assertIn("reviews", names)

    @parameterized.parameters(
        (["--init=best"], "--init=best"),
        (["--init=random", "--corpus=x"], "INIT=random"),
        (["--language=de"], "LANGUAGE"),
    )
    def test_flags_without_sense_are_one_line(self, arguments, message):
        result = subprocess.run(
            [sys.executable, "-m", "quickstart.run", *arguments],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
        )
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertStartsWith(result.stderr, "error: ")
        self.assertLen(result.stderr.splitlines(), 1)
        self.assertIn(message, result.stderr)


if __name__ == "__main__":
    tf.test.main()
