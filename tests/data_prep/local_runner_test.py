import collections
import hashlib
import itertools
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.errors import UserError
from albert_tf.tokenization import MASK_ID, AlbertTokenizer
from data_prep import local_runner, record_view
from tests.data_prep.corpora import make_documents
from tests.data_prep.runner_test_case import LocalRunnerTestCase
from tests.tiny_vocabulary import tiny_spm_model_file

TENS_OF_SENTENCES = make_documents(60, 10)
LONE_SENTENCES = make_documents(200, 1)


class RecordsTest(LocalRunnerTestCase):
    def test_records_have_the_official_features_and_say_what_they_should(self):
        manifest, records = self.run_local(self.corpus(TENS_OF_SENTENCES), max_seq_length=64)
        self.assertEqual(manifest["settings"]["max_predictions_per_seq"], 10)
        self.assertLen(records, manifest["counts"]["records"])
        for record in records:
            length = record["input_mask"].sum()
            self.assertLen(record["input_ids"], 64)
            self.assertLen(record["masked_lm_ids"], 10)
            positions, labels = record_view.predictions(record)
            self.assertAllEqual(positions, np.unique(positions))
            self.assertAllLess(positions, length)
            self.assertAllGreater(labels, MASK_ID)
            # Long words may leave a rest of the budget that no word fits.
            self.assertBetween(len(positions), 1, max(1, round(0.15 * length)))
            ids = record_view.original_ids(record)
            self.assertEqual(ids[0], 2)
            (first_sep, last) = np.flatnonzero(ids == 3)
            self.assertEqual(last, length - 1)
            segments = np.zeros(64)
            segments[first_sep + 1 : length] = 1
            self.assertAllEqual(record["segment_ids"], segments)
            self.assertAllEqual(record["input_ids"][length:], np.zeros(64 - length))
            edges = [0, 1, first_sep, first_sep + 1, last]
            self.assertAllEqual(record["token_boundary"][edges], np.ones(5))

    def test_labels_put_back_give_the_text(self):
        path = self.corpus(TENS_OF_SENTENCES)
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        documents = [
            itertools.chain.from_iterable(tokenizer.encode_batch(lines))
            for lines in TENS_OF_SENTENCES
        ]
        texts = ["," + ",".join(map(str, ids)) + "," for ids in documents]
        for record in self.run_local(path)[1]:
            ids = record_view.original_ids(record)
            sep = np.flatnonzero(ids == 3)[0]
            segments = [ids[1:sep], ids[sep + 1 : -1]]
            if record["next_sentence_labels"][0]:
                segments.reverse()
            first, second = ("," + ",".join(map(str, s)) + "," for s in segments)
            orders = [0 <= text.find(first) < text.rfind(second) for text in texts]
            self.assertIn(True, orders)

    def test_lone_sentences_neither_mix_documents_nor_give_the_label_away(self):
        with self.assertLogs(level="WARNING") as logs:
            manifest, records = self.run_local(
                self.corpus(LONE_SENTENCES), dupe_factor=5, max_seq_length=128
            )
        self.assertAllClose(manifest["statistics"]["swapped_share"], 0.5, atol=0.05)
        self.assertEqual(manifest["counts"]["one_sentence_documents"], 200)
        self.assertIn("hold one sentence", logs.output[0])
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        bags = {tuple(sorted(tokenizer.encode(lines[0]))) for lines in LONE_SENTENCES}
        for record in records:
            ids = record_view.original_ids(record)
            self.assertTrue(tuple(sorted(ids[ids > MASK_ID])) in bags, ids)

    def test_documents_of_disjoint_words_never_meet(self):
        path = self.corpus([["baker bread baker"] * 30, ["river water river"] * 30])
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        for record in self.run_local(path)[1]:
            text = tokenizer.decode(record_view.original_ids(record))
            self.assertFalse("baker" in text and "river" in text, text)

    def test_a_very_small_corpus_works_and_leaves_no_empty_shard(self):
        path = self.corpus([["The baker sings.", "It rains.", "Bees dance."]])
        manifest, records = self.run_local(path, dupe_factor=1, runner={"num_shards": 9})
        self.assertLen(records, 1)
        self.assertLen(manifest["shards"], 1)
        self.assertLen(self.shard_bytes(), 1)

    def test_gzip_records_read_the_same(self):
        path = self.corpus(TENS_OF_SENTENCES)
        plain = self.run_local(path)[1]
        manifest, zipped = self.run_local(path, runner={"compression": "gzip"})
        self.assertAllEqual([r["input_ids"] for r in plain], [r["input_ids"] for r in zipped])
        size = sum(shard["bytes"] for shard in manifest["shards"])
        self.assertLess(size, manifest["counts"]["record_bytes"] / 2)

    def test_paragraphs_can_be_split(self):
        lines = [[" ".join(lines)] for lines in TENS_OF_SENTENCES]
        manifest, _ = self.run_local(self.corpus(lines), split_sentences="en")
        self.assertEqual(manifest["counts"]["sentences"], 600)

    def test_wrong_vocabularies_and_capped_masks_are_warned_of(self):
        path = self.corpus([["東京 大阪 京都 " * 5] * 10] * 3)
        with self.assertLogs(level="WARNING") as logs:
            self.run_local(path, max_predictions_per_seq=1)
        self.assertIn("pieces are <unk>", " ".join(logs.output))
        self.assertIn("masks 3.1 % of a full sequence, not 15.0 %", " ".join(logs.output))

    def test_a_corpus_of_single_words_is_an_error(self):
        with self.assertRaisesRegex(UserError, "no pair of segments"):
            self.run_local(self.corpus([["the"], ["and"]]))


