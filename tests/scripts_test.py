"""The entry scripts as a user meets them: exit status and one line for what is wrong."""

import json
import os
import signal
import subprocess
import sys
import time

import tensorflow as tf
from absl.testing import parameterized

from tests.shared_data import REPOSITORY, TEST_DATA
from tests.tiny_models import tiny_config, write_records
from tests.tiny_vocabulary import tiny_spm_model_file


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        timeout=300,
    )


def read_metrics(path: str) -> list[dict[str, float]]:
    """What each line of a metrics file says, but for kind and rates; [] if there is no file."""
    if not os.path.exists(path):
        return []
    with open(path) as handle:
        lines = [json.loads(line) for line in handle if line.endswith("\n")]
    ignored = ("kind", "steps_per_second", "sequences_per_second")
    return [{k: v for k, v in line.items() if k not in ignored} for line in lines]


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

    def test_a_missing_package_is_one_line_and_status_2(self):
        blocked = self.create_tempdir().full_path
        # A package of this name that cannot be imported, before the real one on the path.
        os.makedirs(os.path.join(blocked, "tensorflow_addons"))
        with open(os.path.join(blocked, "tensorflow_addons", "__init__.py"), "w") as handle:
            handle.write("raise ModuleNotFoundError('x', name='tensorflow_addons')")
        result = run("run_pretraining.py", "--help", env={"PYTHONPATH": blocked})
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertLen(result.stderr.splitlines(), 1)
        self.assertStartsWith(result.stderr, "error: is not installed: the package tensorflow_add")

    def test_a_run_that_is_killed_ends_as_the_unbroken_one(self):
        records, config = self.create_tempdir().full_path, self.create_tempfile().full_path
        write_records(records, rows=40)
        with open(config, "w") as handle:
            handle.write(tiny_config(hidden_dropout_prob=0.1).to_json_string())
        unbroken, killed = (self.create_tempdir().full_path for _ in range(2))
        command = [
            "run_pretraining.py",
            f"--input_file={records}/*.tfrecord",
            f"--albert_config_file={config}",
            f"--spm_model_file={tiny_spm_model_file()}",
            "--train_batch_size=8",
            "--num_train_steps=60",
            "--num_warmup_steps=5",
            "--learning_rate=0.01",
            "--iterations_per_loop=4",
            "--save_checkpoints_steps=20",
        ]
        self.assertEqual(run(*command, f"--output_dir={unbroken}").returncode, 0)
        with subprocess.Popen(
            [sys.executable, *command, f"--output_dir={killed}"],
            cwd=REPOSITORY,
            stderr=subprocess.DEVNULL,
        ) as process:
            path = os.path.join(killed, "metrics.jsonl")
            while process.poll() is None and len(read_metrics(path)) < 6:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        self.assertBetween(len(read_metrics(path)), 6, 14)
        self.assertEqual(run(*command, f"--output_dir={killed}").returncode, 0)
        expected = read_metrics(os.path.join(unbroken, "metrics.jsonl"))
        self.assertLen(expected, 15)
        for one, other in zip(expected, read_metrics(path), strict=True):
            self.assertAllClose(one, other, atol=1e-6)

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
