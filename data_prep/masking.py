"""Chooses and masks words for masked language modelling (paper, section 3.2; official masking).

Runs of 1 to `ngram` whole words are masked, p(n) proportional to 1/n. Unlike the official code, a
run never crosses [SEP], a special piece is never masked and never a random replacement, and all
randomness is seeded.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import random
from collections.abc import Sequence
from typing import NamedTuple

from albert_tf.tokenization import MASK_ID, SEP_ID, SPECIAL_PIECES, UNK_ID

MASK_SHARE, KEEP_SHARE = 0.8, 0.1
"""A chosen piece becomes [MASK], stays as it is, or else becomes a random piece."""

_FIRST_ORDINARY_ID = len(SPECIAL_PIECES)

_FREE, _CHOSEN, _BARRIER = range(3)
"""What may happen to a word: a run may hold it, has it already, or has to stop before it."""


class MaskedSequence(NamedTuple):
    """A sequence with masked pieces.

    Attributes:
      input_ids: piece ids with [MASK] and random pieces put in, [length].
      positions: masked positions in ascending order, [number masked].
      labels: the ids that stood there, [number masked].
    """

    input_ids: list[int]
    positions: list[int]
    labels: list[int]


@dataclasses.dataclass(frozen=True)
class MaskingConfig:
    """How pieces are chosen; names and defaults are those of the official flags.

    Attributes:
      vocab_size: random replacements are the pieces below it that are not special.
      max_predictions_per_seq: most masked pieces of a sequence.
      masked_lm_prob: share of a sequence's pieces, special ones counted, that is masked.
      ngram: most words of a run.
      favor_shorter_ngram: p(n) proportional to 1/n; else the same probabilities reversed.
      do_whole_word_mask: mask whole words; else single pieces count as words.
    """

    vocab_size: int
    max_predictions_per_seq: int
    masked_lm_prob: float = 0.15
    ngram: int = 3
    favor_shorter_ngram: bool = True
    do_whole_word_mask: bool = True

    def budget(self, length: int) -> int:
        """How many of `length` pieces (special ones included) are masked."""
        return min(self.max_predictions_per_seq, max(1, round(self.masked_lm_prob * length)))

    @functools.cached_property
    def cumulative_ngram_probabilities(self) -> list[float]:
        """P(n <= 1), P(n <= 2), ... without the last, which is 1."""
        weights = [1 / n for n in range(1, self.ngram + 1)]
        if not self.favor_shorter_ngram:
            weights.reverse()
        return [total / sum(weights) for total in itertools.accumulate(weights)][:-1]


def mask_words(
    ids: Sequence[int],
    boundaries: Sequence[int],
    config: MaskingConfig,
    generator: random.Random,
) -> MaskedSequence:
    """Masks about masked_lm_prob of a sequence.

    A word that holds <unk> is not masked: there is nothing to predict. If every word is longer
    than the whole budget (text without spaces), part of one is masked.

    Args:
      ids: [CLS] A [SEP] B [SEP], not padded.
      boundaries: 1 where a word starts, at special pieces, and at the first piece of a segment
        (which truncation may have cut out of a word); as long as ids.
      config: how to choose.
      generator: the only source of randomness.
    """
    if not config.do_whole_word_mask:
        boundaries = [1] * len(ids)
    starts = list(itertools.compress(range(len(ids)), boundaries))
    words = bytearray(len(starts))  # All are _FREE.
    for position in _special_positions(ids):
        words[bisect.bisect(starts, position) - 1] = _BARRIER
    starts.append(len(ids))
    budget = config.budget(len(ids))
    positions = _choose_runs(starts, words, budget, config, generator)
    if not positions and _FREE in words:
        positions = _choose_inside_word(starts, words, budget, generator)
    positions.sort()
    masked = list(ids)
    draw = generator.random
    for position in positions:
        outcome = draw()
        if outcome < MASK_SHARE:
            masked[position] = MASK_ID
        elif outcome >= MASK_SHARE + KEEP_SHARE:
            ordinary = config.vocab_size - _FIRST_ORDINARY_ID
            masked[position] = _FIRST_ORDINARY_ID + int(draw() * ordinary)
    return MaskedSequence(masked, positions, [ids[position] for position in positions])


def _special_positions(ids: Sequence[int]) -> list[int]:
    """Where [CLS], both [SEP] and any <unk> are."""
    positions = [0, ids.index(SEP_ID), len(ids) - 1]
    if UNK_ID in ids:
        positions += [position for position, piece in enumerate(ids) if piece == UNK_ID]
    return positions


def _choose_runs(
    starts: Sequence[int],
    words: bytearray,
    budget: int,
    config: MaskingConfig,
    generator: random.Random,
) -> list[int]:
    """Picks runs of words at random, shortened until they fit, and marks them _CHOSEN.

    Args:
      starts: first position of each word, and the end of the sequence; [words + 1].
      words: the state of each word; the last one is a _BARRIER.
      budget: most positions to pick.
      config: for the law of run lengths.
      generator: the only source of randomness.
    """
    draw = generator.random
    cumulative = config.cumulative_ngram_probabilities
    order = list(range(len(words)))
    remaining = len(order)
    positions: list[int] = []
    while remaining and budget:
        # A step of the Fisher-Yates shuffle: the next of the words in random order.
        pick = int(draw() * remaining)
        remaining -= 1
        word = order[pick]
        order[pick] = order[remaining]
        if words[word] != _FREE:
            continue
        end = word + 1 + bisect.bisect(cumulative, draw())
        barrier = words.find(_BARRIER, word, end)
        if barrier >= 0:
            end = barrier
        begin = starts[word]
        while starts[end] - begin > budget:
            end -= 1
        if end > word and _CHOSEN not in words[word:end]:
            words[word:end] = b"\x01" * (end - word)
            positions.extend(range(begin, starts[end]))
            budget -= starts[end] - begin
    return positions


def _choose_inside_word(
    starts: Sequence[int], words: bytearray, budget: int, generator: random.Random
) -> list[int]:
    """Picks `budget` neighbouring pieces of one word, all words being longer than that."""
    free = [word for word, state in enumerate(words) if state == _FREE]
    word = free[int(generator.random() * len(free))]
    choices = starts[word + 1] - starts[word] - budget + 1
    first = starts[word] + int(generator.random() * choices)
    return list(range(first, first + budget))
