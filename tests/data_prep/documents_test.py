import bz2
import gzip
import io
import lzma
import os
import tarfile
import tempfile
from unittest import mock

import tensorflow as tf
from absl.testing import parameterized

from albert_tf.errors import UserError
from data_prep import documents
from tests.shared_data import shared_path

COMPRESSIONS = ((".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress))


class ReadDocumentsTest(parameterized.TestCase, tf.test.TestCase):
    def write(self, name: str, content: bytes) -> str:
        path = os.path.join(tempfile.mkdtemp(dir=self.get_temp_dir()), name)
        with open(path, "wb") as handle:
            handle.write(content)
        return path

    def read(self, *paths: str) -> list[list[str]]:
        self.report = documents.ReadingReport()
        return list(documents.read_documents(paths, self.report))

    @parameterized.parameters(
        b"", b" ", b"\t", b"\r", b"\xc2\xa0", b"\xe3\x80\x80", b"\n\n \n", b"\x1c"
    )
    def test_blank_lines_of_every_kind_end_a_document(self, blank):
        path = self.write("a.txt", b"one\ntwo\n" + blank + b"\nthree\n" + blank)
        self.assertEqual(self.read(path), [["one", "two"], ["three"]])

    def test_the_end_of_a_file_ends_its_last_document(self):
        first, second = self.write("a.txt", b"one\ntwo"), self.write("b.txt", b"three")
        self.assertEqual(self.read(first, second), [["one", "two"], ["three"]])

    def test_only_real_line_ends_end_lines(self):
        path = self.write("a.txt", "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\nh\r\ni\rj".encode())
        lines = ["a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", "h", "i", "j"]
        self.assertEqual(self.read(path), [lines])

    def test_byte_order_mark_is_dropped(self):
        self.assertEqual(self.read(self.write("a.txt", b"\xef\xbb\xbfone\n")), [["one"]])

    @parameterized.parameters(*COMPRESSIONS)
    def test_compressed_files_read_like_plain_ones(self, suffix, compress):
        content = "\n\n".join(f"sentence {i}\nné" for i in range(5000)).encode()
        plain = self.read(self.write("a.txt", content))
        path = self.write("a.txt" + suffix, compress(content))
        self.assertEqual(self.read(path), plain)
        self.assertEqual(self.report.bytes_read, os.path.getsize(path))
        self.assertEqual(self.read(self.write("no_suffix", compress(content))), plain)

    @parameterized.parameters(*COMPRESSIONS)
    def test_damaged_compressed_files_are_named(self, suffix, compress):
        content = compress(os.urandom(100_000).hex().encode())
        for broken in (content[: len(content) // 2], b"no such format", content[:50] + b"x" * 999):
            path = self.write("a" + suffix, broken)
            with self.assertRaisesRegex(UserError, f"cannot be read.*{path}"):
                self.read(path)

    def test_undecodable_bytes_are_replaced_counted_and_located(self):
        path = self.write("latin1.txt", b"fine\ncaf\xe9\n\xff\xfe\xfd bad\n")
        with self.assertLogs(level="WARNING") as logs:
            self.assertEqual(self.read(path), [["fine", "caf\ufffd", "\ufffd bad"]])
        self.assertEqual(self.report.undecodable_bytes, 4)
        self.assertIn("latin1.txt: 4 bytes are not UTF-8", logs.output[0])
        self.assertIn("line 2", logs.output[0])

    @parameterized.parameters("utf-16", "utf-16-be-bom", "zip", "tar")
    def test_files_that_are_no_text_are_refused(self, kind):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("a.txt"))
        content = {
            "utf-16": "text".encode("utf-16"),
            "utf-16-be-bom": b"\xfe\xff" + "text".encode("utf-16-be"),
            "zip": b"PK\x03\x04rest",
            "tar": archive.getvalue(),
        }[kind]
        with self.assertRaisesRegex(UserError, "is (UTF-16|a (zip|tar) archive)"):
            self.read(self.write("a.txt", content))

    def test_binary_noise_is_read_without_failing(self):
        noise = b"MZ" + os.urandom(300_000) + bytes(300_000)
        self.assertNotEmpty(self.read(self.write("noise.bin", noise)))

    @parameterized.parameters(b"", b"\n \n\r\n", b"\xef\xbb\xbf")
    def test_no_text_at_all_is_an_error_that_names_the_file(self, content):
        path = self.write("empty.txt", content)
        with self.assertRaisesRegex(UserError, f"no text.*{path}"):
            self.read(path)

    def test_one_file_without_text_is_a_warning(self):
        empty, full = self.write("empty.txt", b"\n"), self.write("full.txt", b"one\n")
        with self.assertLogs(level="WARNING") as logs:
            self.assertEqual(self.read(empty, full), [["one"]])
        self.assertIn(empty, logs.output[0])

    def test_long_documents_and_lines_come_in_parts_and_nothing_is_lost(self):
        text = " ".join(f"word{i}" for i in range(400))
        with mock.patch.object(documents, "MAX_DOCUMENT_CHARACTERS", 100):
            parts = self.read(self.write("a.txt", (text + "\n" + "x" * 350 + "\nend").encode()))
        self.assertGreater(len(parts), 15)
        self.assertEqual(max(len(line) for lines in parts for line in lines), 100)
        flat = [line for lines in parts for line in lines]
        self.assertEqual(" ".join(line for line in flat if "word" in line), text)
        self.assertEqual("".join(line for line in flat if "x" in line), "x" * 350)
        self.assertEqual(flat[-1], "end")

    def test_real_awkward_files_can_be_read(self):
        mixed = self.read(shared_path("data/nasty/made/mixed_line_endings.txt"))
        self.assertEqual([len(lines) for lines in mixed], [4, 2])
        novel = self.read(shared_path("data/nasty/real/bom_crlf_novel.txt"))
        self.assertNotIn("\ufeff", novel[0][0])
        self.assertFalse(any("\r" in line for lines in novel for line in lines))


class SplitSentencesTest(tf.test.TestCase):
    def test_without_a_language_lines_are_sentences(self):
        self.assertEqual(documents.split_sentences(["One. Two."], ""), ["One. Two."])

    def test_a_paragraph_is_split_at_sentence_ends_only(self):
        lines = ["Dr. Smith came in. He sat down!  Why?", "A new paragraph."]
        self.assertEqual(
            documents.split_sentences(lines, "en"),
            ["Dr. Smith came in.", "He sat down!", "Why?", "A new paragraph."],
        )

    def test_every_listed_language_splits_its_own_text(self):
        for language in documents.SENTENCE_LANGUAGES:
            self.assertLen(documents.split_sentences(["東京です。大阪！"], language), 2, language)

    def test_unknown_languages_are_refused(self):
        with self.assertRaisesRegex(UserError, "--split_sentences=klingon.*en, es"):
            documents.check_language("klingon", "--split_sentences")


if __name__ == "__main__":
    tf.test.main()
