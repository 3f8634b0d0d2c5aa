"""Turns one document into finished pretraining records: the pure core of every runner."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import math
import random
from collections.abc import Iterator, Sequence

from albert_tf.data import record_schema
from albert_tf.errors import UserError
from albert_tf.tokenization import CLS_ID, SEP_ID, UNK_ID, AlbertTokenizer
from data_prep.documents import check_language, split_sentences
from data_prep.masking import MaskedSequence, MaskingConfig, mask_words
from data_prep.segment_pairs import SegmentPair, make_segment_pairs
from data_prep.serialization import serialize_example

MIN_SEQ_LENGTH = 8
"""Below it a pair of segments holds next to nothing beside its special pieces."""

Counts = collections.Counter[str]
"""Integer totals, which add up alike in whatever order documents are processed."""


@dataclasses.dataclass(frozen=True)
class InstanceConfig:
    """Every setting that decides what records a corpus yields (names: the official flags).

    Attributes:
      max_seq_length: pieces of a record, special ones and padding included.
      max_predictions_per_seq: most masked pieces of a record; None for max_seq_length x
        masked_lm_prob (77 at 512). The official default, 20, masks 4 % at length 512.
      masked_lm_prob: share of the pieces that is masked.
      ngram: most words masked in a row.
      favor_shorter_ngram: see MaskingConfig.
      do_whole_word_mask: see MaskingConfig.
      short_seq_prob: probability that a pair aims at a random shorter length.
      dupe_factor: how often each document is used, with new pairs and masks each time. Masks are
        fixed once written, so a corpus that training passes over often needs several: 10 over 40
        passes do as well as new masks every time (RoBERTa, section 4.1). The official default, 40,
        makes four times the disk use.
      random_seed: of all randomness.
      split_sentences: language whose rules split each line into sentences; "" if a line is one.
    """

    max_seq_length: int = 512
    max_predictions_per_seq: int | None = None
    masked_lm_prob: float = 0.15
    ngram: int = 3
    favor_shorter_ngram: bool = True
    do_whole_word_mask: bool = True
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    random_seed: int = 12345
    split_sentences: str = ""

    def __post_init__(self):
        _check("max_seq_length", self.max_seq_length, MIN_SEQ_LENGTH, 1 << 16)
        if not 0 < self.masked_lm_prob < 1:
            raise UserError(
                "is out of range",
                f"--masked_lm_prob={self.masked_lm_prob}",
                "give a number between 0 and 1, both excluded",
            )
        if self.max_predictions_per_seq is None:
            derived = math.ceil(self.max_seq_length * self.masked_lm_prob)
            object.__setattr__(self, "max_predictions_per_seq", derived)
        _check("max_predictions_per_seq", self.max_predictions_per_seq, 1, self.max_seq_length)
        _check("ngram", self.ngram, 1, 100)
        _check("short_seq_prob", self.short_seq_prob, 0, 1)
        _check("dupe_factor", self.dupe_factor, 1, 10_000)
        check_language(self.split_sentences, "--split_sentences")

    def masking(self, vocab_size: int) -> MaskingConfig:
        """The part of these settings that mask_words needs."""
        return MaskingConfig(
            vocab_size=vocab_size,
            max_predictions_per_seq=self.max_predictions_per_seq,
            masked_lm_prob=self.masked_lm_prob,
            ngram=self.ngram,
            favor_shorter_ngram=self.favor_shorter_ngram,
            do_whole_word_mask=self.do_whole_word_mask,
        )


def _check(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise UserError("is out of range", f"--{name}={value}", f"give {least} to {most}")


def document_digest(lines: Sequence[str]) -> bytes:
    """16 bytes that stand for a document's content."""
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).digest()


