import json
import os

import tensorflow as tf

from quickstart import corpus
from tests.shared_data import TEST_DATA


class CorpusTest(tf.test.TestCase):
    def test_reviews_come_without_html_breaks(self):
        reviews = corpus.read_reviews()
        self.assertLen(reviews, 33_530)
        self.assertEqual({review.source for review in reviews}, {"imdb", "rotten_tomatoes"})
        self.assertEqual({review.label for review in reviews}, {"negative", "positive"})
        self.assertFalse(any("<br" in review.text for review in reviews))

    def test_about_a_tenth_is_held_out_by_content_alone(self):
        texts = [f"text number {i}" for i in range(5000)]
        share = sum(map(corpus.is_held_out, texts)) / len(texts)
        self.assertBetween(share, 0.08, 0.12)

    def test_labelled_and_unlabelled_text_are_held_out_alike(self):
        directory = self.get_temp_dir()
        reviews = [corpus.Review(f"It was film {i}. Bad.", "negative", "imdb") for i in range(100)]
        corpus.write_sentiment(reviews, directory)
        counts = corpus.write_documents(corpus.review_documents(reviews), directory)
        with open(os.path.join(directory, "dev_imdb.jsonl")) as handle:
            held_out = [json.loads(line)["text"] for line in handle]
        with open(os.path.join(directory, "heldout.txt")) as handle:
            documents = [" ".join(text.split("\n")) for text in handle.read().split("\n\n") if text]
        self.assertEqual(documents, held_out)
        self.assertEqual(counts, (100 - len(held_out), len(held_out)))

    def test_the_users_own_files_are_split_into_sentences(self):
        documents = list(corpus.read_documents([str(TEST_DATA / "village.txt")], "en"))
        self.assertGreater(len(documents), 1)
        for document in documents:
            self.assertNotEmpty(document.sentences)


if __name__ == "__main__":
    tf.test.main()
