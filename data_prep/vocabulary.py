"""Trains a SentencePiece vocabulary with the official recipe (README of google-research/albert).

The pieces 0 to 4 are <pad> <unk> [CLS] [SEP] [MASK]. SentencePiece sees text normalised exactly as
the tokenizer will normalise it, so that no piece is out of reach.
"""

from __future__ import annotations

import dataclasses
import io
import os
import random
import re
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

import sentencepiece as spm
from absl import logging

from albert_tf import files
from albert_tf.errors import UserError
from albert_tf.tokenization import (
    PAD_ID,
    SPECIAL_PIECES,
    UNK_ID,
    AlbertTokenizer,
    normalize_text,
)

OFFICIAL_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")
"""Always pieces of their own."""

VOCAB_FILE = "spm.vocab"
SUMMARY_FILE = "vocabulary.json"

_MAX_HELD_OUT = 2000
_NUM_THREADS = 8  # Fixed: sums in another order would make another vocabulary.
_QUIET = 3  # SentencePiece's minloglevel: its errors come as exceptions.
_MAX_LINE_BYTES = 1 << 23  # Beyond any line that read_documents yields; SentencePiece skips longer.


@dataclasses.dataclass(frozen=True)
class VocabularyConfig:
    """Settings of a vocabulary; defaults are those of the official recipe.

    Attributes:
      vocab_size: number of pieces, special ones included.
      do_lower_case: lower-case all text.
      keep_accents: keep accents.
      input_sentence_size: most lines to train on, drawn at random. A line takes about 300 bytes
        of memory, and as much again while SentencePiece works: 6 GB at the default of 10 million.
      character_coverage: share of all characters that the vocabulary has to spell.
      user_defined_symbols: texts that are always pieces of their own.
      random_seed: of the drawing of lines.
    """

    vocab_size: int = 30_000
    do_lower_case: bool = True
    keep_accents: bool = False
    input_sentence_size: int = 10_000_000
    character_coverage: float = 0.99995
    user_defined_symbols: tuple[str, ...] = OFFICIAL_SYMBOLS
    random_seed: int = 12345

    def __post_init__(self):
        least = len(SPECIAL_PIECES) + len(self.user_defined_symbols) + 1
        if not least <= self.vocab_size <= 1 << 20:
            raise UserError(
                "is out of range", f"--vocab_size={self.vocab_size}", f"give {least} to {1 << 20}"
            )
        if self.input_sentence_size < 100:
            raise UserError(
                "is out of range",
                f"--input_sentence_size={self.input_sentence_size}",
                "give 100 lines or more",
            )
        if not 0.9 <= self.character_coverage <= 1:
            raise UserError(
                "is out of range",
                f"--character_coverage={self.character_coverage}",
                "give 0.9 to 1",
            )
        symbols = self.user_defined_symbols
        for symbol in symbols:
            if not symbol.strip() or symbol in SPECIAL_PIECES or symbols.count(symbol) > 1:
                raise UserError(
                    "is empty, special or given twice",
                    f"--user_defined_symbol={symbol}",
                    "give each symbol once",
                )


