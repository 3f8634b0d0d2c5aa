"""The main job on real text: raw text -> vocabulary -> records -> pretraining -> classifier.

Each step is the ordinary script a user would call, shown before it runs. `make quickstart`
calls this; see the README.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import sys
from typing import NoReturn

from flags import missing_package  # noqa: F401  before any package that may be missing

# isort: split
from absl import app, flags

from quickstart.process import run_measured

FLAGS = flags.FLAGS

flags.DEFINE_enum("init", "pretrained", ["pretrained", "random"], "Where fine-tuning starts.")
flags.DEFINE_string("corpus", "", "Your own text files or globs; only pretraining runs.")
flags.DEFINE_string("language", "en", "Of --corpus.")
flags.DEFINE_integer("vocab_size", 8000, "Pieces of the vocabulary.")

ROOT = pathlib.Path("build/quickstart")
SUMMARY = "summary.json"

README_TEXTS = (
    "One of the best films I have seen in years, moving and beautifully acted.",
    "Two hours of my life that I will never get back.",
    "The plot makes no sense, yet I laughed from the first scene to the last.",
)


@dataclasses.dataclass
class Quickstart:
    """One run of the quickstart.

    Attributes:
      directory: holds everything the run writes.
      seconds: wall time by stage.
      peak_memory_mb: most memory that a stage's processes held together.
    """

    directory: pathlib.Path
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    peak_memory_mb: float = 0.0

    def path(self, name: str) -> str:
        """A path below the run's directory."""
        return str(self.directory / name)

    def step(self, stage: str, script: str, **arguments: object) -> str:
        """Shows and runs one script with absl flags; stops the quickstart if it fails.

        Returns:
          What the script printed.
        """
        values: list[str] = []
        for name, value in arguments.items():
            for one in value if isinstance(value, tuple) else (value,):
                values.append(f"--{name}" if one is True else f"--{name}={one}")
        program = ["-m", script] if "." in script and not script.endswith(".py") else [script]
        shown = " ".join(["python", *program])
        print(
            f"\n=== {stage}\n$ " + " \\\n    ".join([shown, *map(shlex.quote, values)]), flush=True
        )
        finished = run_measured([sys.executable, *program, *values])
        if status := finished.status:
            _fail(
                f"the step failed with status {status}: {stage}: see above; "
                "`make quickstart` goes on from there",
                status if status in (1, 2) else 1,
            )
        self.seconds[stage] = round(self.seconds.get(stage, 0) + finished.seconds, 1)
        self.peak_memory_mb = max(self.peak_memory_mb, finished.peak_memory_mb)
        return finished.output

    def results(self, model: str) -> dict:
        """The evaluation of one of the run's models."""
        return json.loads((self.directory / model / "eval_results.json").read_text())


def prepare(run: Quickstart, with_records: bool) -> None:
    """Corpus, vocabulary and, if asked for, pretraining records."""
    own = {"input_file": FLAGS.corpus, "language": FLAGS.language} if FLAGS.corpus else {}
    run.step("corpus", "quickstart.write_corpus", **own, output_dir=run.path("corpus"))
    run.step(
        "vocabulary",
        "data_prep.train_vocabulary",
        input_file=run.path("corpus/train.txt"),
        output_dir=run.path("vocabulary"),
        vocab_size=FLAGS.vocab_size,
        input_sentence_size=40_000,
    )
    for split in ("train", "heldout") if with_records else ():
        run.step(
            "records",
            "data_prep.create_pretraining_data",
            flagfile="flags/presets/quickstart_records.flags",
            input_file=run.path(f"corpus/{split}.txt"),
            spm_model_file=run.path("vocabulary/spm.model"),
            output_dir=run.path(f"records/{split}"),
        )


def pretrain(run: Quickstart) -> dict:
    """Pretrains, and returns what the summary says of it."""
    run.step(
        "pretraining",
        "run_pretraining.py",
        flagfile="flags/presets/quickstart_pretrain.flags",
        input_file=run.path("records/train/*.tfrecord"),
        eval_input_file=run.path("records/heldout/*.tfrecord"),
        output_dir=run.path("pretrained"),
    )
    names = (
        "masked_lm_accuracy",
        "masked_lm_baseline",
        "sentence_order_accuracy",
        "sentence_order_accuracy_low",
        "sentence_order_accuracy_high",
        "sentence_order_baseline",
    )
    results = run.results("pretrained")
    return {name: results[name] for name in names}


