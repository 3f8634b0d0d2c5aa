import os

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.checkpoint_conversion.tf1 import load_tf1_checkpoint
from albert_tf.checkpoint_conversion.tf1_names import variable_map
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertPretrainer
from albert_tf.tasks.pretraining import PretrainingTask
from tests.shared_data import shared_path
from tests.tiny_models import tiny_config


def load_golden(name: str) -> tuple[PretrainingTask, np.lib.npyio.NpzFile]:
    directory = shared_path(f"golden/{name}")
    config = AlbertConfig.from_json_file(os.path.join(directory, "albert_config.json"))
    task = PretrainingTask(config)
    load_tf1_checkpoint(task.model, tf.train.latest_checkpoint(directory))
    return task, np.load(os.path.join(directory, "forward.npz"))


def inputs_of(golden: np.lib.npyio.NpzFile) -> dict[str, tf.Tensor]:
    return {
        key.removeprefix("input/"): tf.constant(golden[key])
        for key in golden
        if key.startswith("input/")
    }


class Tf1GoldenTest(parameterized.TestCase, tf.test.TestCase):
    """Numbers that the official code computed from its own checkpoints."""

    @parameterized.product(
        name=("tf1_base", "tf1_groups", "tf1_inner", "tf1_ehsame", "tf1_relu"),
        training=(False, True),  # plain and fused operations; the goldens have no dropout
    )
    def test_outputs_losses_and_gradients_equal_the_official_ones(self, name, training):
        task, golden = load_golden(name)
        batch = inputs_of(golden)
        layers = task.model.encoder(batch, return_all_layers=True)
        self.assertAllClose(
            layers["all_layer_outputs"], golden["output/all_encoder_layers"], atol=2e-5
        )
        self.assertAllClose(layers["pooled_output"], golden["output/pooled_output"], atol=2e-5)

        with tf.GradientTape() as tape:
            outputs = task.model(batch, training=training)
            losses = {
                key: ratio.total / (ratio.weight + ratio.epsilon)
                for key, ratio in task.losses(batch, outputs).items()
            }
            total = tf.add_n(list(losses.values()))
        log_probs = tf.nn.log_softmax(outputs["masked_lm_logits"])
        log_probs = tf.reshape(log_probs, [-1, task.model.config.vocab_size])
        self.assertAllClose(log_probs, golden["output/masked_lm_log_probs"], atol=2e-5)
        for key in ("masked_lm_loss", "sentence_order_loss"):
            self.assertAllClose(losses[key], golden[f"output/{key}"], atol=3e-6)

        variables = variable_map(task.model)
        gradients = tape.gradient(total, list(variables.values()))
        for key, gradient in zip(variables, gradients, strict=True):
            expected = golden[f"grad/{key}"]
            self.assertAllClose(tf.convert_to_tensor(gradient), expected, atol=5e-6, msg=key)

    def test_the_map_covers_every_variable_of_a_checkpoint_once(self):
        task, golden = load_golden("tf1_base")
        names = {key.removeprefix("grad/") for key in golden if key.startswith("grad/")}
        self.assertEqual(set(variable_map(task.model)), names)

    def test_a_classifier_equals_the_official_one(self):
        directory = shared_path("golden/classifier/classification")
        config = AlbertConfig.from_json_file(os.path.join(directory, "albert_config.json"))
        model = AlbertClassifier(config, 3)
        load_tf1_checkpoint(model, tf.train.latest_checkpoint(directory))
        golden = np.load(os.path.join(directory, "outputs.npz"))
        logits = model(inputs_of(golden))["logits"]
        self.assertAllClose(logits, golden["output/logits"], atol=1e-5)


class Tf1CheckpointTest(tf.test.TestCase):
    def write_checkpoint(self, model: AlbertPretrainer) -> str:
        prefix = os.path.join(self.get_temp_dir(), "model.ckpt")
        values = {name: variable.numpy() for name, variable in variable_map(model).items()}
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            saved = [
                tf.compat.v1.Variable(value, name=name, use_resource=False)
                for name, value in values.items()
            ]
            session.run(tf.compat.v1.global_variables_initializer())
            return tf.compat.v1.train.Saver(saved).save(session, prefix)

    def test_a_checkpoint_is_loaded_by_its_names(self):
        source = AlbertPretrainer(tiny_config(), seed=1)
        prefix = self.write_checkpoint(source)
        target = AlbertPretrainer(tiny_config(), seed=2)
        load_tf1_checkpoint(target, prefix)
        for a, b in zip(source.weights, target.weights, strict=True):
            self.assertAllEqual(a, b)

    def test_another_size_or_architecture_is_refused_with_names(self):
        prefix = self.write_checkpoint(AlbertPretrainer(tiny_config()))
        with self.assertRaisesRegex(UserError, r"word_embeddings is \[\d+, 16\].*\[\d+, 32\]"):
            load_tf1_checkpoint(AlbertPretrainer(tiny_config(embedding_size=32)), prefix)
        with self.assertRaisesRegex(UserError, "missing: .*group_1"):
            load_tf1_checkpoint(AlbertPretrainer(tiny_config(num_hidden_groups=2)), prefix)


if __name__ == "__main__":
    tf.test.main()
