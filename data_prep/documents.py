"""Streams documents out of text files: plain, .gz, .xz or .bz2, at any tf.io.gfile path.

A line is a sentence (or a paragraph, see `split_sentences`); a blank line or the end of a file
ends a document. The official code joins the last document of a file to the first of the next
unless a blank line stands between.
"""

from __future__ import annotations

import bz2
import contextlib
import dataclasses
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Iterator, Sequence

import sentencex
import tensorflow as tf
from absl import logging

from albert_tf.errors import UserError

MAX_DOCUMENT_CHARACTERS = 1 << 20
"""A longer document goes on as another one, so that memory stays bounded."""

SENTENCE_LANGUAGES = (
    *("am", "ar", "bg", "bn", "ca", "da", "de", "el", "en", "es", "fi", "fr", "gu", "hi", "hy"),
    *("it", "ja", "kk", "kn", "ml", "mr", "my", "nl", "pa", "pl", "pt", "ru", "sk", "ta", "te"),
    *("uk", "zh"),
)
"""Languages whose sentence ends the sentencex library knows; it takes others for English."""

_DECOMPRESSORS = {
    ".gz": (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    ".xz": (b"\xfd7zXZ\x00", lzma.LZMAFile),
    ".bz2": (b"BZh", bz2.BZ2File),
}

_UNREADABLE = (
    (0, b"\xff\xfe", "is UTF-16", "convert it to UTF-8"),
    (0, b"\xfe\xff", "is UTF-16", "convert it to UTF-8"),
    (0, b"PK\x03\x04", "is a zip archive", "unpack it"),
    (257, b"ustar", "is a tar archive", "unpack it"),
)
"""Offset, bytes found there, what the file therefore is, remedy."""

_READ_ERRORS = (EOFError, OSError, zlib.error, lzma.LZMAError, tf.errors.OpError)

_UNDECODABLE = re.compile("[\udc80-\udcff]+")
"""Bytes that are not UTF-8, as errors="surrogateescape" shows them."""


@dataclasses.dataclass
class ReadingReport:
    """What has been read so far.

    Attributes:
      bytes_read: bytes of the files as stored, before decompression.
      undecodable_bytes: bytes that are not UTF-8 and were replaced by U+FFFD.
      files_without_text: names of files that held no document.
    """

    bytes_read: int = 0
    undecodable_bytes: int = 0
    files_without_text: list[str] = dataclasses.field(default_factory=list)


def read_documents(paths: Sequence[str], report: ReadingReport) -> Iterator[list[str]]:
    """Yields documents, each a list of lines that are stripped and not empty.

    Args:
      paths: files, read one after the other.
      report: brought up to date while reading.

    Raises:
      UserError: a file is damaged, not text, or no file holds any text.
    """
    for path in paths:
        has_text = False
        document: list[str] = []
        size = 0
        for line in _read_lines(path, report):
            if line:
                document.append(line)
                size += len(line)
            if document and (not line or size >= MAX_DOCUMENT_CHARACTERS):
                yield document
                has_text, document, size = True, [], 0
        if document:
            yield document
        elif not has_text:
            report.files_without_text.append(path)
            logging.warning("%s holds no text", path)
    if len(report.files_without_text) == len(paths):
        names = ",".join(paths[:3]) + (",..." if len(paths) > 3 else "")
        raise UserError("no text in any file", f"--input_file={names}", "give files with text")


def check_language(language: str, flag: str) -> str:
    """Returns `language` if sentences can be split in it; "" means lines are sentences."""
    if language and language not in SENTENCE_LANGUAGES:
        raise UserError(
            "is not a language with sentence rules",
            f"{flag}={language}",
            f"use the nearest of {', '.join(SENTENCE_LANGUAGES)}",
        )
    return language


def split_sentences(lines: Sequence[str], language: str) -> list[str]:
    """Splits each line, a paragraph, into sentences; with language "" lines are sentences."""
    if not language:
        return list(lines)
    sentences = (part.strip() for line in lines for part in sentencex.segment(language, line))
    return [sentence for sentence in sentences if sentence]


class _CountedFile(io.RawIOBase):
    """A gfile as a raw stream that adds what it reads to report.bytes_read."""

    def __init__(self, path: str, report: ReadingReport):
        super().__init__()
        self._file = tf.io.gfile.GFile(path, "rb")
        self._report = report

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._report.bytes_read += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _open_binary(path: str, report: ReadingReport) -> io.BufferedReader:
    """Opens a file, decompressed if its name or its first bytes ask for it."""
    stream = io.BufferedReader(_CountedFile(path, report), 1 << 20)
    head = stream.peek(8)
    suffix = os.path.splitext(path)[1]
    for known_suffix, (magic, decompress) in _DECOMPRESSORS.items():
        if suffix == known_suffix or head.startswith(magic):
            return io.BufferedReader(decompress(stream), 1 << 20)
    return stream


def _read_lines(path: str, report: ReadingReport) -> Iterator[str]:
    """Yields stripped lines of UTF-8 text; only \\n, \\r\\n and \\r end a line."""
    bad_bytes, first_bad_line = 0, 0
    try:
        with contextlib.closing(_open_binary(path, report)) as stream:
            head = stream.peek(512)
            for offset, magic, what, remedy in _UNREADABLE:
                if head[offset : offset + len(magic)] == magic:
                    raise UserError(what, f"--input_file={path}", remedy)
            # utf-8-sig drops a byte order mark; the default newline=None knows the three line ends.
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape")
            for number, line in _numbered_lines(text):
                if not line.isascii() and (bad := _UNDECODABLE.findall(line)):
                    bad_bytes += sum(map(len, bad))
                    first_bad_line = first_bad_line or number
                    line = _UNDECODABLE.sub("\ufffd", line)
                yield line.strip()
    except _READ_ERRORS as error:
        reason = " ".join(str(getattr(error, "message", None) or error).split())
        raise UserError(
            "cannot be read to its end", f"--input_file={path}", f"repair or remove it ({reason})"
        ) from error
    if bad_bytes:
        report.undecodable_bytes += bad_bytes
        logging.warning(
            "%s: %d bytes are not UTF-8 and were replaced, the first in line %d",
            path,
            bad_bytes,
            first_bad_line,
        )


def _numbered_lines(text: io.TextIOWrapper) -> Iterator[tuple[int, str]]:
    """Yields (line number, line), a line beyond MAX_DOCUMENT_CHARACTERS in parts cut at spaces."""
    number, carried = 1, ""
    while part := text.readline(limit := MAX_DOCUMENT_CHARACTERS - len(carried)):
        line, carried = carried + part, ""
        if line.endswith("\n"):
            yield number, line
            number += 1
        elif len(part) < limit:  # The last line, without a line end.
            yield number, line
        else:
            head, _, carried = line.rpartition(" ")
            yield number, head or carried
            carried = carried if head else ""
    if carried:
        yield number, carried
