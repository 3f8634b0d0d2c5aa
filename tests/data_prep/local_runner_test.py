import collections
import glob
import hashlib
import itertools
import json
import os
import shutil
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.data.record_files import inspect_files
from albert_tf.errors import UserError
from albert_tf.tokenization import MASK_ID, AlbertTokenizer
from data_prep import local_runner, record_view
from tests.data_prep.corpora import make_documents
from tests.data_prep.runner_test_case import LocalRunnerTestCase
from tests.shared_data import TEST_DATA
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


class OutputDirectoryTest(LocalRunnerTestCase):
    def test_a_finished_run_is_not_done_again(self):
        path = self.corpus(TENS_OF_SENTENCES)
        first, _ = self.run_local(path)
        times = self.modification_times()
        second, _ = self.run_local(path, output_dir=self.output_dir)
        self.assertEqual(first, second)
        self.assertEqual(self.modification_times(), times)

    def modification_times(self) -> dict[str, int]:
        return {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(self.output_dir)}

    def test_other_settings_or_text_are_refused(self):
        path = self.corpus(TENS_OF_SENTENCES)
        self.run_local(path)
        with self.assertRaisesRegex(UserError, "--max_seq_length is 32 there, 64 here"):
            self.run_local(path, output_dir=self.output_dir, max_seq_length=64)
        with self.assertRaisesRegex(UserError, "the input text"):
            self.run_local(self.corpus(LONE_SENTENCES), output_dir=self.output_dir)
        with self.assertRaisesRegex(UserError, "--num_shards is 4 there, 5 here"):
            self.run_local(path, output_dir=self.output_dir, runner={"num_shards": 5})

    def test_a_damaged_shard_is_made_again(self):
        path = self.corpus(TENS_OF_SENTENCES)
        self.run_local(path)
        expected = self.shard_bytes()
        shard = os.path.join(self.output_dir, "data-00001-of-00004.tfrecord")
        with open(shard, "r+b") as handle:
            handle.truncate(os.path.getsize(shard) - 10)
        self.run_local(path, output_dir=self.output_dir)
        self.assertEqual(self.shard_bytes(), expected)

    def test_leftovers_of_an_interrupted_run_are_cleaned(self):
        path = self.corpus(TENS_OF_SENTENCES)
        self.run_local(path)
        expected, finished = self.shard_bytes(), self.output_dir
        interrupted = self.directory()
        self.interrupt(path, interrupted)
        for name in (".unfinished/spill/00000.77", "data-00000-of-00003.tfrecord.unfinished"):
            with open(os.path.join(interrupted, name), "wb") as handle:
                handle.write(b"half a record")
        shutil.copy(os.path.join(finished, "data-00000-of-00004.tfrecord"), interrupted)
        self.run_local(path, output_dir=interrupted)
        self.assertEqual(self.shard_bytes(), expected)
        self.assertCountEqual(os.listdir(interrupted), os.listdir(finished))

    def interrupt(self, corpus: str, output_dir: str):
        """Leaves `output_dir` as a run does that is killed while it works."""
        with (
            mock.patch.object(local_runner, "_make_records", side_effect=KeyboardInterrupt),
            self.assertRaises(KeyboardInterrupt),
        ):
            self.run_local(corpus, output_dir=output_dir)

    def test_a_run_killed_at_its_very_end_is_finished(self):
        path = self.corpus(TENS_OF_SENTENCES)
        with mock.patch.object(tf.io.gfile, "rmtree"):
            self.run_local(path)
        times = self.modification_times()
        del times[".unfinished"]
        self.run_local(path, output_dir=self.output_dir)
        self.assertEqual(self.modification_times(), times)

    def test_shards_of_an_unfinished_run_are_not_trained_on(self):
        path = self.corpus(TENS_OF_SENTENCES)
        self.run_local(path)
        shards = glob.glob(os.path.join(self.output_dir, "*.tfrecord"))
        self.assertLen(inspect_files(shards, "--input_file").files, 4)
        self.interrupt(path, unfinished := self.directory())
        shards = [shutil.copy(shard, unfinished) for shard in shards]
        with self.assertRaisesRegex(
            UserError, f"not finished: --input_file={unfinished}: .*create_pretraining_data"
        ):
            inspect_files(shards, "--input_file")

    @parameterized.parameters(
        "unfinished/thesis.txt", ".unfinished/thesis.txt", ".unfinished/manifest.json"
    )
    def test_directories_of_the_user_are_never_deleted(self, name):
        output_dir = self.directory()
        os.mkdir(os.path.dirname(precious := os.path.join(output_dir, name)))
        with open(precious, "w") as handle:
            handle.write('{"years": 3}')
        corpus = self.corpus(TENS_OF_SENTENCES)
        if name.startswith("."):
            with self.assertRaisesRegex(UserError, f"{output_dir}/.unfinished"):
                self.run_local(corpus, output_dir=output_dir)
        else:
            self.run_local(corpus, output_dir=output_dir)
        self.assertTrue(os.path.exists(precious))

    def test_a_manifest_of_another_program_is_left_alone(self):
        output_dir = self.directory()
        with open(manifest := os.path.join(output_dir, "manifest.json"), "w") as handle:
            handle.write('{"settings": [1], "input": "x"}')
        with self.assertRaisesRegex(UserError, "no manifest of ours"):
            self.run_local(self.corpus(TENS_OF_SENTENCES), output_dir=output_dir)
        self.assertTrue(os.path.exists(manifest))

    def test_records_of_unknown_origin_are_left_alone(self):
        output_dir = self.directory()
        foreign = os.path.join(output_dir, "data-00000-of-00001.tfrecord")
        with open(foreign, "wb") as handle:
            handle.write(b"precious")
        with self.assertRaisesRegex(
            UserError, "holds data-00000-of-00001.tfrecord but no manifest"
        ):
            self.run_local(self.corpus(TENS_OF_SENTENCES), output_dir=output_dir)
        self.assertTrue(os.path.exists(foreign))

    def test_a_failed_run_leaves_nothing_under_a_final_name(self):
        bad = os.path.join(self.directory(), "a.txt.gz")
        with open(bad, "wb") as handle:
            handle.write(b"no gzip")
        with self.assertRaises(UserError):
            self.run_local(self.corpus(TENS_OF_SENTENCES), bad, runner={"num_workers": 2})
        self.assertEqual(os.listdir(self.output_dir), [".unfinished"])

    def test_the_manifest_describes_the_directory(self):
        self.run_local(str(TEST_DATA / "village.txt"))
        with open(os.path.join(self.output_dir, "manifest.json"), encoding="utf-8") as handle:
            manifest = json.load(handle)
        self.assertEqual(manifest["settings"]["random_seed"], 12345)
        self.assertEqual(manifest["vocabulary"]["size"], 300)
        self.assertEqual(manifest["counts"]["documents"], 12)
        self.assertEqual(manifest["counts"]["sentences"], 72)
        self.assertAllClose(manifest["statistics"]["mask_rate"], 0.15, atol=0.01)
        self.assertEqual(
            sum(shard["records"] for shard in manifest["shards"]), manifest["counts"]["records"]
        )
        directory = AlbertTokenizer.from_directory(self.output_dir, "--input_file")
        self.assertEqual(directory.vocab_size, 300)


if __name__ == "__main__":
    tf.test.main()
