import glob
import itertools
import json
import lzma
import os
import unicodedata

import numpy as np
import tensorflow as tf
from absl.testing import parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf import text_ops
from albert_tf.data import packing
from albert_tf.tokenization import AlbertTokenizer
from tests.shared_data import shared_path
from tests.tiny_vocabulary import tiny_spm_model_file

AWKWARD = (
    "",
    "  two   spaces\tand a tab ",
    "The CAFÉ's naïve résumé: 10,000 ½ ﬁ … ㎏ ①",
    "ΟΔΥΣΣΕΥΣ ΣΑΣ. Σ İstanbul Straße ǅ",
    "[CLS] a [SEP] [MASK] <pad> <unk>",
    "nul\x00inside \x1c\x1d\x85\u00a0\u2028\u3000 end",
    "東京 日本語 हिन्दी ไทย עברית العربية 👩‍👩‍👧 e\u0301",
    "\u0301 leading mark, \ufeff bom, \u200d joiner, \u00ad hyphen",
)


def ids_in_graph(tokenizer, texts):
    encoder = text_ops.TextEncoder(tokenizer)
    return tf.function(encoder)(tf.constant(list(texts))).to_list()


class TextEncoderTest(parameterized.TestCase, tf.test.TestCase):
    """The graph gives the ids that the Python tokenizer gives."""

    @parameterized.product(lower=(True, False), accents=(True, False))
    def test_awkward_texts(self, lower, accents):
        tokenizer = AlbertTokenizer(tiny_spm_model_file(), lower, accents)
        self.assertEqual(ids_in_graph(tokenizer, AWKWARD), tokenizer.encode_batch(AWKWARD))

    def test_any_text(self):
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        encode = tf.function(
            text_ops.TextEncoder(tokenizer), input_signature=[tf.TensorSpec([None], tf.string)]
        )

        @settings(max_examples=150, deadline=None)
        @given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
        def check(texts):
            self.assertEqual(
                encode(tf.constant(texts)).to_list(), tokenizer.encode_batch(texts), repr(texts)
            )

        check()

    def test_text_never_yields_control_ids(self):
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        for ids in ids_in_graph(tokenizer, ["[CLS] [SEP] [MASK]", "x[CLS]y <pad>"]):
            self.assertNoCommonElements(ids, [0, 2, 3, 4])

    @parameterized.parameters("albert_en_real.jsonl", "albert_en_made.jsonl")
    def test_real_texts_with_the_released_vocabulary(self, name):
        tokenizer = AlbertTokenizer(shared_path("data/vocab/spiece.model"))
        with open(shared_path(f"data/tokenizer_golden/{name}"), encoding="utf-8") as handle:
            rows = [json.loads(line) for line in handle]
        texts = [row["text"] for row in rows]
        self.assertEqual(ids_in_graph(tokenizer, texts), tokenizer.encode_batch(texts))
        self.assertEqual(tokenizer.encode_batch(texts), [row["pre_ids"] for row in rows])

    def test_nasty_files(self):
        tokenizer = AlbertTokenizer(shared_path("data/vocab/spiece.model"))
        directory = shared_path("data/nasty/made")
        for name in sorted(os.listdir(directory)):
            with open(os.path.join(directory, name), "rb") as handle:
                content = handle.read()
            if name.endswith(".xz") or len(content) > 20_000:
                continue
            texts = content.decode("utf-8", "replace").split("\n")
            self.assertEqual(ids_in_graph(tokenizer, texts), tokenizer.encode_batch(texts), name)

    @parameterized.parameters("nasty/real/*.txt*", "nasty/real/*.html", "corpus/*/*.txt*")
    def test_real_files_in_any_language(self, pattern):
        tokenizer = AlbertTokenizer(shared_path("data/vocab/spiece.model"))
        paths = glob.glob(os.path.join(shared_path("data"), pattern))
        self.assertNotEmpty(paths)
        for path in sorted(paths):
            with (lzma.open if path.endswith(".xz") else open)(path, "rb") as handle:
                lines = [line[:2000] for line in itertools.islice(handle, 300)]
            texts = [line.decode("utf-8", "replace") for line in lines]
            self.assertEqual(ids_in_graph(tokenizer, texts), tokenizer.encode_batch(texts), path)

    def test_bytes_that_are_not_utf8_become_replacement_characters(self):
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        raw = [b"caf\xe9 bar", b"\xff\xfe"]
        decoded = [text.decode("utf-8", "replace") for text in raw]
        encoder = text_ops.TextEncoder(tokenizer)
        self.assertEqual(encoder(tf.constant(raw)).to_list(), tokenizer.encode_batch(decoded))


class NormalizationTest(tf.test.TestCase):
    def test_every_character(self):
        characters = [
            c for c in map(chr, range(0x30000)) if unicodedata.category(c) not in ("Cs", "Co")
        ]
        texts = [f"a{c}b" for c in characters if c != "Σ"]
        tokenizer = AlbertTokenizer(tiny_spm_model_file())
        normalize = text_ops.TextNormalizer(do_lower_case=True, keep_accents=False)
        graph = [text.decode() for text in normalize(tf.constant(texts)).numpy()]
        self.assertEqual(graph, [tokenizer.normalize(text) for text in texts])


class PackTest(parameterized.TestCase, tf.test.TestCase):
    """The graph packs as the Python function does."""

    @settings(max_examples=60, deadline=None)
    @given(
        rows=st.lists(
            st.tuples(
                st.lists(st.integers(5, 99), max_size=20), st.lists(st.integers(5, 99), max_size=20)
            ),
            min_size=1,
            max_size=5,
        ),
        length=st.integers(4, 16),
        truncation=st.sampled_from(packing.TRUNCATIONS),
        pairs=st.booleans(),
    )
    def test_equals_the_python_function(self, rows, length, truncation, pairs):
        first, second = zip(*rows, strict=True)
        ragged = [tf.ragged.constant(ids, tf.int32, ragged_rank=1) for ids in (first, second)]
        graph = text_ops.pack(*ragged[: 1 + pairs], max_seq_length=length, truncation=truncation)
        python = [
            packing.pack(a, b if pairs else None, max_seq_length=length, truncation=truncation)
            for a, b in rows
        ]
        for in_graph, in_python in zip(graph, zip(*python, strict=True), strict=True):
            self.assertAllEqual(in_graph, np.stack(in_python))

    def test_a_long_text_keeps_its_first_quarter_and_its_end(self):
        ids, mask, segments = packing.pack(range(10, 30), max_seq_length=10, truncation="head_tail")
        self.assertAllEqual(ids, [2, 10, 11, 24, 25, 26, 27, 28, 29, 3])
        self.assertAllEqual(mask, [1] * 10)
        self.assertAllEqual(segments, [0] * 10)

    def test_pairs_drop_from_the_longer_text(self):
        ids, mask, segments = packing.pack([10] * 9, [20] * 2, max_seq_length=9)
        self.assertAllEqual(ids, [2, 10, 10, 10, 10, 3, 20, 20, 3])
        self.assertAllEqual(segments, [0] * 6 + [1] * 3)
        ids, mask, _ = packing.pack([10], [20], max_seq_length=7)
        self.assertAllEqual(ids, [2, 10, 3, 20, 3, 0, 0])
        self.assertAllEqual(mask, [1, 1, 1, 1, 1, 0, 0])


if __name__ == "__main__":
    tf.test.main()
