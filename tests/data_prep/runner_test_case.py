"""A test case that runs data preparation on small corpora."""

from __future__ import annotations

import os
import tempfile

import tensorflow as tf
from absl.testing import parameterized

from albert_tf.tokenization import AlbertTokenizer
from data_prep import local_runner, record_view
from data_prep.instances import InstanceConfig
from tests.data_prep.corpora import write_corpus
from tests.tiny_vocabulary import tiny_spm_model_file


class LocalRunnerTestCase(parameterized.TestCase, tf.test.TestCase):
    """Has a directory, a corpus and a run; see run_local()."""

    def directory(self) -> str:
        """A new directory."""
        return tempfile.mkdtemp(dir=self.get_temp_dir())

    def corpus(self, documents, name="corpus.txt") -> str:
        """A file of documents."""
        return write_corpus(os.path.join(self.directory(), name), documents)

    def run_local(self, *paths, output_dir=None, spm=None, runner=None, **settings):
        """Runs and returns the manifest and the records, in order."""
        self.output_dir = output_dir or self.directory()
        settings = {"max_seq_length": 32, "dupe_factor": 2} | settings
        manifest = local_runner.run(
            InstanceConfig(**settings),
            AlbertTokenizer(spm or tiny_spm_model_file()),
            paths,
            local_runner.RunnerConfig(self.output_dir, **(runner or {})),
        )
        shards = [os.path.join(self.output_dir, shard["file"]) for shard in manifest["shards"]]
        return manifest, list(record_view.read_records(shards))

    def shard_bytes(self) -> dict[str, bytes]:
        """What the last run's shards hold, by name."""
        contents = {}
        for name in sorted(os.listdir(self.output_dir)):
            if name.endswith(".tfrecord"):
                with open(os.path.join(self.output_dir, name), "rb") as handle:
                    contents[name] = handle.read()
        return contents
