"""A small SentencePiece model for tests, trained on tests/data rather than kept as a binary."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile

from data_prep import vocabulary
from data_prep.documents import ReadingReport, read_documents
from tests.shared_data import TEST_DATA

VOCAB_SIZE = 300


@functools.cache
def tiny_spm_model_file() -> str:
    """Path of a lower-case model of VOCAB_SIZE pieces, trained once a process."""
    directory = tempfile.mkdtemp(prefix="tiny_vocabulary.")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    documents = read_documents([str(TEST_DATA / "village.txt")], ReadingReport())
    vocabulary.train(documents, vocabulary.VocabularyConfig(vocab_size=VOCAB_SIZE), directory)
    return os.path.join(directory, "spm.model")
