import glob
import json
import os
import shutil
from unittest import mock

import tensorflow as tf
from absl.testing import parameterized

from albert_tf.data.record_files import inspect_files
from albert_tf.errors import UserError
from albert_tf.tokenization import AlbertTokenizer
from data_prep import local_runner
from tests.data_prep.corpora import make_documents
from tests.data_prep.runner_test_case import LocalRunnerTestCase
from tests.shared_data import TEST_DATA

TENS_OF_SENTENCES = make_documents(60, 10)
LONE_SENTENCES = make_documents(200, 1)


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
        os.mkdir(os.path.join(interrupted, ".unfinished", "spill.x"))
        for name in (".unfinished/spill.x/00000.77", "data-00000-of-00003.tfrecord.unfinished"):
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

    def test_a_failed_run_gives_the_disk_back(self):
        with (
            mock.patch.object(local_runner, "write_shard", side_effect=OSError("disk is full")),
            self.assertRaisesRegex(UserError, "cannot be written: .*disk is full"),
        ):
            self.run_local(self.corpus(TENS_OF_SENTENCES))
        marker = os.path.join(self.output_dir, ".unfinished")
        self.assertEqual(os.listdir(marker), ["manifest.json"])

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
