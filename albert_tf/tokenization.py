"""Text to ids in Python: the official normalisation, SentencePiece, and the digit-comma rule."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import string
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import sentencepiece as spm
import tensorflow as tf

from albert_tf import files
from albert_tf.errors import UserError

SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
"""Pieces 0 to 4 of every ALBERT vocabulary."""

PAD_ID, UNK_ID, CLS_ID, SEP_ID, MASK_ID = range(len(SPECIAL_PIECES))

SPM_MODEL_FILE = "spm.model"
SETTINGS_FILE = "tokenizer.json"
"""Files of a data or model directory: the vocabulary, and do_lower_case and keep_accents."""

WORD_START = "▁"
"""SentencePiece's mark for a preceding space."""

REPLACEMENT_CHARACTER = "\ufffd"
"""Stands for what is no character: a lone surrogate, a code point that Unicode reserves to be
none, and in text_ops an invalid byte."""

# The ASCII characters that the official code lets continue a word. It forgot ' < = and >, and a
# digit is not among them, so a piece that holds one of these starts a word.
_ASCII_PUNCTUATION = frozenset(string.punctuation) - set("'<=>")
_ASCII_CONTINUATION = _ASCII_PUNCTUATION | set(string.ascii_letters)

# How the Unicode names of letters begin in scripts that put no space between words. Hangul is
# not one of them: Korean has spaces.
_UNSPACED_SCRIPTS = (
    "CJK",
    "IDEOGRAPHIC",
    "HIRAGANA",
    "KATAKANA",
    "BOPOMOFO",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
    "TAI ",
    "NEW TAI LUE",
)

_NO_CHARACTER = re.compile(
    "[\ud800-\udfff\ufdd0-\ufdef{}]".format(
        "".join(chr(plane << 16 | end) for plane in range(17) for end in (0xFFFE, 0xFFFF))
    )
)


def normalize_text(text: str, do_lower_case: bool, keep_accents: bool = False) -> str:
    """The official preprocess_text, and Hugging Face's keep_accents.

    Runs of white space become one space; then, unless `keep_accents`, text is decomposed (NFKD)
    and combining characters are dropped, whether or not it is lower-cased, as the official code
    does; then it is lower-cased if `do_lower_case`. What is no character becomes U+FFFD.
    """
    text = " ".join(text.split())
    if not text.isascii():
        if not text.isprintable():
            text = _NO_CHARACTER.sub(REPLACEMENT_CHARACTER, text)
        if not keep_accents:
            text = unicodedata.normalize("NFKD", text)
            for mark in filter(unicodedata.combining, set(text)):
                text = text.replace(mark, "")
    return text.lower() if do_lower_case else text


def starts_word(piece: str) -> bool:
    """Whether `piece` begins a word for whole-word masking.

    The official rule for ASCII: a piece continues a word if it has only letters and punctuation
    and is not a single punctuation character. The official code lets every other piece start a
    word; here letters and marks of any script with spaces between words continue one, while
    pieces of the other scripts, and pieces with other punctuation, symbols or digits, start one.
    """
    if piece.startswith((WORD_START, "<")) or piece in SPECIAL_PIECES:
        return True
    if len(piece) == 1 and piece in _ASCII_PUNCTUATION:
        return True
    if unicodedata.category(piece[0]).startswith("M"):
        return False  # A mark belongs to the letter before it, in every script.
    return not all(map(_continues_word, piece))


def _continues_word(character: str) -> bool:
    if character.isascii():
        return character in _ASCII_CONTINUATION
    if unicodedata.name(character, "").startswith(_UNSPACED_SCRIPTS):
        return False
    return unicodedata.category(character).startswith(("L", "M", "Cf"))


def read_settings(directory: str) -> dict[str, bool] | None:
    """do_lower_case and keep_accents of the vocabulary in a directory of ours, else None.

    Hugging Face has another file of the same name, which is not ours to read.
    """
    path = os.path.join(directory, SETTINGS_FILE)
    if not tf.io.gfile.exists(path):
        return None
    settings = files.read_json(path, "--spm_model_file")
    ours = isinstance(settings, dict) and settings.keys() == {"do_lower_case", "keep_accents"}
    return settings if ours else None