class InstanceMaker:
    """Makes the records of documents; holds what they share: vocabulary and settings.

    Args:
      config: the settings.
      tokenizer: of the vocabulary.
    """

    def __init__(self, config: InstanceConfig, tokenizer: AlbertTokenizer):
        self._config = config
        self._tokenizer = tokenizer
        self._masking = config.masking(tokenizer.vocab_size)
        self._word_starts: list[int] = tokenizer.word_starts.astype(int).tolist()

    def encode(self, documents: Sequence[Sequence[str]], counts: Counts) -> list[list[list[int]]]:
        """The ids of each sentence of each document (lists of lines); empty sentences drop out."""
        split = [split_sentences(lines, self._config.split_sentences) for lines in documents]
        encoded = iter(self._tokenizer.encode_batch([text for texts in split for text in texts]))
        result = []
        for texts in split:
            sentences = [ids for _, ids in zip(texts, encoded, strict=False) if ids]
            result.append(sentences)
            counts["documents"] += 1
            counts["sentences"] += len(sentences)
            counts["one_sentence_documents"] += len(sentences) <= 1
            counts["pieces"] += sum(map(len, sentences))
            counts["unknown_pieces"] += sum(ids.count(UNK_ID) for ids in sentences)
        return result

    def records(
        self, sentences: Sequence[list[int]], digest: bytes, occurrence: int, counts: Counts
    ) -> Iterator[tuple[int, bytes]]:
        """Yields (shuffling key, serialized tf.train.Example) of all duplicates of a document.

        What comes out depends on the arguments and the settings alone.

        Args:
          sentences: piece ids of each sentence.
          digest: of the document's content.
          occurrence: how many equal documents came before, so that they get masks of their own.
          counts: totals to add to.
        """
        config = self._config
        for duplicate in range(config.dupe_factor):
            origin = f"{config.random_seed} {occurrence} {duplicate} ".encode() + digest
            generator = random.Random(hashlib.blake2b(origin, digest_size=32).digest())
            paired = make_segment_pairs(
                sentences,
                self._word_starts,
                config.max_seq_length,
                config.short_seq_prob,
                generator,
            )
            counts["chunks"] += paired.chunks
            counts["one_sentence_chunks"] += paired.one_sentence_chunks
            counts["skipped_chunks"] += paired.skipped_chunks
            counts["skipped_tokens"] += paired.skipped_tokens
            counts["truncated_tokens"] += paired.truncated_tokens
            for pair in paired.pairs:
                yield generator.getrandbits(64), self._record(pair, generator, counts)

    def _record(self, pair: SegmentPair, generator: random.Random, counts: Counts) -> bytes:
        ids = [CLS_ID, *pair.ids_a, SEP_ID, *pair.ids_b, SEP_ID]
        word_starts = self._word_starts
        boundaries = [word_starts[piece] for piece in ids]
        # Truncation may have cut a segment's first piece out of a word that began earlier: it
        # must not pass for a continuation of what stands before the special piece.
        first_sep = len(pair.ids_a) + 1
        boundaries[0] = boundaries[1] = 1
        boundaries[first_sep] = boundaries[first_sep + 1] = boundaries[-1] = 1
        masked = mask_words(ids, boundaries, self._masking, generator)
        counts["records"] += 1
        counts["tokens"] += len(ids)
        counts["masked_tokens"] += len(masked.positions)
        counts["swapped"] += pair.is_swapped
        features = make_features(pair, boundaries, masked, self._config)
        return serialize_example(features)


def make_features(
    pair: SegmentPair, boundaries: list[int], masked: MaskedSequence, config: InstanceConfig
) -> dict[str, list]:
    """Pads a masked pair to the features of albert_tf.data.record_schema.

    Args:
      pair: for the segment lengths and the label.
      boundaries: 1 where a word starts, [length].
      masked: the masked sequence, [length].
      config: for the padded lengths.
    """
    length = len(masked.input_ids)
    padding = [0] * (config.max_seq_length - length)
    predictions = len(masked.positions)
    unused = [0] * (config.max_predictions_per_seq - predictions)
    first, second = len(pair.ids_a) + 2, len(pair.ids_b) + 1
    return {
        "input_ids": masked.input_ids + padding,
        "input_mask": [1] * length + padding,
        "segment_ids": [0] * first + [1] * second + padding,
        "token_boundary": boundaries + padding,
        "masked_lm_positions": masked.positions + unused,
        "masked_lm_ids": masked.labels + unused,
        record_schema.PREDICTION_WEIGHTS: [1.0] * predictions + unused,
        record_schema.SENTENCE_LABEL: [int(pair.is_swapped)],
    }
