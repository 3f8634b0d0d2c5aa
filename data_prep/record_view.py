"""Pretraining records as people read them, and statistics of what they hold."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence

import numpy as np

from albert_tf.data.record_files import Record, read_file
from albert_tf.data.record_schema import PREDICTION_WEIGHTS, SENTENCE_LABEL
from albert_tf.errors import UserError
from albert_tf.tokenization import MASK_ID, AlbertTokenizer


def read_records(paths: Sequence[str]) -> Iterator[Record]:
    """Yields every record of the files of --input_file; see record_files.read_file()."""
    for path in paths:
        yield from read_file(path, "--input_file")


def predictions(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """Positions and labels of the predictions that count, [number masked] each."""
    used = record[PREDICTION_WEIGHTS] > 0
    return record["masked_lm_positions"][used], record["masked_lm_ids"][used]


def original_ids(record: Record) -> np.ndarray:
    """The ids before masking, padding left out, [length]."""
    ids = record["input_ids"].copy()
    positions, labels = predictions(record)
    ids[positions] = labels
    return ids[: record["input_mask"].sum()]


def render(record: Record, tokenizer: AlbertTokenizer) -> str:
    """The pieces of a record on one line; a masked piece shows as {original>what stands there}.

    Raises:
      UserError: the record was made with a larger vocabulary.
    """
    largest = max(record["masked_lm_ids"].max(), record["input_ids"].max())
    if largest >= tokenizer.vocab_size:
        raise UserError(
            f"has {tokenizer.vocab_size} pieces, a record holds piece {largest}",
            tokenizer.spm_model_file,
            "use the vocabulary that the records were made with",
        )
    shown = [tokenizer.id_to_piece(piece) for piece in original_ids(record)]
    for position in predictions(record)[0]:
        shown[position] = (
            f"{{{shown[position]}>{tokenizer.id_to_piece(record['input_ids'][position])}}}"
        )
    label = record[SENTENCE_LABEL][0]
    order = "swapped" if label else "in order"
    return f"segments {order} ({SENTENCE_LABEL} {label}), {len(shown)} pieces: {' '.join(shown)}"


def statistics(records: Iterator[Record]) -> dict[str, float]:
    """Rates and means over records; shares of masked pieces by what became of them."""
    counts: collections.Counter[str] = collections.Counter()
    for record in records:
        positions, labels = predictions(record)
        stands = record["input_ids"][positions]
        counts["records"] += 1
        counts["tokens"] += int(record["input_mask"].sum())
        counts["slots"] += len(record["input_mask"])
        counts["masked"] += len(positions)
        counts["mask"] += int((stands == MASK_ID).sum())
        counts["keep"] += int((stands == labels).sum())
        counts["swapped"] += int(record[SENTENCE_LABEL][0])
    masked, total = max(1, counts["masked"]), max(1, counts["records"])
    return {
        "records": counts["records"],
        "mean_length": counts["tokens"] / total,
        "padding_share": 1 - counts["tokens"] / max(1, counts["slots"]),
        "mask_rate": counts["masked"] / max(1, counts["tokens"]),
        "became_mask": counts["mask"] / masked,
        "kept": counts["keep"] / masked,
        "became_random": 1 - (counts["mask"] + counts["keep"]) / masked,
        "swapped_share": counts["swapped"] / total,
    }
