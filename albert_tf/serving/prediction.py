"""Answers for texts from an exported SavedModel, one by one or file to file."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator

import tensorflow as tf
from tqdm import tqdm

from albert_tf import files, text_ops
from albert_tf.data import tabular
from albert_tf.errors import UserError
from albert_tf.serving.export import TEXT_SIGNATURE, latest_version, read_model_card

TEXT_FIELDS = ("text", "text_b")


class Predictor:
    """An exported classifier.

    Args:
      path: the SavedModel, or the directory of its versions.

    Raises:
      UserError: there is none, it is not ours, or tensorflow-text is missing.
    """

    def __init__(self, path: str, flag: str = "--saved_model"):
        text_ops.load_tensorflow_text()  # registers the ops of the text signature
        path = latest_version(path, flag)
        try:
            self.is_pair: bool = read_model_card(path)["task"]["pair"]
            self._model = tf.saved_model.load(path)
            self._signature = self._model.signatures[TEXT_SIGNATURE]
        except (KeyError, ValueError, OSError, tf.errors.OpError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(
                "cannot be loaded",
                f"{flag}={path}",
                f"export it with export_savedmodel.py ({reason})",
            ) from error

    def predict(self, rows: list[dict[str, str]]) -> list[dict[str, object]]:
        """Label and probabilities of each row, which has text and, for pairs, text_b."""
        fields = TEXT_FIELDS if self.is_pair else TEXT_FIELDS[:1]
        # A lone surrogate, which JSON can spell, is no character: U+FFFD, as in training.
        inputs = {
            field: tf.constant(
                [
                    row[field].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                    for row in rows
                ]
            )
            for field in fields
        }
        outputs = {name: value.numpy() for name, value in self._signature(**inputs).items()}
        return [
            {
                "label": label.decode(),
                "probabilities": {
                    name.decode(): round(float(p), 7) for name, p in zip(names, row, strict=True)
                },
            }
            for label, names, row in zip(
                outputs["label"], outputs["labels"], outputs["probabilities"], strict=True
            )
        ]


def predict_file(predictor: Predictor, input_file: str, output_file: str, batch_size: int) -> int:
    """Writes a JSON line for each row of a file: its fields, prediction and probabilities.

    Args:
      predictor: the model.
      input_file: .tsv, .csv or .jsonl with text (and text_b), else plain text, a row a line.
      output_file: appears only when it is whole.
      batch_size: rows a request.

    Returns:
      The number of rows.

    Raises:
      UserError: a row lacks a text, or a file cannot be read or written.
    """
    files.require_file(input_file, "--input_file")
    directory = os.path.dirname(output_file)
    if directory and not tf.io.gfile.isdir(directory):
        raise UserError("has no such directory", f"--output_file={output_file}", "create it")
    if tf.io.gfile.isdir(output_file):
        raise UserError("is a directory", f"--output_file={output_file}", "name a file in it")
    rows = _rows(input_file, predictor.is_pair)
    count = 0
    with (
        files.atomic_path(output_file) as temporary,
        tf.io.gfile.GFile(temporary, "wb") as output,
        tqdm(unit="row", disable=None) as progress,
    ):
        for batch in _batches(rows, batch_size):
            for row, answer in zip(batch, predictor.predict(batch), strict=True):
                # As in predictions_*.jsonl: "label" is the row's own, if it has one.
                named = {"prediction": answer["label"], "probabilities": answer["probabilities"]}
                line = json.dumps({**row, **named}, ensure_ascii=False)
                output.write(files.encode(line + "\n"))
            count += len(batch)
            progress.update(len(batch))
    return count


def _batches(rows: Iterable[dict], size: int) -> Iterator[list[dict]]:
    rows = iter(rows)
    while batch := list(itertools.islice(rows, size)):
        yield batch


def _rows(path: str, is_pair: bool) -> Iterator[dict]:
    if os.path.splitext(path)[1] not in tabular.EXTENSIONS:
        if is_pair:
            raise UserError(
                "holds single texts, the model takes pairs",
                f"--input_file={path}",
                "give a .tsv, .csv or .jsonl with text and text_b",
            )
        with tf.io.gfile.GFile(path, "rb") as handle:
            content = handle.read().decode("utf-8-sig", "replace")
        lines = content.replace("\r\n", "\n").removesuffix("\n").split("\n")
        yield from ({"text": line} for line in lines)
        return
    needed = TEXT_FIELDS if is_pair else TEXT_FIELDS[:1]
    for line, values in tabular.read_records(path, "--input_file"):
        for field in needed:
            if not isinstance(values.get(field), str):
                raise UserError(f"lacks the text {field!r}", f"{path}:{line}", "each row needs one")
        yield values
