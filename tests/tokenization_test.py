import json
import multiprocessing
import os
import pickle

import tensorflow as tf
from absl.testing import parameterized

from albert_tf.errors import UserError
from albert_tf.tokenization import AlbertTokenizer, normalize_text, starts_word
from tests.shared_data import TEST_DATA, shared_path
from tests.tiny_vocabulary import tiny_spm_model_file


class NormalizeTextTest(tf.test.TestCase):
    def test_white_space_case_and_accents(self):
        self.assertEqual(normalize_text("  The\tCAFÉ \u3000 ﬁn ", True), "the cafe fin")
        self.assertEqual(normalize_text("The CAFÉ", False), "The CAFE")
        self.assertEqual(normalize_text("The CAFÉ", True, keep_accents=True), "the café")


class WordStartTest(parameterized.TestCase, tf.test.TestCase):
    @parameterized.parameters("▁the", "▁", ".", "-", "€", "9", "10", "東", "語", "ไ", "<unk>")
    def test_starts_a_word(self, piece):
        self.assertTrue(starts_word(piece))

    @parameterized.parameters("ing", "ë", "ünd", "ий", "ها", "ת", "िन")
    def test_continues_a_word(self, piece):
        self.assertFalse(starts_word(piece))


class AlbertTokenizerTest(parameterized.TestCase, tf.test.TestCase):
    def test_decoding_returns_the_normalised_text(self):
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        text = "The old Clock was 1,000 years old, and late."
        self.assertEqual(tokenizer.decode(tokenizer.encode(text)), tokenizer.normalize(text))

    def test_ids_and_pieces_agree(self):
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        pieces = tokenizer.tokenize("the village")
        self.assertEqual(
            [tokenizer.piece_to_id(p) for p in pieces], tokenizer.encode("the village")
        )
        self.assertEqual(tokenizer.pieces[:5], ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])

    @parameterized.parameters("fork", "spawn")
    def test_it_travels_to_worker_processes(self, method):
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        with multiprocessing.get_context(method).Pool(1) as pool:
            ids = pool.apply(tokenizer.encode, ["the village"])
        self.assertEqual(ids, tokenizer.encode("the village"))

    def test_a_directory_keeps_the_settings(self):
        directory = self.get_temp_dir()
        AlbertTokenizer(tiny_spm_model_file(), do_lower_case=False).save(directory)
        loaded = AlbertTokenizer.from_directory(directory, "--model_dir")
        self.assertFalse(loaded.do_lower_case)
        self.assertEqual(loaded.pieces, AlbertTokenizer(tiny_spm_model_file()).pieces)

    def test_a_file_that_is_no_model_is_refused(self):
        for path in (str(TEST_DATA / "village.txt"), str(TEST_DATA), "/no/such.model"):
            with self.assertRaisesRegex(UserError, f"--spm_model_file={path}"):
                AlbertTokenizer(path)
        with self.assertRaisesRegex(UserError, "<pad> <unk>"):
            AlbertTokenizer(shared_path("data/vocab/other/test_sentencepiece.model"))

    def test_pickles_are_whole(self):
        tokenizer = pickle.loads(pickle.dumps(AlbertTokenizer(tiny_spm_model_file())))
        self.assertNotEmpty(tokenizer.encode("the"))


class GoldenTest(parameterized.TestCase, tf.test.TestCase):
    def test_pieces_and_word_starts_of_the_official_code(self):
        tokenizer = AlbertTokenizer(shared_path("golden/data_prep/spm.model"))
        with open(shared_path("golden/data_prep/tokenization.json"), encoding="utf-8") as handle:
            rows = json.load(handle)
        for row in rows:
            self.assertEqual(tokenizer.normalize(row["text"]), row["preprocessed"])
            self.assertEqual(tokenizer.tokenize(row["text"]), _known(tokenizer, row))

    @parameterized.parameters((True, "pre_ids"), (False, "cased_pre_ids"))
    def test_ids_of_the_released_vocabulary(self, lower, field):
        tokenizer = AlbertTokenizer(shared_path("data/vocab/spiece.model"), lower)
        for name in ("albert_en_real.jsonl", "albert_en_made.jsonl"):
            path = os.path.join(shared_path("data/tokenizer_golden"), name)
            with open(path, encoding="utf-8") as handle:
                rows = [json.loads(line) for line in handle]
            expected = [row[field] for row in rows]
            self.assertEqual(tokenizer.encode_batch([row["text"] for row in rows]), expected)


def _known(tokenizer, row) -> list[str]:
    """The golden pieces, those that the vocabulary lacks as <unk>."""
    known = set(tokenizer.pieces)
    return [piece if piece in known else "<unk>" for piece in row["pieces_with_strip"]]


if __name__ == "__main__":
    tf.test.main()
