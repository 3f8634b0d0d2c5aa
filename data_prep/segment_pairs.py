"""Cuts a document into pairs of neighbouring segments for sentence order prediction.

The algorithm of the official create_instances_from_document without its defects: a segment
never comes from another document, so order is all that a label can tell.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

NUM_SPECIAL_TOKENS = 3
"""[CLS] A [SEP] B [SEP]."""


class SegmentPair(NamedTuple):
    """Two segments, as piece ids without special pieces, that neighbour in their document."""

    ids_a: list[int]
    ids_b: list[int]
    is_swapped: bool  # True if B stood before A in the document.


class PairedDocument(NamedTuple):
    """The pairs of a document and what did not get into them.

    Attributes:
      pairs: in document order.
      chunks: runs of sentences that were to become pairs.
      one_sentence_chunks: those of one sentence, which had to be split inside it.
      skipped_chunks: those that could not be split: a single word.
      skipped_tokens: pieces of skipped chunks.
      truncated_tokens: pieces cut off because a pair was longer than max_seq_length.
    """

    pairs: list[SegmentPair]
    chunks: int
    one_sentence_chunks: int
    skipped_chunks: int
    skipped_tokens: int
    truncated_tokens: int


def make_segment_pairs(
    sentences: Sequence[list[int]],
    word_starts: Sequence[int],
    max_seq_length: int,
    short_seq_prob: float,
    generator: random.Random,
) -> PairedDocument:
    """Cuts one document into segment pairs.

    Sentences are collected up to a target length, then parted at a random sentence; a single
    sentence is parted at a random word. Both orders are equally likely.

    Args:
      sentences: piece ids of each sentence, none empty.
      word_starts: by piece id, whether the piece begins a word.
      max_seq_length: length of the finished sequence, special pieces included.
      short_seq_prob: probability that a stretch of text of the length of one full sequence is
        cut into pairs of a random shorter length. (The official code draws once a document: the
        same law, but a long document is then short throughout or nowhere.)
      generator: the only source of randomness.
    """
    longest = max_seq_length - NUM_SPECIAL_TOKENS
    pairs: list[SegmentPair] = []
    chunks = one_sentence_chunks = skipped_chunks = skipped_tokens = truncated_tokens = 0
    for chunk in _collect_chunks(sentences, word_starts, longest, short_seq_prob, generator):
        chunks += 1
        if len(chunk) > 1:
            boundary = 1 + int(generator.random() * (len(chunk) - 1))
            ids_a = list(itertools.chain.from_iterable(chunk[:boundary]))
            ids_b = list(itertools.chain.from_iterable(chunk[boundary:]))
        else:
            one_sentence_chunks += 1
            (ids,) = chunk
            boundaries = [i for i in range(1, len(ids)) if word_starts[ids[i]]]
            if not boundaries:
                skipped_chunks += 1
                skipped_tokens += len(ids)
                continue
            boundary = boundaries[int(generator.random() * len(boundaries))]
            ids_a, ids_b = ids[:boundary], ids[boundary:]
        excess = len(ids_a) + len(ids_b) - longest
        if excess > 0:
            truncated_tokens += excess
            ids_a, ids_b = _truncate(ids_a, ids_b, excess, generator)
        if generator.random() < 0.5:
            pairs.append(SegmentPair(ids_b, ids_a, True))
        else:
            pairs.append(SegmentPair(ids_a, ids_b, False))
    return PairedDocument(
        pairs, chunks, one_sentence_chunks, skipped_chunks, skipped_tokens, truncated_tokens
    )


def _collect_chunks(
    sentences: Sequence[list[int]],
    word_starts: Sequence[int],
    longest: int,
    short_seq_prob: float,
    generator: random.Random,
) -> Iterator[list[list[int]]]:
    """Yields runs of sentences that reach a target length, or the document's end."""
    chunk: list[list[int]] = []
    length = stretch = 0
    target = _draw_target(longest, short_seq_prob, generator)
    for sentence in sentences:
        for part, fills_chunk in _cut_long_sentence(sentence, longest, length, word_starts):
            chunk.append(part)
            length += len(part)
            if fills_chunk or length >= target:
                yield chunk
                stretch += length
                chunk, length = [], 0
                if stretch >= longest:
                    target = _draw_target(longest, short_seq_prob, generator)
                    stretch = 0
    if chunk:
        yield chunk


def _draw_target(longest: int, short_seq_prob: float, generator: random.Random) -> int:
    if generator.random() < short_seq_prob:
        return 2 + int(generator.random() * (longest - 1))
    return longest


def _cut_long_sentence(
    sentence: list[int], longest: int, length: int, word_starts: Sequence[int]
) -> Iterator[tuple[list[int], bool]]:
    """Yields the parts of a sentence, cut at words if it is one that truncation would waste.

    Args:
      sentence: piece ids.
      longest: most pieces of a chunk; a shorter sentence is left whole.
      length: pieces that are in the chunk already.
      word_starts: by piece id, whether the piece begins a word.

    Yields:
      A part, and whether it has been cut to fill its chunk.
    """
    begin, limit = 0, longest - length
    while len(sentence) - begin > longest:
        end = next((i for i in range(limit, begin, -1) if word_starts[sentence[i]]), limit)
        yield sentence[begin:end], True
        begin, limit = end, end + longest
    yield sentence[begin:] if begin else sentence, False


def _truncate(
    ids_a: list[int], ids_b: list[int], excess: int, generator: random.Random
) -> tuple[list[int], list[int]]:
    """Takes `excess` pieces off, always off the longer side, its front or back by coin toss.

    The pieces taken off the front of a side are binomial, hence the count of ones in random bits:
    the same law as the official loop over single pieces, whose time is quadratic.
    """
    from_a = max(0, min(excess, (excess + len(ids_a) - len(ids_b)) // 2))
    return _trim(ids_a, from_a, generator), _trim(ids_b, excess - from_a, generator)


def _trim(ids: list[int], count: int, generator: random.Random) -> list[int]:
    if not count:
        return ids
    front = generator.getrandbits(count).bit_count()
    return ids[front : len(ids) - (count - front)]