class AlbertTokenizer:
    """Normalisation, SentencePiece and the digit-comma rule; can be pickled.

    Text never yields a special id, even if it spells "[MASK]": those ids are for code to insert.

    Args:
      spm_model_file: path of a SentencePiece model whose first pieces are SPECIAL_PIECES.
      do_lower_case: whether the vocabulary is lower-case.
      keep_accents: whether the vocabulary has accents; the official ones do not.

    Raises:
      UserError: the file is missing, or is not such a model.
    """

    def __init__(self, spm_model_file: str, do_lower_case: bool = True, keep_accents: bool = False):
        files.require_file(spm_model_file, "--spm_model_file")
        with tf.io.gfile.GFile(spm_model_file, "rb") as handle:
            model_proto = handle.read()
        self.__setstate__(
            {
                "spm_model_file": spm_model_file,
                "model_proto": model_proto,
                "do_lower_case": do_lower_case,
                "keep_accents": keep_accents,
            }
        )

    @classmethod
    def from_directory(cls, directory: str, flag: str) -> AlbertTokenizer:
        """The tokenizer that a data or model directory holds; see save().

        Args:
          directory: the directory.
          flag: where it came from, for messages.

        Raises:
          UserError: it holds none of ours.
        """
        settings = read_settings(directory)
        if settings is None:
            raise UserError(
                f"holds no {SETTINGS_FILE} of ours", f"{flag}={directory}", "check the directory"
            )
        return cls(os.path.join(directory, SPM_MODEL_FILE), **settings)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the vocabulary file, as 64 hex digits."""
        return hashlib.sha256(self.model_proto).hexdigest()

    @property
    def settings(self) -> dict[str, bool]:
        """do_lower_case and keep_accents."""
        return {"do_lower_case": self.do_lower_case, "keep_accents": self.keep_accents}

    def save(self, directory: str) -> None:
        """Writes the vocabulary and its settings, so that `directory` describes itself."""
        path = os.path.join(directory, SPM_MODEL_FILE)
        with files.atomic_path(path) as temporary, tf.io.gfile.GFile(temporary, "wb") as handle:
            handle.write(self.model_proto)
        files.write_json(os.path.join(directory, SETTINGS_FILE), self.settings)

    def __getstate__(self) -> dict[str, Any]:
        names = ("spm_model_file", "model_proto", "do_lower_case", "keep_accents")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The model's bytes travel with the object: a worker may not see the file.
        self.spm_model_file: str = state["spm_model_file"]
        self.model_proto: bytes = state["model_proto"]
        self.do_lower_case: bool = state["do_lower_case"]
        self.keep_accents: bool = state["keep_accents"]
        self._processor = _load(self.model_proto, self.spm_model_file)
        self.split_digit_commas = _digit_comma_table(self._processor)

    @property
    def vocab_size(self) -> int:
        """Number of pieces, special ones included."""
        return self._processor.get_piece_size()

    @functools.cached_property
    def pieces(self) -> list[str]:
        """All pieces, by id."""
        return [self._processor.id_to_piece(i) for i in range(self.vocab_size)]

    @functools.cached_property
    def word_starts(self) -> np.ndarray:
        """bool [vocab_size]: whether a piece begins a word for whole-word masking."""
        return np.array([starts_word(piece) for piece in self.pieces])

    def normalize(self, text: str) -> str:
        """`text` as the vocabulary sees it; see normalize_text."""
        return normalize_text(text, self.do_lower_case, self.keep_accents)

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, without special ids."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str], num_threads: int = 1) -> list[list[int]]:
        """Ids of each text, without special ids."""
        normalized = [self.normalize(text) for text in texts]
        batch = self._processor.encode(normalized, num_threads=num_threads)
        table = self.split_digit_commas
        if not table:
            return batch
        return [
            ids
            if table.keys().isdisjoint(ids)
            else [part for i in ids for part in table.get(i, (i,))]
            for ids in batch
        ]

    def tokenize(self, text: str) -> list[str]:
        """Pieces of `text`; what the vocabulary lacks is "<unk>"."""
        return [self.id_to_piece(i) for i in self.encode(text)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text that `ids` stand for; special ids vanish and unknown pieces show as " ⁇ "."""
        return self._processor.decode([int(i) for i in ids])

    def id_to_piece(self, piece_id: int) -> str:
        """The piece with this id."""
        return self._processor.id_to_piece(int(piece_id))

    def piece_to_id(self, piece: str) -> int:
        """The id of a piece; UNK_ID if the vocabulary lacks it."""
        return self._processor.piece_to_id(piece)


def _load(model_proto: bytes, path: str) -> spm.SentencePieceProcessor:
    where = f"--spm_model_file={path}"
    processor = spm.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model_proto)
        size = processor.get_piece_size()
    except RuntimeError as error:
        raise UserError(
            "is not a SentencePiece model", where, "give the .model file, not .vocab or text"
        ) from error
    first = tuple(processor.id_to_piece(i) for i in range(min(size, len(SPECIAL_PIECES))))
    if first != SPECIAL_PIECES:
        raise UserError(
            f"begins with the pieces {' '.join(first)}",
            where,
            f"ALBERT needs {' '.join(SPECIAL_PIECES)} first; train one with train_vocabulary",
        )
    # A special piece of another kind could be spelled by a user's text.
    if not all(processor.is_control(i) for i in (PAD_ID, CLS_ID, SEP_ID, MASK_ID)):
        raise UserError(
            "has special pieces that text can spell",
            where,
            "train them as control symbols, not as user-defined ones",
        )
    return processor


def _digit_comma_table(processor: spm.SentencePieceProcessor) -> dict[int, tuple[int, ...]]:
    """The pieces that end in a digit and a comma, each with the ids that replace it.

    The digits are encoded anew without the "▁" that SentencePiece puts before them, and the comma
    stands alone. (The official code means to strip that "▁" but compares bytes with text.)
    """
    table = {}
    for piece_id in range(len(SPECIAL_PIECES), processor.get_piece_size()):
        piece = processor.id_to_piece(piece_id)
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            parts = processor.encode(piece[:-1].replace(WORD_START, ""), out_type=str)
            if not piece.startswith(WORD_START) and parts[0].startswith(WORD_START):
                parts[0] = parts[0][len(WORD_START) :]
                # "10" may be no piece although "▁10" is; its digits are.
                if processor.piece_to_id(parts[0]) == UNK_ID:
                    parts[:1] = parts[0]
            ids = tuple(processor.piece_to_id(part) for part in [*parts, ","])
            if UNK_ID not in ids:
                table[piece_id] = ids
    return table
