"""Tokenization and packing as TensorFlow ops: id for id what tokenization.py and packing.py do.

Only this module needs tensorflow_text; the SavedModels that take text do too.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import sys
import types
import unicodedata

import numpy as np
import tensorflow as tf

from albert_tf.data.packing import tail_length
from albert_tf.errors import UserError
from albert_tf.tokenization import CLS_ID, PAD_ID, SEP_ID, AlbertTokenizer, normalize_text

CAPITAL_SIGMA = "Σ"
"""The one letter whose lower case depends on its neighbours: ς at the end of a word, else σ."""


def load_tensorflow_text() -> types.ModuleType:
    """Imports tensorflow_text, whose ops a SavedModel that takes text needs before it is loaded.

    Raises:
      UserError: it is missing, or was made for another TensorFlow.
    """
    install = ".".join(tf.__version__.split(".")[:2]) + ".*"
    remedy = f"pip install 'tensorflow-text=={install}'"
    where = f"tensorflow {tf.__version__}"
    try:
        version = importlib.metadata.version("tensorflow-text")
    except importlib.metadata.PackageNotFoundError as error:
        raise UserError("tensorflow-text is not installed", where, remedy) from error
    if version.split(".")[:2] != tf.__version__.split(".")[:2]:
        raise UserError(f"tensorflow-text {version} does not fit", where, remedy)
    try:
        return importlib.import_module("tensorflow_text")
    except (ImportError, tf.errors.OpError) as error:
        raise UserError(f"tensorflow-text {version} cannot be loaded", where, remedy) from error


class TextNormalizer(tf.Module):
    """normalize_text as TensorFlow ops.

    Character data come from Python's unicodedata, not from TensorFlow's older ICU, so that both
    agree on every character; they travel with the SavedModel. Bytes that are not UTF-8 become
    U+FFFD, as bytes.decode("utf-8", "replace") has it.

    Args:
      do_lower_case, keep_accents: as in normalize_text.
    """

    def __init__(self, do_lower_case: bool, keep_accents: bool):
        super().__init__()
        self._do_lower_case = do_lower_case
        # NumPy arrays become constants of whichever graph uses them.
        self._codes, self._starts, self._limits, self._values = _character_table(
            do_lower_case, keep_accents
        )

    def __call__(self, texts: tf.Tensor) -> tf.Tensor:
        """string [batch] -> normalised valid UTF-8, string [batch]."""
        spaced = tf.strings.regex_replace(texts, f"[{_white_space()}]+", " ")
        codes = tf.strings.unicode_decode(tf.strings.strip(spaced), "UTF-8", errors="replace")
        normalized = tf.strings.unicode_encode(self._map_characters(codes), "UTF-8")
        return _lower_sigma(normalized) if self._do_lower_case else normalized

    def _map_characters(self, codes: tf.RaggedTensor) -> tf.RaggedTensor:
        """Replaces each code point that the table has by its row, of any length."""
        flat = codes.flat_values
        row = tf.minimum(tf.searchsorted(self._codes, flat), len(self._codes) - 1)
        found = tf.equal(tf.gather(self._codes, row), flat)
        # Behind the table's values stand the characters themselves, for those it lacks.
        own = len(self._values) + tf.range(tf.size(flat))
        spans = tf.ragged.range(
            tf.where(found, tf.gather(self._starts, row), own),
            tf.where(found, tf.gather(self._limits, row), own + 1),
        )
        mapped = tf.gather(tf.concat([self._values, flat], axis=0), spans)
        return codes.with_values(mapped).merge_dims(1, 2)


class TextEncoder(tf.Module):
    """AlbertTokenizer.encode_batch as TensorFlow ops; holds the SentencePiece model itself.

    Args:
      tokenizer: whose model, normalisation and digit-comma table to use.

    Raises:
      UserError: tensorflow-text is missing or of another version.
    """

    def __init__(self, tokenizer: AlbertTokenizer):
        super().__init__()
        tensorflow_text = load_tensorflow_text()
        self._normalize = TextNormalizer(tokenizer.do_lower_case, tokenizer.keep_accents)
        with tf.device("CPU"):
            self._sentencepiece = tensorflow_text.SentencepieceTokenizer(tokenizer.model_proto)
        split = tokenizer.split_digit_commas
        parts = [split.get(i, (i,)) for i in range(tokenizer.vocab_size)] if split else []
        self._parts = np.array([i for ids in parts for i in ids], np.int32)
        self._part_lengths = np.array([len(ids) for ids in parts], np.int64)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """string [batch] -> ids without special ones, int32 [batch, (pieces)]."""
        with tf.device("CPU"):
            ids = self._sentencepiece.tokenize(self._normalize(texts))
            if not len(self._parts):
                return ids
            table = tf.RaggedTensor.from_row_lengths(
                self._parts, self._part_lengths, validate=False
            )
            return tf.gather(table, ids).merge_dims(1, 2)


def pack(
    ids_a: tf.RaggedTensor,
    ids_b: tf.RaggedTensor | None = None,
    *,
    max_seq_length: int,
    truncation: str = "head",
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """packing.pack of a batch.

    Args:
      ids_a, ids_b: int32 [batch, (pieces)]; an empty row of ids_b packs that row's A alone.
      max_seq_length, truncation: as in packing.pack.

    Returns:
      input_ids, input_mask, segment_ids: int32 [batch, max_seq_length] each.
    """
    length_a = _row_lengths(ids_a)
    tail = tail_length(max_seq_length - 2, truncation)
    if ids_b is None:
        ids_b = ids_a[:, :0]
    length_b = _row_lengths(ids_b)
    is_pair = length_b > 0

    room = max_seq_length - 3
    kept_b = tf.minimum(length_b, tf.maximum(room - length_a, room // 2))
    pair_a = tf.minimum(length_a, tf.maximum(room - length_b, room - room // 2))
    kept_a = tf.where(is_pair, pair_a, tf.minimum(length_a, max_seq_length - 2))
    tail = tf.where(is_pair | (length_a <= max_seq_length - 2), 0, tail)

    position = tf.ragged.range(length_a)
    in_head = position < (kept_a - tail)[:, tf.newaxis]
    in_tail = position >= (length_a - tail)[:, tf.newaxis]
    first = tf.ragged.boolean_mask(ids_a, in_head | in_tail)
    second = tf.ragged.boolean_mask(ids_b, tf.ragged.range(length_b) < kept_b[:, tf.newaxis])

    batch = tf.size(length_a)
    cls = tf.fill([batch, 1], CLS_ID)
    sep = tf.fill([batch, 1], SEP_ID)
    last_sep = tf.ragged.boolean_mask(sep, is_pair[:, tf.newaxis])
    rows = tf.concat([cls, first, sep, second, last_sep], axis=1)
    input_ids = rows.to_tensor(PAD_ID, shape=[None, max_seq_length])
    input_mask = tf.sequence_mask(_row_lengths(rows), max_seq_length, tf.int32)
    is_second = tf.range(max_seq_length) >= (kept_a + 2)[:, tf.newaxis]
    return input_ids, input_mask, input_mask * tf.cast(is_second, tf.int32)


def _row_lengths(ragged: tf.RaggedTensor) -> tf.Tensor:
    return tf.cast(ragged.row_lengths(), tf.int32)


def _lower_sigma(texts: tf.Tensor) -> tf.Tensor:
    """Final sigma as Python and Unicode define it: after a letter and not before one.

    "Letter" is a character with case; those that case ignores, like an accent, are passed over.
    """
    cased, ignored = _case_context()
    word_end = f"([{cased}][{ignored}]*){CAPITAL_SIGMA}([{ignored}]*(?:[^{cased}{ignored}]|\\z))"
    texts = tf.strings.regex_replace(texts, word_end, "\\1ς\\2")
    return tf.strings.regex_replace(texts, CAPITAL_SIGMA, "σ")


@functools.cache
def _characters() -> list[str]:
    """Every character that Unicode assigns, in order; the others have no properties."""
    characters = map(chr, range(sys.maxunicode + 1))
    return [c for c in characters if unicodedata.category(c) not in ("Cn", "Co", "Cs")]


@functools.cache
def _character_table(
    do_lower_case: bool, keep_accents: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What normalisation makes of single characters, apart from white space and capital sigma.

    Returns:
      Sorted code points that change; the start and the limit of each one's row; the rows' code
      points. int32 all.
    """
    codes, lengths, values = [], [], []
    for character in _characters():
        if character.isspace():
            continue
        mapped = normalize_text(character, False, keep_accents)
        if do_lower_case:
            mapped = "".join(c if c == CAPITAL_SIGMA else c.lower() for c in mapped)
        if mapped != character:
            codes.append(ord(character))
            lengths.append(len(mapped))
            values.extend(map(ord, mapped))
    limits = np.cumsum(lengths, dtype=np.int32)
    starts = limits - np.array(lengths, np.int32)
    # searchsorted needs a table that is not empty: a code point mapped to itself does no harm.
    if not codes:
        return tuple(np.array([x], np.int32) for x in (0, 0, 1, 0))
    return np.array(codes, np.int32), starts, limits, np.array(values, np.int32)


@functools.cache
def _white_space() -> str:
    return "".join(filter(str.isspace, _characters()))


@functools.cache
def _case_context() -> tuple[str, str]:
    """Character classes of the letters with case, and of what case ignores.

    Python does not expose these properties, but its lower-casing of sigma shows them.
    """
    cased, ignored = [], []
    for character in _characters():
        if f"A{CAPITAL_SIGMA}{character}".lower()[1] == "σ":
            cased.append(character)
        elif f"A{CAPITAL_SIGMA}{character}A".lower()[1] == "σ":
            ignored.append(character)
    return _character_class(cased), _character_class(ignored)


def _character_class(characters: list[str]) -> str:
    """The inside of a regular expression's [...] for sorted characters, as hexadecimal ranges."""
    ranges: list[list[int]] = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges)
