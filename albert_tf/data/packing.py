"""[CLS] A [SEP] and [CLS] A [SEP] B [SEP]: fitting texts into a sequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from albert_tf.tokenization import CLS_ID, PAD_ID, SEP_ID

TRUNCATIONS = ("head", "head_tail")
"""What is kept of a single text that is too long: its head, or its first quarter and its end.

The end of a review weighs most; one quarter to three is what Sun et al. found best ("How to
Fine-Tune BERT for Text Classification?", 2019, section 5.3.1).
"""


def tail_length(room: int, truncation: str) -> int:
    """How many of `room` pieces are taken from the end of a single text that is too long."""
    return room * 3 // 4 if truncation == "head_tail" else 0


def pair_lengths(length_a: int, length_b: int, room: int) -> tuple[int, int]:
    """How much of each text of a pair is kept so that both fit into `room`.

    The closed form of the official _truncate_seq_pair, which drops the last piece of the longer
    text (of B if they are equal) until the pair fits.
    """
    kept_a = min(length_a, max(room - length_b, room - room // 2))
    kept_b = min(length_b, max(room - length_a, room // 2))
    return kept_a, kept_b


def pack(
    ids_a: Sequence[int],
    ids_b: Sequence[int] | None = None,
    *,
    max_seq_length: int,
    truncation: str = "head",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Packs one or two texts; text_ops.pack is the same in a graph.

    Args:
      ids_a: pieces of text A, without special ids.
      ids_b: pieces of text B; none or empty packs A alone, as the official code does.
      max_seq_length: length of the result; at least 3, with two texts at least 4.
      truncation: one of TRUNCATIONS, for a single text. Pairs drop from the end of the longer.

    Returns:
      input_ids, input_mask (1 for a piece, 0 for padding), segment_ids (1 for B and the [SEP]
      after it): int32 [max_seq_length] each.
    """
    head, tail = list(ids_a), []
    second = [] if ids_b is None else list(ids_b)
    if second:
        kept_a, kept_b = pair_lengths(len(head), len(second), max_seq_length - 3)
        head, second = head[:kept_a], [*second[:kept_b], SEP_ID]
    elif len(head) > (room := max_seq_length - 2):
        from_end = tail_length(room, truncation)
        tail = head[len(head) - from_end :]
        head = head[: room - from_end]
    first = [CLS_ID, *head, *tail, SEP_ID]
    length = len(first) + len(second)

    input_ids = np.full(max_seq_length, PAD_ID, np.int32)
    input_ids[:length] = first + second
    input_mask = np.zeros(max_seq_length, np.int32)
    input_mask[:length] = 1
    segment_ids = np.zeros(max_seq_length, np.int32)
    segment_ids[len(first) : length] = 1
    return input_ids, input_mask, segment_ids
