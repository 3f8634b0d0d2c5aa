"""The entry scripts as a user meets them: exit status and one line for what is wrong."""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import tensorflow as tf

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


def start(*arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=REPOSITORY, stderr=subprocess.PIPE, text=True
    )


RUN_FORKED = """
import json, os, runpy, sys
import flags.missing_package
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import albert_tf.finetuning, albert_tf.pretraining, albert_tf.serving.prediction
processes = []
for number, arguments in enumerate(json.loads(sys.argv[1])):
    processes.append(os.fork())
    if processes[-1]:
        continue
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"{sys.argv[2]}/{number}.{name}", os.O_CREAT | os.O_WRONLY), descriptor)
    run = runpy.run_module if arguments[0] == "-m" else runpy.run_path
    sys.argv = arguments[arguments[0] == "-m" :]
    try:
        run(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code or 0)  # at once: taking TensorFlow down lasts a second
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in processes]))
"""


def run_forked(
    commands: Sequence[Sequence[str]], directory: str
) -> list[subprocess.CompletedProcess]:
    """As run() does with each, but libraries are imported only once; files go to `directory`."""
    server = run("-c", RUN_FORKED, json.dumps(commands), directory)
    results = []
    for number, status in enumerate(json.loads(server.stdout)):
        out, error = (
            pathlib.Path(directory, f"{number}.{name}").read_text() for name in ("stdout", "stderr")
        )
        results.append(subprocess.CompletedProcess(commands[number], status, out, error))
    return results


def read_metrics(path: str) -> list[dict[str, float]]:
    """What each line of a metrics file says, but for kind and rates; [] if there is no file."""
    if not os.path.exists(path):
        return []
    with open(path) as handle:
        lines = [json.loads(line) for line in handle if line.endswith("\n")]
    ignored = ("kind", "steps_per_second", "sequences_per_second")
    return [{k: v for k, v in line.items() if k not in ignored} for line in lines]


MISTAKES = (
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
    (["-m", "quickstart.write_corpus", "--language=de", "--output_dir=x"], "--language"),
    (["export_savedmodel.py", "--model_dir=none", "--output_dir=x"], "--model_dir=none"),
    (["predict.py", "--saved_model=none", "--text=x"], "--saved_model=none"),
    (["predict.py", "--no_such_flag"], "no_such_flag"),
)
PRESETS = sorted(os.listdir(REPOSITORY / "flags" / "presets"))


def preset_command(name: str) -> list[str]:
    if name.endswith("_records.flags"):
        script = ["-m", "data_prep.create_pretraining_data"]
    else:
        script = ["run_finetuning.py" if "finetune" in name else "run_pretraining.py"]
    return [*script, f"--flagfile=flags/presets/{name}"]


class ScriptsTest(tf.test.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        mistakes = [arguments for arguments, _ in MISTAKES]
        commands = [*mistakes, *map(preset_command, PRESETS), ["run_pretraining.py", "--help"]]
        with tempfile.TemporaryDirectory() as directory:
            *results, cls.help = run_forked(commands, directory)
        cls.mistakes, cls.presets = results[: len(MISTAKES)], results[len(MISTAKES) :]

    def assert_one_line(self, result, message):
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertStartsWith(result.stderr, "error: ")
        self.assertLen(result.stderr.splitlines(), 1)
        self.assertIn(message, result.stderr)

    def test_what_the_user_can_mend_is_one_line_and_status_2(self):
        for (arguments, message), result in zip(MISTAKES, self.mistakes, strict=True):
            with self.subTest(arguments=arguments):
                self.assert_one_line(result, message)

    def test_starting_a_script_prints_nothing_of_its_own(self):
        scripts = ("run_pretraining.py", "run_finetuning.py", "export_savedmodel.py", "predict.py")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as executor:
            for result in executor.map(lambda script: run(script, "--no_such_flag"), scripts):
                self.assert_one_line(result, "no_such_flag")

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
        steps = 600
        command = [
            "run_pretraining.py",
            f"--input_file={records}/*.tfrecord",
            f"--albert_config_file={config}",
            f"--spm_model_file={tiny_spm_model_file()}",
            "--train_batch_size=8",
            f"--num_train_steps={steps}",
            "--num_warmup_steps=5",
            "--learning_rate=0.01",
            "--iterations_per_loop=20",
            "--save_checkpoints_steps=100",
        ]
        with start(*command, f"--output_dir={killed}") as other:
            # Step 100 is saved, and seconds are left, so a busy machine is no trouble.
            self.assertTrue(any("step 120/" in line for line in other.stderr))
            other.kill()
        self.assertEqual(run(*command, f"--output_dir={unbroken}").returncode, 0)
        self.assertEqual(other.returncode, -signal.SIGKILL)
        self.assertBetween(len(read_metrics(f"{killed}/metrics.jsonl")), 5, steps // 20 - 1)
        self.assertEqual(run(*command, f"--output_dir={killed}").returncode, 0)
        expected, actual = (read_metrics(f"{path}/metrics.jsonl") for path in (unbroken, killed))
        self.assertLen(expected, steps // 20)
        for line, other_line in zip(expected, actual, strict=True):
            self.assertAllClose(line, other_line, atol=1e-6)

    def test_help_is_no_failure(self):
        self.assertEqual(self.help.returncode, 0)
        self.assertIn("--num_train_steps", self.help.stdout)

    def test_every_preset_parses(self):
        for name, result in zip(PRESETS, self.presets, strict=True):
            # Only the paths are missing.
            self.assertIn("is required", result.stderr, name)


if __name__ == "__main__":
    tf.test.main()
