import collections
import itertools
import random

import hypothesis
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from albert_tf.tokenization import CLS_ID, MASK_ID, SEP_ID, UNK_ID
from data_prep.masking import MaskingConfig, mask_words

VOCAB_SIZE = 1000


def make_sequence(words_a, words_b):
    """Ids and boundaries of two segments, each given by the lengths of its words."""
    ids, boundaries = [CLS_ID], [1]
    piece = 10
    for words in (words_a, words_b):
        for length in words:
            ids += range(piece, piece + length)
            boundaries += [1] + [0] * (length - 1)
            piece += length
        ids.append(SEP_ID)
        boundaries.append(1)
    return ids, boundaries


def word_spans(boundaries):
    starts = [i for i, boundary in enumerate(boundaries) if boundary] + [len(boundaries)]
    return [range(start, end) for start, end in itertools.pairwise(starts)]


def config(**settings):
    settings = {"vocab_size": VOCAB_SIZE, "max_predictions_per_seq": 20} | settings
    return MaskingConfig(**settings)


class MaskWordsTest(tf.test.TestCase):
    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(
        words_a=st.lists(st.integers(1, 6), min_size=1, max_size=40),
        words_b=st.lists(st.integers(1, 6), min_size=1, max_size=40),
        max_predictions=st.integers(1, 40),
        masked_lm_prob=st.floats(0.01, 0.9),
        ngram=st.integers(1, 5),
        unknown=st.integers(0, 3),
        seed=st.integers(0, 1000),
    )
    def test_masks_keep_their_rules(
        self, words_a, words_b, max_predictions, masked_lm_prob, ngram, unknown, seed
    ):
        ids, boundaries = make_sequence(words_a, words_b)
        for position in random.Random(seed).sample(range(len(ids)), min(unknown, len(ids))):
            if ids[position] not in (CLS_ID, SEP_ID):
                ids[position] = UNK_ID
        settings = config(
            max_predictions_per_seq=max_predictions, masked_lm_prob=masked_lm_prob, ngram=ngram
        )
        masked = mask_words(ids, boundaries, settings, random.Random(seed))

        budget = min(max_predictions, max(1, round(masked_lm_prob * len(ids))))
        self.assertLessEqual(len(masked.positions), budget)
        self.assertEqual(masked.positions, sorted(set(masked.positions)))
        rebuilt = list(masked.input_ids)
        for position, label in zip(masked.positions, masked.labels, strict=True):
            self.assertGreater(label, MASK_ID)
            if masked.input_ids[position] != MASK_ID:
                self.assertBetween(masked.input_ids[position], MASK_ID + 1, VOCAB_SIZE - 1)
            rebuilt[position] = label
        self.assertEqual(rebuilt, ids)

        maskable = [w for w in word_spans(boundaries) if min(ids[i] for i in w) > MASK_ID]
        chosen = set(masked.positions)
        self.assertEqual(bool(chosen), bool(maskable))
        if any(len(word) <= budget for word in maskable):
            for word in word_spans(boundaries):
                self.assertIn(len(chosen.intersection(word)), (0, len(word)))

    def histogram_of_first_runs(self, **settings):
        """Run lengths in words when the budget leaves room for exactly one run."""
        ids, boundaries = make_sequence([1] * 500, [1] * 500)
        counts = collections.Counter()
        for seed in range(3000):
            generator = random.Random(seed)
            # A budget of 3 is used up by a run of three, else by two runs or three.
            masked = mask_words(
                ids, boundaries, config(max_predictions_per_seq=3, **settings), generator
            )
            runs = np.split(masked.positions, np.flatnonzero(np.diff(masked.positions) > 1) + 1)
            counts.update([tuple(sorted(map(len, runs)))])
        return counts

    def test_run_lengths_follow_the_paper(self):
        counts = self.histogram_of_first_runs()
        # One draw of 3 fills the budget: probability 2/11. A first 2 leaves a run of 1; a first 1
        # (6/11) leaves two words: a run of 2 if the next draw is 2 or 3 (5/11), else 1 + 1.
        expected = {(3,): 2 / 11, (1, 2): 3 / 11 + 6 / 11 * 5 / 11, (1, 1, 1): (6 / 11) ** 2}
        for runs, probability in expected.items():
            self.assertAllClose(counts[runs] / 3000, probability, atol=0.03)

    def test_longer_runs_can_be_favoured(self):
        counts = self.histogram_of_first_runs(favor_shorter_ngram=False)
        self.assertAllClose(counts[(3,)] / 3000, 6 / 11, atol=0.03)

    def test_single_words_are_masked_with_ngram_1(self):
        counts = self.histogram_of_first_runs(ngram=1)
        self.assertGreater(counts[(1, 1, 1)] / 3000, 0.98)

    def test_runs_never_cross_sep(self):
        ids, boundaries = make_sequence([1] * 4, [1] * 4)
        settings = config(max_predictions_per_seq=3, masked_lm_prob=0.9, favor_shorter_ngram=False)
        straddling = 0
        for seed in range(3000):
            positions = mask_words(ids, boundaries, settings, random.Random(seed)).positions
            self.assertNotIn(5, positions)
            straddling += positions in ([3, 4, 6], [4, 6, 7])
        # Separate runs meet at [SEP] in 5 of 100 draws; runs that stepped over it would in 18.
        self.assertLess(straddling / 3000, 0.08)

    def test_eighty_ten_ten_and_uniform_replacements(self):
        ids, boundaries = make_sequence([2] * 30, [1] * 60)
        outcomes, replacements = collections.Counter(), []
        for seed in range(4000):
            masked = mask_words(ids, boundaries, config(), random.Random(seed))
            for position, label in zip(masked.positions, masked.labels, strict=True):
                piece = masked.input_ids[position]
                if piece not in (MASK_ID, label):
                    replacements.append(piece)
                outcomes[
                    "mask" if piece == MASK_ID else "keep" if piece == label else "random"
                ] += 1
        total = sum(outcomes.values())
        for outcome, share in {"mask": 0.8, "keep": 0.1, "random": 0.1}.items():
            self.assertAllClose(outcomes[outcome] / total, share, atol=0.006)
        self.assertAllGreater(replacements, MASK_ID)
        self.assertAllClose(np.mean(replacements), (5 + 999) / 2, atol=15)

    def test_every_word_is_masked_equally_often(self):
        ids, boundaries = make_sequence([1] * 20, [1] * 20)
        counts = np.zeros(len(ids))
        for seed in range(6000):
            counts[mask_words(ids, boundaries, config(ngram=1), random.Random(seed)).positions] += 1
        self.assertAllEqual(counts[[0, 21, 42]], [0, 0, 0])
        self.assertAllClose(np.delete(counts, [0, 21, 42]) / 6000, np.full(40, 6 / 40), atol=0.02)

    def test_a_word_longer_than_the_budget_is_masked_in_part(self):
        ids, boundaries = make_sequence([60], [50])
        masked = mask_words(ids, boundaries, config(max_predictions_per_seq=8), random.Random(0))
        first = masked.positions[0]
        self.assertEqual(masked.positions, list(range(first, first + 8)))

    def test_pieces_can_be_masked_one_by_one(self):
        ids, boundaries = make_sequence([4] * 10, [4] * 10)
        split_words = 0
        for seed in range(50):
            settings = config(do_whole_word_mask=False, ngram=1)
            chosen = set(mask_words(ids, boundaries, settings, random.Random(seed)).positions)
            split_words += sum(
                0 < len(chosen.intersection(word)) < len(word) for word in word_spans(boundaries)
            )
        self.assertGreater(split_words, 100)


if __name__ == "__main__":
    tf.test.main()