class ReproducibilityTest(LocalRunnerTestCase):
    @parameterized.parameters((3, "fork"), (2, "spawn"))
    def test_bytes_do_not_depend_on_how_the_work_is_done(self, num_workers, start_method):
        path = self.corpus(make_documents(100, 12))
        self.run_local(path)
        expected = self.shard_bytes()
        with mock.patch.object(local_runner, "_BATCH_CHARACTERS", 4000):
            runner = {"num_workers": num_workers, "start_method": start_method}
            self.run_local(path, runner=runner)
        self.assertLen(expected, 4)
        self.assertEqual(self.shard_bytes(), expected)

    def test_bytes_do_not_depend_on_the_order_or_number_of_files(self):
        self.run_local(self.corpus(TENS_OF_SENTENCES))
        expected = self.shard_bytes()
        parts = [self.corpus(TENS_OF_SENTENCES[40:]), self.corpus(TENS_OF_SENTENCES[:40])]
        self.run_local(*parts)
        self.assertEqual(self.shard_bytes(), expected)

    def test_records_do_not_depend_on_the_number_of_shards(self):
        path = self.corpus(TENS_OF_SENTENCES)
        few, many = (
            [r["input_ids"] for r in self.run_local(path, runner={"num_shards": shards})[1]]
            for shards in (1, 7)
        )
        self.assertAllEqual(few, many)

    def test_seeds_duplicates_and_equal_documents_get_masks_of_their_own(self):
        path = self.corpus([TENS_OF_SENTENCES[0]] * 20)
        records = self.run_local(path, dupe_factor=5, max_seq_length=128)[1]
        prints = collections.Counter(
            hashlib.sha256(b"".join(np.asarray(r[name]).tobytes() for name in sorted(r))).digest()
            for r in records
            if r["input_mask"].all()  # A short one could get equal masks by chance.
        )
        self.assertGreater(len(prints), 100)
        self.assertEqual(max(prints.values()), 1)
        other = self.run_local(path, dupe_factor=5, max_seq_length=128, random_seed=2)[1]
        self.assertNotAllEqual(records[0]["input_ids"], other[0]["input_ids"])


if __name__ == "__main__":
    tf.test.main()