def train(
    documents: Iterable[Sequence[str]], config: VocabularyConfig, output_dir: str
) -> dict[str, Any]:
    """Trains a vocabulary and writes spm.model, spm.vocab, tokenizer.json and vocabulary.json.

    The same lines in the same order give the same vocabulary, on any number of cores.

    Args:
      documents: lists of lines.
      config: the settings.
      output_dir: an existing directory.

    Returns:
      What vocabulary.json says: settings, SHA-256, and statistics of lines held out of training.

    Raises:
      UserError: the text cannot give a vocabulary of this size.
    """
    lines, total = _sample_lines(documents, config)
    lines = [
        text
        for line in lines
        if (text := normalize_text(line, config.do_lower_case, config.keep_accents))
    ]
    num_held_out = min(_MAX_HELD_OUT, len(lines) // 20)
    held_out, training = lines[:num_held_out], lines[num_held_out:]
    logging.info("training %d pieces on %d of %d lines", config.vocab_size, len(training), total)
    model = _train_sentencepiece(training, config)
    with tempfile.NamedTemporaryFile(suffix=".model") as handle:
        handle.write(model)
        handle.flush()
        tokenizer = AlbertTokenizer(handle.name, config.do_lower_case, config.keep_accents)
    tokenizer.save(output_dir)
    files.write_text(os.path.join(output_dir, VOCAB_FILE), _vocab_text(model))
    summary = {
        "settings": dataclasses.asdict(config),
        "sha256": tokenizer.sha256,
        "lines": total,
        "lines_trained_on": len(training),
        "lines_held_out": num_held_out,
    }
    if held_out:
        summary |= _statistics(tokenizer, held_out)
    files.write_json(os.path.join(output_dir, SUMMARY_FILE), summary)
    return summary


def _sample_lines(
    documents: Iterable[Sequence[str]], config: VocabularyConfig
) -> tuple[list[str], int]:
    """Draws input_sentence_size lines (Vitter's algorithm R) and counts all; shuffles them."""
    generator = random.Random(config.random_seed)
    sample: list[str] = []
    total = 0
    for document in documents:
        for line in document:
            total += 1
            if len(sample) < config.input_sentence_size:
                sample.append(line)
            elif (slot := int(generator.random() * total)) < config.input_sentence_size:
                sample[slot] = line
    generator.shuffle(sample)
    return sample, total


def _train_sentencepiece(lines: Sequence[str], config: VocabularyConfig) -> bytes:
    model = io.BytesIO()
    try:
        # Lists, not the official comma-separated string: its quote swallows what follows.
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="unigram",
            vocab_size=config.vocab_size,
            character_coverage=config.character_coverage,
            pad_id=PAD_ID,
            unk_id=UNK_ID,
            bos_id=-1,
            eos_id=-1,
            pad_piece=SPECIAL_PIECES[PAD_ID],
            unk_piece=SPECIAL_PIECES[UNK_ID],
            control_symbols=list(SPECIAL_PIECES[UNK_ID + 1 :]),
            user_defined_symbols=list(config.user_defined_symbols),
            shuffle_input_sentence=False,
            max_sentence_length=_MAX_LINE_BYTES,
            num_threads=_NUM_THREADS,
            minloglevel=_QUIET,
        )
    except (RuntimeError, OSError) as error:
        raise _explain(str(error), config) from error
    return model.getvalue()


def _explain(message: str, config: VocabularyConfig) -> UserError:
    where = f"--vocab_size={config.vocab_size}"
    if too_large := re.search(r"too high.*<= *(\d+)", message):
        return UserError(
            "is more than this text gives", where, f"give {too_large[1]} or less, or more text"
        )
    if too_small := re.search(r"smaller than required_chars.*?(\d+) vs (\d+)", message):
        least = max(map(int, too_small.groups()))
        return UserError(
            "is less than the text has characters",
            where,
            f"give more than {least}, or a lower --character_coverage",
        )
    return UserError("SentencePiece fails", where, " ".join(message.split()))


def _vocab_text(model: bytes) -> str:
    processor = spm.SentencePieceProcessor(model_proto=model)
    return "".join(
        f"{processor.id_to_piece(i)}\t{processor.get_score(i):g}\n"
        for i in range(processor.get_piece_size())
    )


def _statistics(tokenizer: AlbertTokenizer, lines: Sequence[str]) -> dict[str, float]:
    encoded = tokenizer.encode_batch(lines)
    pieces = sum(map(len, encoded))
    unknown = sum(ids.count(UNK_ID) for ids in encoded)
    words = sum(len(line.split()) for line in lines)
    return {
        "unknown_piece_rate": round(unknown / max(1, pieces), 6),
        "pieces_per_word": round(pieces / max(1, words), 4),
    }
