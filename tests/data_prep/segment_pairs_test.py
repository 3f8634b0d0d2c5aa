import random
import time

import hypothesis
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from data_prep.segment_pairs import make_segment_pairs

# Piece ids are unique in a test document, so a pair tells where it comes from; even ids start
# words.
WORD_STARTS = [1, 0] * 20_000


def make_document(lengths, first=10):
    sentences = []
    for length in lengths:
        sentences.append(list(range(first, first + length)))
        first += length
    return sentences


def pairs_of(lengths, max_seq_length=32, short_seq_prob=0.1, seed=0):
    return make_segment_pairs(
        make_document(lengths), WORD_STARTS, max_seq_length, short_seq_prob, random.Random(seed)
    )


class SegmentPairsTest(tf.test.TestCase):
    @hypothesis.settings(deadline=None, max_examples=200)
    @hypothesis.given(
        lengths=st.lists(st.integers(1, 80), min_size=1, max_size=12),
        max_seq_length=st.integers(8, 64),
        short_seq_prob=st.sampled_from([0.0, 0.1, 1.0]),
        seed=st.integers(0, 1000),
    )
    def test_pairs_are_true_neighbours_and_no_piece_is_unaccounted_for(
        self, lengths, max_seq_length, short_seq_prob, seed
    ):
        paired = pairs_of(lengths, max_seq_length, short_seq_prob, seed)
        used = 0
        for ids_a, ids_b, is_swapped in paired.pairs:
            self.assertNotEmpty(ids_a)
            self.assertNotEmpty(ids_b)
            self.assertLessEqual(len(ids_a) + len(ids_b), max_seq_length - 3)
            first, second = (ids_b, ids_a) if is_swapped else (ids_a, ids_b)
            for segment in (first, second):
                self.assertEqual(segment, list(range(segment[0], segment[-1] + 1)))
            self.assertLess(first[-1], second[0])
            used += len(ids_a) + len(ids_b)
        self.assertEqual(used + paired.skipped_tokens + paired.truncated_tokens, sum(lengths))
        self.assertEqual(len(paired.pairs) + paired.skipped_chunks, paired.chunks)

    def test_without_truncation_the_second_segment_goes_on_where_the_first_ends(self):
        paired = pairs_of([5] * 40, max_seq_length=13, short_seq_prob=0.0)
        self.assertEqual(paired.truncated_tokens, 0)
        for ids_a, ids_b, is_swapped in paired.pairs:
            first, second = (ids_b, ids_a) if is_swapped else (ids_a, ids_b)
            self.assertEqual(first[-1] + 1, second[0])

    def test_half_of_the_pairs_are_swapped(self):
        paired = pairs_of([6] * 4000)
        share = np.mean([pair.is_swapped for pair in paired.pairs])
        self.assertAllClose(share, 0.5, atol=0.05)

    def test_a_lone_sentence_is_split_inside_at_a_word(self):
        for seed in range(50):
            ((ids_a, ids_b, is_swapped),) = pairs_of([9], seed=seed).pairs
            second = ids_a if is_swapped else ids_b
            self.assertEqual(second[0] % 2, 0)

    def test_a_lone_word_is_skipped_and_counted(self):
        paired = make_segment_pairs([[1, 3, 5]], WORD_STARTS, 32, 0.1, random.Random(0))
        self.assertEqual(paired.pairs, [])
        self.assertEqual((paired.skipped_chunks, paired.skipped_tokens), (1, 3))

    def test_a_sentence_longer_than_the_sequence_loses_nothing(self):
        paired = pairs_of([5000], max_seq_length=64, short_seq_prob=0.0)
        self.assertEqual(paired.truncated_tokens, 0)
        self.assertLen(paired.pairs, 5000 // 60 + 1)
        tokens = [piece for a, b, _ in paired.pairs for piece in a + b]
        self.assertEqual(sorted(tokens), list(range(10, 5010)))
        self.assertEqual(pairs_of([3, 5000, 3], 64, 0.0).truncated_tokens, 0)

    def test_time_grows_no_faster_than_the_sentence(self):
        start = time.perf_counter()
        pairs_of([1000] * 3)
        short = time.perf_counter() - start
        start = time.perf_counter()
        pairs_of([30_000])
        self.assertLess(time.perf_counter() - start, 100 * short + 0.5)

    def test_truncation_takes_from_front_and_back_of_the_longer_side(self):
        fronts = []
        for seed in range(400):
            ((ids_a, ids_b, is_swapped),) = pairs_of([4, 20], 23, 0.0, seed).pairs
            short, long = (ids_b, ids_a) if is_swapped else (ids_a, ids_b)
            self.assertLen(short, 4)
            self.assertLen(long, 16)
            fronts.append(long[0] - 14)
        self.assertAllClose(np.mean(fronts), 2, atol=0.2)
        self.assertAllClose(np.var(fronts), 1, atol=0.25)

    def test_equal_sides_are_shortened_alike(self):
        ((ids_a, ids_b, _),) = pairs_of([20, 20], 33, 0.0).pairs
        self.assertEqual({len(ids_a), len(ids_b)}, {15})

    def test_short_sequences_follow_their_probability_within_a_document(self):
        def lengths(probability):
            paired = pairs_of([4] * 8000, 128, probability)
            return np.array([len(a) + len(b) for a, b, _ in paired.pairs])

        self.assertAllGreater(lengths(0.0)[:-1], 124)
        tenth = lengths(0.1)
        self.assertAllClose(np.sum(tenth[tenth < 120]) / np.sum(tenth), 0.09, atol=0.04)
        spread = np.histogram(lengths(1.0), [0, 20, 50, 80, 110, 128])[0]
        self.assertAllGreater(spread, 10)

    def test_the_generator_decides_everything(self):
        lengths = [7, 3, 12, 5] * 20
        self.assertEqual(pairs_of(lengths, seed=1), pairs_of(lengths, seed=1))
        self.assertNotEqual(pairs_of(lengths, seed=1), pairs_of(lengths, seed=2))


if __name__ == "__main__":
    tf.test.main()