def classify(run: Quickstart) -> dict:
    """Fine-tunes, exports and asks; returns what the summary says of it."""
    model = f"sentiment_from_{FLAGS.init}"
    start = {
        "init_checkpoint": run.path("pretrained"),
        # So short a pretraining leaves some heads with a handful of pieces that it looks at.
        "reinitialize": "pooler,query,key",
    }
    if FLAGS.init == "random":
        start = {
            "from_scratch": True,
            "model_preset": "quickstart",
            "spm_model_file": run.path("vocabulary/spm.model"),
        }
    run.step(
        "fine-tuning",
        "run_finetuning.py",
        flagfile="flags/presets/quickstart_finetune.flags",
        data_dir=run.path("corpus/sentiment"),
        output_dir=run.path(model),
        **start,
    )
    exports = run.path(f"{model}_saved_model")
    saved_model = run.step(
        "export", "export_savedmodel.py", model_dir=run.path(model), output_dir=exports
    ).strip()
    run.step("prediction", "predict.py", saved_model=saved_model, text=README_TEXTS)
    results = run.results(model)
    return {
        "imdb_accuracy": results["imdb_accuracy"],
        "imdb_baseline": results["imdb_majority_baseline"],
        "rotten_tomatoes_accuracy": results["rotten_tomatoes_accuracy"],
        "rotten_tomatoes_baseline": results["rotten_tomatoes_majority_baseline"],
        "saved_model": saved_model,
        "model_dir": run.path(model),
    }


def _fail(message: str, status: int) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)


def _parse_flags(argv: list[str]) -> list[str]:
    # Not through flags.app: it loads TensorFlow, which this process has no use for.
    try:
        return FLAGS(argv)
    except flags.Error as error:
        _fail(f"unusable flag: {' '.join(str(error).split())}: see `make`", 2)


def _check_flags() -> None:
    """Refuses what would have no effect."""
    if FLAGS.corpus and FLAGS.init == "random":
        _fail("only pretraining runs on your own files: INIT=random: drop INIT or CORPUS", 2)
    if FLAGS["language"].present and not FLAGS.corpus:
        _fail("the reviews are English: LANGUAGE: drop it, or name your files in CORPUS", 2)


def _run_name() -> str:
    """A directory for each corpus, language and vocabulary size."""
    name = "reviews"
    if FLAGS.corpus:
        name = "own_" + hashlib.sha256(FLAGS.corpus.encode()).hexdigest()[:8]
    for flag in ("language", "vocab_size"):
        if FLAGS[flag].value != FLAGS[flag].default:
            name += f"_{FLAGS[flag].value}"
    return name


def main(argv: list[str]) -> None:
    """Runs all steps and sums up."""
    del argv
    _check_flags()
    run = Quickstart(ROOT / _run_name())
    summary: dict = {"init": FLAGS.init, "spm_model_file": run.path("vocabulary/spm.model")}
    with_pretraining = FLAGS.init == "pretrained" or bool(FLAGS.corpus)
    prepare(run, with_pretraining)
    if with_pretraining:
        summary |= pretrain(run) | {"model_dir": run.path("pretrained")}
    if not FLAGS.corpus:
        summary |= classify(run)
    summary |= {
        "seconds": {**run.seconds, "total": round(sum(run.seconds.values()), 1)},
        "peak_memory_mb": round(run.peak_memory_mb),
    }
    path = run.directory / SUMMARY
    path.write_text(json.dumps(summary, indent=2) + "\n")
    shutil.copy(path, ROOT / SUMMARY)
    _show(summary)


def _show(summary: dict) -> None:
    rows = [
        ("masked-LM accuracy", "masked_lm_accuracy", "masked_lm_baseline", "commonest piece"),
        (
            "sentence-order accuracy",
            "sentence_order_accuracy",
            "sentence_order_baseline",
            "commonest order",
        ),
        ("IMDB accuracy", "imdb_accuracy", "imdb_baseline", "majority class"),
        (
            "Rotten Tomatoes accuracy",
            "rotten_tomatoes_accuracy",
            "rotten_tomatoes_baseline",
            "majority class",
        ),
    ]
    print("\n=== summary (held-out tenth)")
    for title, name, baseline, what in rows:
        if name in summary:
            print(f"{title:26}{summary[name]:.3f}   ({what}: {summary[baseline]:.3f})")
        if f"{name}_low" in summary:
            low, high = summary[f"{name}_low"], summary[f"{name}_high"]
            print(f"{'  its 95 % interval':26}{low:.3f} to {high:.3f}")
    print("seconds: " + "  ".join(f"{k} {v:.0f}" for k, v in summary["seconds"].items()))
    print(f"peak memory: {summary['peak_memory_mb']:,} MB")
    for title, name in (("model", "model_dir"), ("SavedModel", "saved_model")):
        if name in summary:
            print(f"{title}: {summary[name]}")
    print(f"TensorBoard: make tensorboard LOGDIR={os.path.dirname(summary['model_dir'])}")
    print(f"this summary as JSON: {ROOT / SUMMARY}")


if __name__ == "__main__":
    app.run(main, flags_parser=_parse_flags)
