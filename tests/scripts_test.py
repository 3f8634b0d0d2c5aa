"""The entry scripts as a user meets them: exit status and one line for what is wrong."""

import os
import subprocess
import sys

import tensorflow as tf
from absl.testing import parameterized

from tests.shared_data import REPOSITORY, TEST_DATA


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments], cwd=REPOSITORY, capture_output=True, text=True, timeout=300
    )


class ScriptsTest(parameterized.TestCase, tf.test.TestCase):
    @parameterized.parameters(
        (["run_pretraining.py"], "--input_file"),
        (["run_pretraining.py", "--input_file=x*.none", "--output_dir=/tmp/x"], "matches no file"),
        (
            ["run_pretraining.py", f"--input_file={TEST_DATA}/village.txt", "--output_dir=/tmp/x"],
            "TFRecord",
        ),
        (["run_finetuning.py", "--data_dir=x", "--output_dir=y"], "--from_scratch"),
        (["run_finetuning.py", "--train_batch_size=many"], "train_batch_size"),
        (["run_pretraining.py", "--input_file=nofs://x", "--output_dir=/tmp/x"], "nofs"),
        (["-m", "quickstart.run", "--init=best"], "--init=best"),
        (["export_savedmodel.py", "--model_dir=none", "--output_dir=x"], "--model_dir=none"),
        (["predict.py", "--saved_model=none", "--text=x"], "--saved_model=none"),
        (["predict.py", "--no_such_flag"], "no_such_flag"),
    )
    def test_what_the_user_can_mend_is_one_line_and_status_2(self, arguments, message):
        result = run(*arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertStartsWith(result.stderr, "error: ")
        self.assertLen(result.stderr.splitlines(), 1)
        self.assertIn(message, result.stderr)

    def test_help_is_no_failure(self):
        result = run("run_pretraining.py", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--num_train_steps", result.stdout)

    def test_every_preset_parses(self):
        for name in sorted(os.listdir(REPOSITORY / "flags" / "presets")):
            flagfile = f"--flagfile=flags/presets/{name}"
            if name.endswith("_records.flags"):
                script = ["-m", "data_prep.create_pretraining_data"]
            else:
                script = ["run_finetuning.py" if "finetune" in name else "run_pretraining.py"]
            result = run(*script, flagfile)
            # Only the paths are missing.
            self.assertIn("is required", result.stderr, name)


if __name__ == "__main__":
    tf.test.main()
