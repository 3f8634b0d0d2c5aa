import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.models import AlbertClassifier, AlbertEncoder, AlbertPretrainer
from tests.tiny_models import SEQ_LENGTH, pretraining_batch, tiny_config


class ModelsTest(parameterized.TestCase, tf.test.TestCase):
    def test_encoder_outputs_have_the_documented_shapes(self):
        encoder = AlbertEncoder(tiny_config())
        outputs = encoder(pretraining_batch(3), return_all_layers=True)
        self.assertEqual(outputs["sequence_output"].shape, [3, SEQ_LENGTH, 32])
        self.assertEqual(outputs["pooled_output"].shape, [3, 32])
        self.assertLen(outputs["all_layer_outputs"], 2)
        self.assertAllEqual(outputs["all_layer_outputs"][-1], outputs["sequence_output"])

    @parameterized.parameters(False, True)
    def test_output_positions_give_those_outputs_and_their_gradients(self, training):
        encoder = AlbertEncoder(tiny_config(inner_group_num=2))
        batch = pretraining_batch(3)
        positions = tf.constant([[0, 5, 2], [0, 0, 15], [0, 1, 1]])

        def run(output_positions):
            with tf.GradientTape() as tape:
                outputs = encoder(batch, training=training, output_positions=output_positions)
                wanted = outputs["sequence_output"]
                if output_positions is None:
                    wanted = tf.gather(wanted, positions, batch_dims=1)
                loss = tf.reduce_sum(wanted**3) + tf.reduce_sum(outputs["pooled_output"])
            gradients = tape.gradient(loss, encoder.trainable_variables)
            return wanted, [tf.convert_to_tensor(gradient) for gradient in gradients]

        expected, actual = run(None), run(positions)
        self.assertEqual(actual[0].shape, [3, 3, 32])
        self.assertAllClose(expected[0], actual[0], atol=1e-5)
        for a, b in zip(expected[1], actual[1], strict=True):
            self.assertAllClose(a, b, atol=1e-3, rtol=1e-4)

    def test_missing_mask_means_ones_and_missing_segments_zeros(self):
        encoder = AlbertEncoder(tiny_config())
        ids = pretraining_batch(2)["input_ids"]
        full = {
            "input_ids": ids,
            "input_mask": tf.ones_like(ids),
            "segment_ids": tf.zeros_like(ids),
        }
        self.assertAllEqual(
            encoder({"input_ids": ids})["sequence_output"], encoder(full)["sequence_output"]
        )

    def test_masked_positions_do_not_change_the_others(self):
        encoder = AlbertEncoder(tiny_config())
        batch = pretraining_batch(1)
        mask = np.ones([1, SEQ_LENGTH], np.int32)
        mask[:, 12:] = 0
        other_ids = batch["input_ids"].numpy()
        other_ids[:, 12:] = 0
        a = encoder({**batch, "input_mask": mask})["sequence_output"][:, :12]
        b = encoder({**batch, "input_mask": mask, "input_ids": other_ids})["sequence_output"]
        self.assertAllClose(a, b[:, :12], atol=1e-6)

    def test_a_row_that_masks_everything_is_finite(self):
        batch = {**pretraining_batch(1), "input_mask": np.zeros([1, SEQ_LENGTH], np.int32)}
        for dtype in ("float32", "bfloat16"):
            outputs = AlbertEncoder(tiny_config(), dtype)(batch)
            self.assertAllInRange(outputs["pooled_output"], -1.0, 1.0)

    def test_the_masked_lm_head_uses_the_embedding_table(self):
        pretrainer = AlbertPretrainer(tiny_config())
        batch = pretraining_batch(2)
        table = pretrainer.encoder.embeddings.word_embeddings
        before = pretrainer(batch)["masked_lm_logits"]
        unused = next(i for i in range(5, 300) if i not in batch["input_ids"].numpy())
        table.assign(tf.tensor_scatter_nd_update(table, [[unused]], tf.ones([1, 16])))
        after = pretrainer(batch)["masked_lm_logits"]
        changed = np.any(before.numpy() != after.numpy(), axis=(0, 1))
        self.assertAllEqual(np.flatnonzero(changed), [unused])

    def test_training_is_random_only_through_the_seed(self):
        model = AlbertClassifier(tiny_config(hidden_dropout_prob=0.2), 3)
        batch = pretraining_batch(4)

        def logits(seed):
            return model(batch, training=True, dropout_seed=tf.constant(seed))["logits"].numpy()

        self.assertAllEqual(logits([1, 2]), logits([1, 2]))
        self.assertNotAllClose(logits([1, 2]), logits([1, 3]))
        self.assertAllEqual(model(batch)["logits"], model(batch)["logits"])

    def test_the_seed_decides_the_initial_weights(self):
        config = tiny_config()
        for a, b, c in zip(
            AlbertPretrainer(config, seed=1).weights,
            AlbertPretrainer(config, seed=1).weights,
            AlbertPretrainer(config, seed=2).weights,
            strict=True,
        ):
            self.assertAllEqual(a, b)
            if "kernel" in a.name or "embeddings/word" in a.name:
                self.assertNotAllClose(a, c)

    @parameterized.parameters("float32", "bfloat16")
    def test_the_pretrainer_compiles_under_xla_with_equal_numbers(self, dtype):
        pretrainer = AlbertPretrainer(tiny_config(), dtype)
        batch = pretraining_batch(2)
        plain = pretrainer(batch)["masked_lm_logits"]
        compiled = tf.function(pretrainer, jit_compile=True)(batch)["masked_lm_logits"]
        self.assertEqual(compiled.dtype, tf.float32)
        self.assertAllClose(plain, compiled, atol=1e-5 if dtype == "float32" else 2e-2)

    def test_from_config_makes_an_equal_model(self):
        model = AlbertClassifier(tiny_config(), 3, classifier_dropout=0.2, seed=5)
        twin = AlbertClassifier.from_config(model.get_config())
        batch = pretraining_batch(2)
        self.assertAllEqual(model(batch)["logits"], twin(batch)["logits"])
        self.assertEqual(twin.classifier_dropout, 0.2)

    def test_sequences_longer_than_the_positions_are_refused(self):
        with self.assertRaisesRegex(ValueError, "max_position_embeddings 32"):
            AlbertEncoder(tiny_config())({"input_ids": tf.zeros([1, 33], tf.int32)})


if __name__ == "__main__":
    tf.test.main()
