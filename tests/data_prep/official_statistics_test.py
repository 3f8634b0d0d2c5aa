import collections
import json

import numpy as np
import tensorflow as tf

from albert_tf.tokenization import MASK_ID
from data_prep import record_view
from tests.data_prep.runner_test_case import LocalRunnerTestCase
from tests.shared_data import shared_path


class OfficialStatisticsTest(LocalRunnerTestCase):
    """Against records of the official code, within the tolerances stated for them.

    With half of their duplicates, for speed. Not compared: what the official one-sentence chunks
    change by taking random documents, namely the label mean and the very short sequences.
    """

    def test_statistics_are_those_of_the_official_code(self):
        with open(shared_path("golden/data_prep/statistics.json"), encoding="utf-8") as handle:
            official = json.load(handle)["default_dupe40"]
        _, records = self.run_local(
            shared_path("golden/data_prep/text.txt"),
            spm=shared_path("golden/data_prep/spm.model"),
            max_seq_length=128,
            max_predictions_per_seq=20,
            dupe_factor=20,
        )
        lengths = np.array([r["input_mask"].sum() for r in records])
        found = record_view.statistics(iter(records))
        self.assertAllClose(found["mask_rate"], official["mask_rate_of_real_tokens"], atol=0.001)
        for ours, theirs in (
            ("became_mask", "mask"),
            ("kept", "keep"),
            ("became_random", "random"),
        ):
            self.assertAllClose(found[ours], official["replacement"][theirs], atol=0.004)
        self.assertAllClose(found["padding_share"], official["share_of_padding"], atol=0.03)
        short = np.mean(lengths < 116)
        self.assertAllClose(short, official["share_length_below_116"], atol=0.03)
        self.assertAllClose(np.mean(lengths == 128), official["share_full_length"], atol=0.03)
        lengths_b = np.array([r["segment_ids"].sum() - 1 for r in records])
        self.assertAllClose(np.mean(lengths_b), official["length_b"]["mean"], atol=2)
        self.assertAllClose(np.mean(lengths - lengths_b - 3), official["length_a"]["mean"], atol=2)
        self.assertAllClose(found["swapped_share"], 0.5, atol=0.02)

        runs, masked_words, words = collections.Counter(), 0, 0
        for record in records:
            is_masked = _masked_words(record)
            words += len(is_masked)
            masked_words += sum(is_masked)
            edges = np.flatnonzero(np.diff([0, *is_masked, 0]))
            runs.update(edges[1::2] - edges[::2])
        self.assertAllClose(masked_words / words, official["words_masked_share"], atol=0.003)
        for length in (1, 2, 3):
            share = official["masked_word_run_length"][str(length)]
            self.assertAllClose(runs[length] / sum(runs.values()), share, atol=0.01)


def _masked_words(record) -> list[bool]:
    """Whether each word, as the golden statistics count words, is masked throughout."""
    positions = set(record_view.predictions(record)[0].tolist())
    ids = record_view.original_ids(record)
    words = []
    for position, boundary in enumerate(record["token_boundary"][: len(ids)]):
        if ids[position] > MASK_ID:
            if boundary or not words:
                words.append(True)
            words[-1] = words[-1] and position in positions
    return words


if __name__ == "__main__":
    tf.test.main()
