"""Exports a fine-tuned classifier as a SavedModel that takes raw text, or token ids."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from albert_tf import files, loading, model_directory, text_ops
from albert_tf.checkpoint_files import latest_checkpoint
from albert_tf.data import packing
from albert_tf.errors import RunError, UserError
from albert_tf.models import AlbertClassifier
from albert_tf.tokenization import AlbertTokenizer

MODEL_CARD = os.path.join("assets.extra", "model_card.json")
TEXT_SIGNATURE = "serving_default"
IDS_SIGNATURE = "token_ids"

SELF_TEST_TEXTS = ("", "What a film!", "Überaus schön: naïve façade, 10,000 ½ 東京 " * 200)
SELF_TEST_TOLERANCE = 1e-5


def export_classifier(model_dir: str, output_dir: str) -> str:
    """Writes the next version below `output_dir`, as TensorFlow Serving expects: 1, 2, ...

    Args:
      model_dir: of a fine-tuned classifier.
      output_dir: holds the versions.

    Returns:
      The directory of the new version; it appears only when it is whole and checked.

    Raises:
      UserError: there is no classifier, or output_dir cannot be written.
      RunError: the exported model answers differently from the model itself.
    """
    classifier = loading.load_classifier(model_dir)
    tokenizer = model_directory.load_tokenizer(model_dir)
    task = model_directory.read_task(model_dir)
    files.make_output_directory(output_dir)
    path = os.path.join(output_dir, str(1 + max(_versions(output_dir), default=0)))
    # A leading dot hides an unfinished export from servers, which look for numbers.
    temporary = os.path.join(output_dir, ".unfinished")
    _remove(temporary)  # of an export that was killed
    try:
        module = serving_module(classifier, tokenizer, task)
        signatures = {
            TEXT_SIGNATURE: module.serve_text.get_concrete_function(),
            IDS_SIGNATURE: module.serve_ids.get_concrete_function(),
        }
        with _quiet():
            tf.saved_model.save(module, temporary, signatures)
        tf.io.gfile.makedirs(os.path.join(temporary, os.path.dirname(MODEL_CARD)))
        card = _model_card(model_dir, classifier, tokenizer, task)
        _warn_if_unfinished(card)
        files.write_json(os.path.join(temporary, MODEL_CARD), card)
        _self_test(temporary, classifier, tokenizer, task)
        tf.io.gfile.rename(temporary, path)
    finally:
        _remove(temporary)
    logging.info("exported %s to %s", model_dir, path)
    return path


def _remove(directory: str) -> None:
    if tf.io.gfile.exists(directory):
        tf.io.gfile.rmtree(directory)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps TensorFlow's remarks on names and assets out of the log."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.WARNING)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def latest_version(path: str, flag: str = "--saved_model") -> str:
    """`path` if it is a SavedModel, else its highest numbered version.

    Raises:
      UserError: it is neither.
    """
    files.require_directory(path, flag)
    if tf.io.gfile.exists(os.path.join(path, "saved_model.pb")):
        return path
    versions = _versions(path)
    if not versions:
        raise UserError("is no SavedModel", f"{flag}={path}", "make one with export_savedmodel.py")
    return os.path.join(path, str(max(versions)))


def _versions(output_dir: str) -> list[int]:
    names = (name.rstrip("/") for name in tf.io.gfile.listdir(output_dir))
    return [int(name) for name in names if name.isdecimal()]


def serving_module(
    classifier: AlbertClassifier, tokenizer: AlbertTokenizer, task: dict[str, Any]
) -> tf.Module:
    """A module whose functions answer requests.

    serve_text: text (and text_b, for pairs), string [batch].
    serve_ids: input_ids, input_mask, segment_ids, int32 [batch, seq_length].
    Both return label, string [batch]; labels, string [batch, labels], all of them in the order
    of probabilities; probabilities, float32 [batch, labels].
    """
    labels = tf.constant(task["labels"])
    encoder = text_ops.TextEncoder(tokenizer)

    def answer(ids: tf.Tensor, mask: tf.Tensor, segments: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs = {"input_ids": ids, "input_mask": mask, "segment_ids": segments}
        probabilities = tf.nn.softmax(classifier(inputs, training=False)["logits"])
        rows = tf.shape(probabilities)[0]
        with tf.device("CPU"):  # a GPU has no strings
            return {
                "label": tf.gather(labels, tf.argmax(probabilities, axis=-1)),
                "labels": tf.tile(labels[tf.newaxis], [rows, 1]),
                "probabilities": probabilities,
            }

    def answer_text(text: tf.Tensor, text_b: tf.Tensor | None) -> dict[str, tf.Tensor]:
        with tf.device("CPU"):
            packed = text_ops.pack(
                encoder(text),
                None if text_b is None else encoder(text_b),
                max_seq_length=task["max_seq_length"],
                truncation=task["truncation"],
            )
            # Texts pay for the longest of their batch, not for max_seq_length.
            longest = tf.reduce_max(tf.reduce_sum(packed[1], axis=1))
            longest = tf.maximum(longest, 1)
        return answer(*(values[:, :longest] for values in packed))

    text_spec = tf.TensorSpec([None], tf.string, name="text")
    text_b_spec = tf.TensorSpec([None], tf.string, name="text_b")
    ids_specs = [
        tf.TensorSpec([None, None], tf.int32, name=name)
        for name in ("input_ids", "input_mask", "segment_ids")
    ]
    module = tf.Module()
    # The variables, not the Keras model, whose own traces would double the export.
    module.model_variables = classifier.trainable_variables
    module.text_encoder = encoder
    if task["pair"]:
        module.serve_text = tf.function(answer_text, [text_spec, text_b_spec], autograph=False)
    else:
        module.serve_text = tf.function(
            lambda text: answer_text(text, None), [text_spec], autograph=False
        )
    module.serve_ids = tf.function(answer, ids_specs, autograph=False)
    return module


def _model_card(
    model_dir: str, classifier: AlbertClassifier, tokenizer: AlbertTokenizer, task: dict[str, Any]
) -> dict[str, Any]:
    run = files.read_json(os.path.join(model_dir, model_directory.RUN_FILE), "--model_dir")
    checkpoint = os.path.basename(latest_checkpoint(model_dir, "--model_dir"))
    return {
        "task": task,
        "model": classifier.config.to_dict(),
        "tokenizer": {**tokenizer.settings, "vocab_size": tokenizer.vocab_size},
        "checkpoint": checkpoint,
        "run": run,
        "exported": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("tensorflow", "tensorflow-text", "sentencepiece")
        },
    }


def _warn_if_unfinished(card: dict[str, Any]) -> None:
    last = card["run"]["optimization"]["num_train_steps"]
    if card["checkpoint"] != f"ckpt-{last}":
        logging.warning("the run is UNFINISHED: this is %s of %d steps", card["checkpoint"], last)


def _self_test(
    path: str, classifier: AlbertClassifier, tokenizer: AlbertTokenizer, task: dict[str, Any]
) -> None:
    """Loads the export and compares it with the Python tokenizer and the model itself."""
    expected = _probabilities(classifier, tokenizer, task, SELF_TEST_TEXTS)
    texts = tf.constant(SELF_TEST_TEXTS)
    inputs = {"text": texts, "text_b": texts} if task["pair"] else {"text": texts}
    signature = tf.saved_model.load(path).signatures[TEXT_SIGNATURE]
    difference = np.abs(signature(**inputs)["probabilities"].numpy() - expected).max()
    if difference > SELF_TEST_TOLERANCE:
        raise RunError(f"the export's probabilities are off by {difference}: {path}: not kept")


def _probabilities(
    classifier: AlbertClassifier,
    tokenizer: AlbertTokenizer,
    task: dict[str, Any],
    texts: Sequence[str],
) -> np.ndarray:
    packed = [
        packing.pack(
            ids,
            ids if task["pair"] else None,
            max_seq_length=task["max_seq_length"],
            truncation=task["truncation"],
        )
        for ids in tokenizer.encode_batch(texts)
    ]
    names = ("input_ids", "input_mask", "segment_ids")
    inputs = dict(zip(names, map(np.stack, zip(*packed, strict=True)), strict=True))
    return tf.nn.softmax(classifier(inputs, training=False)["logits"]).numpy()


def read_model_card(path: str) -> dict[str, Any]:
    """What a SavedModel of ours says of itself."""
    card = os.path.join(path, MODEL_CARD)
    with tf.io.gfile.GFile(card, "r") as handle:
        return json.loads(handle.read())
