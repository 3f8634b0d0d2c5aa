"""A model directory describes itself: config, vocabulary, task and checkpoints in one place.

albert_config.json   the model's sizes
spm.model            the SentencePiece vocabulary
tokenizer.json       do_lower_case and keep_accents
task.json            what the model was trained for, e.g. labels and max_seq_length
run.json, run.flags  the settings of the run, and a flagfile that repeats it
ckpt-*               checkpoints
metrics.jsonl, tensorboard/, eval_results.json
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf import files
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.tokenization import SPM_MODEL_FILE, AlbertTokenizer, read_settings

CONFIG_FILE = "albert_config.json"
TASK_FILE = "task.json"
RUN_FILE = "run.json"
RUN_FLAGS_FILE = "run.flags"
EVAL_RESULTS_FILE = "eval_results.json"


def check_vocabulary(config: AlbertConfig, tokenizer: AlbertTokenizer) -> None:
    """Raises UserError if the tokenizer has ids that the embedding table lacks."""
    if tokenizer.vocab_size > config.vocab_size:
        raise UserError(
            f"has {tokenizer.vocab_size} pieces, the model's config {config.vocab_size}",
            tokenizer.spm_model_file,
            "use the vocabulary that belongs to the model",
        )


def check_same_vocabulary(directory: str, tokenizer: AlbertTokenizer, flag: str) -> None:
    """Raises UserError if a directory of ours holds another vocabulary or normalises otherwise."""
    path = os.path.join(directory, SPM_MODEL_FILE)
    if tf.io.gfile.exists(path) and files.sha256(path) != tokenizer.sha256:
        raise UserError(
            f"has another vocabulary than {tokenizer.spm_model_file}",
            f"{flag}={directory}",
            "use one vocabulary for records, pretraining and fine-tuning",
        )
    settings = read_settings(directory) or {}
    check_same_normalization(settings, tokenizer, f"{flag}={directory}")


def check_same_normalization(
    settings: Mapping[str, Any], tokenizer: AlbertTokenizer, where: str
) -> None:
    """Raises UserError if do_lower_case or keep_accents are among `settings`, but others."""
    for name, value in tokenizer.settings.items():
        if settings.get(name, value) != value:
            raise UserError(
                f"has {name}={settings[name]}, but {tokenizer.spm_model_file} is used with {value}",
                where,
                f"drop --{name}, or name the vocabulary that lies there",
            )


@dataclasses.dataclass(frozen=True)
class Description:
    """What a run writes into its model directory before it trains.

    Attributes:
      config: the model's sizes.
      tokenizer: its file is copied.
      task: what load functions and export need, as JSON values.
      run: what must not change between the parts of one run, as JSON values.
      run_flags: text of a flagfile that repeats the run.
    """

    config: AlbertConfig
    tokenizer: AlbertTokenizer
    task: Mapping[str, Any]
    run: Mapping[str, Any]
    run_flags: str

    def identity(self) -> dict[str, Any]:
        """By which runs are told apart."""
        return {
            **self.run,
            "model": self.config.to_dict(),
            "task": dict(self.task),
            "vocabulary": {"sha256": self.tokenizer.sha256, **self.tokenizer.settings},
        }


def check(output_dir: str, description: Description) -> None:
    """Finds what is wrong before anything is loaded or written.

    Raises:
      UserError: the directory holds another run, or the tokenizer does not fit the model.
    """
    check_vocabulary(description.config, description.tokenizer)
    path = os.path.join(output_dir, RUN_FILE)
    if tf.io.gfile.exists(path):
        there = files.read_json(path, "--output_dir")
        _check_same_run(there, description.identity(), output_dir)


def claim(output_dir: str, description: Description) -> None:
    """Describes a new run in `output_dir`; does nothing where check() has found the same run.

    Raises:
      UserError: the directory cannot be written.
    """
    if tf.io.gfile.exists(os.path.join(output_dir, RUN_FILE)):
        return
    files.make_output_directory(output_dir)
    config = description.config.to_json_string()
    files.write_text(os.path.join(output_dir, CONFIG_FILE), config)
    description.tokenizer.save(output_dir)
    files.write_json(os.path.join(output_dir, TASK_FILE), dict(description.task))
    files.write_text(os.path.join(output_dir, RUN_FLAGS_FILE), description.run_flags)
    files.write_json(os.path.join(output_dir, RUN_FILE), description.identity())


def _check_same_run(old: Mapping[str, Any], new: Mapping[str, Any], output_dir: str) -> None:
    for key in sorted(set(old) | set(new)):
        if old.get(key) != new.get(key):
            raise UserError(
                f"holds another run, whose {_first_difference(key, old.get(key), new.get(key))}",
                f"--output_dir={output_dir}",
                "choose another directory, or delete this one to start anew",
            )


def _first_difference(key: str, old: Any, new: Any) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        for inner in sorted(set(old) | set(new)):
            if old.get(inner) != new.get(inner):
                return _first_difference(f"{key}.{inner}", old.get(inner), new.get(inner))
    return f"{key} is {old!r}, not {new!r}"


def load_config(model_dir: str, flag: str = "--model_dir") -> AlbertConfig:
    """The config of a model directory."""
    files.require_directory(model_dir, flag)
    return AlbertConfig.from_json_file(os.path.join(model_dir, CONFIG_FILE), flag)


def load_tokenizer(model_dir: str, flag: str = "--model_dir") -> AlbertTokenizer:
    """The tokenizer of a model directory, with the settings it was trained with."""
    return AlbertTokenizer.from_directory(model_dir, flag)


def read_task(model_dir: str, flag: str = "--model_dir") -> dict[str, Any]:
    """What the model of a directory was trained for."""
    return files.read_json(os.path.join(model_dir, TASK_FILE), flag)
