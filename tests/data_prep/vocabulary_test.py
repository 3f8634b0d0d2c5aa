import json
import os
import re
import tempfile

import sentencepiece as spm
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.tokenization import SPECIAL_PIECES, AlbertTokenizer
from data_prep import vocabulary
from data_prep.documents import ReadingReport, read_documents
from data_prep.vocabulary import VocabularyConfig
from tests.data_prep.corpora import make_documents
from tests.shared_data import TEST_DATA, shared_path


class VocabularyTest(tf.test.TestCase):
    def setUp(self):
        super().setUp()
        report = ReadingReport()
        self.documents = list(read_documents([str(TEST_DATA / "village.txt")], report))

    def train(self, documents=None, **settings):
        self.output_dir = tempfile.mkdtemp(dir=self.get_temp_dir())
        config = VocabularyConfig(**{"vocab_size": 300, **settings})
        self.summary = vocabulary.train(documents or self.documents, config, self.output_dir)
        return AlbertTokenizer.from_directory(self.output_dir, "--output_dir")

    def test_the_official_pieces_come_first_in_the_official_order(self):
        tokenizer = self.train()
        self.assertEqual(tokenizer.vocab_size, 300)
        official = [*SPECIAL_PIECES, "(", ")", '"', "-", ".", "–", "£", "€"]
        self.assertEqual(tokenizer.pieces[: len(official)], official)

    def test_the_files_describe_the_vocabulary(self):
        tokenizer = self.train(do_lower_case=False, keep_accents=True)
        self.assertCountEqual(
            os.listdir(self.output_dir),
            ["spm.model", "spm.vocab", "tokenizer.json", "vocabulary.json"],
        )
        self.assertEqual((tokenizer.do_lower_case, tokenizer.keep_accents), (False, True))
        with open(os.path.join(self.output_dir, "vocabulary.json"), encoding="utf-8") as handle:
            summary = json.load(handle)
        self.assertEqual(summary["sha256"], self.summary["sha256"])
        self.assertEqual(summary["lines"], 72)
        self.assertEqual(summary["lines_held_out"], 3)
        self.assertBetween(summary["pieces_per_word"], 1, 5)
        with open(os.path.join(self.output_dir, "spm.vocab"), encoding="utf-8") as handle:
            pieces = [line.split("\t")[0] for line in handle]
        self.assertEqual(pieces, tokenizer.pieces)

    def test_accents_and_case_are_kept_or_dropped_as_told(self):
        accents = [["Résumé så ИЙ Việt"] * 30, ["resume sa ий viet"] * 30]
        text = [*self.documents, *accents]
        plain = self.train(text)
        self.assertNotIn("é", "".join(plain.pieces))
        self.assertNotIn("R", "".join(plain.pieces[5:]))
        self.assertEqual(plain.encode("Résumé"), plain.encode("resume"))
        accented = self.train(text, keep_accents=True)
        self.assertIn("é", "".join(accented.pieces))
        self.assertNotEqual(accented.encode("résumé"), accented.encode("resume"))

    def test_the_same_lines_give_the_same_vocabulary(self):
        self.train(input_sentence_size=100)
        first = self.summary["sha256"]
        self.train(input_sentence_size=100)
        self.assertEqual(self.summary["sha256"], first)

    def test_lines_are_drawn_from_the_whole_text_in_bounded_number(self):
        documents = [["baker bread"] * 900, ["river water"] * 900]
        sample, total = vocabulary._sample_lines(
            documents, VocabularyConfig(input_sentence_size=200)
        )
        self.assertLen(sample, 200)
        self.assertEqual(total, 1800)
        self.assertBetween(sample.count("baker bread"), 70, 130)

    def test_a_size_that_the_text_cannot_give_names_the_one_it_can(self):
        with self.assertRaisesRegex(UserError, "--vocab_size=30000: give [0-9]+ or less") as caught:
            self.train(vocab_size=30_000)
        self.assertEqual(os.listdir(self.output_dir), [])
        possible = int(re.search(r"give (\d+)", str(caught.exception))[1])
        self.assertEqual(self.train(vocab_size=possible).vocab_size, possible)

    def test_a_size_below_the_alphabet_names_one_that_is_enough(self):
        with self.assertRaisesRegex(UserError, "--vocab_size=30: give more than") as caught:
            self.train(vocab_size=30)
        enough = int(re.search(r"more than (\d+)", str(caught.exception))[1]) + 1
        self.assertEqual(self.train(vocab_size=enough).vocab_size, enough)

    def test_symbols_can_be_added_but_not_twice_or_empty(self):
        symbols = (*vocabulary.OFFICIAL_SYMBOLS, ",", "'s")
        tokenizer = self.train(user_defined_symbols=symbols)
        self.assertEqual(tokenizer.pieces[5 : 5 + len(symbols)], list(symbols))
        for bad in (("(", "("), ("",), ("[MASK]",)):
            with self.assertRaisesRegex(UserError, "--user_defined_symbol"):
                VocabularyConfig(user_defined_symbols=bad)

    def test_numbers_with_commas_are_split_alike_whatever_the_vocabulary_learnt(self):
        lines = ["in 2013, and 1,000, of them", "5,000,000, or 2012/2013, they"] * 40
        tokenizer = self.train([lines], vocab_size=38)
        text = "2012/2013, 5,000,000, ,3 3,"
        for piece in tokenizer.tokenize(text):
            self.assertNotRegex(piece, r"\d,$")
        self.assertEqual(tokenizer.decode(tokenizer.encode(text)), text)

    def test_scripts_without_spaces_and_long_lines_work(self):
        path = shared_path("data/corpus/th/th_pud-ud-test.docs.txt")
        documents = [*read_documents([path], ReadingReport()), ["word " * 5000]]
        self.train(documents, vocab_size=500)
        self.assertLess(self.summary["unknown_piece_rate"], 0.01)

    def test_text_cannot_spell_special_pieces(self):
        tokenizer = self.train(make_documents(5, 5), vocab_size=60)
        ids = tokenizer.encode("a [MASK] b [SEP] x[CLS]y <pad> <unk>")
        self.assertNoCommonElements(ids, [0, 2, 3, 4])
        processor = spm.SentencePieceProcessor(model_proto=tokenizer.model_proto)
        self.assertTrue(all(processor.is_control(i) for i in (0, 2, 3, 4)))


if __name__ == "__main__":
    tf.test.main()
