"""What runs on a device compiles as one XLA program, as a TPU needs it, with equal numbers."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.data.classification import LABEL
from albert_tf.optimization import OptimizationConfig
from albert_tf.tasks.cross_entropy import COMPILED_FROM_CLASSES
from albert_tf.tasks.pretraining import PretrainingTask
from albert_tf.tasks.sequence_classification import SequenceClassificationTask
from albert_tf.training.evaluation import evaluate, pad_batches, predict_logits
from albert_tf.training.trainer import Trainer, TrainerConfig
from tests.tiny_models import pretraining_batch, tiny_config

STEPS, ROWS, CLASSES = 3, 4, 3


class CompiledStrategy(tf.distribute.OneDeviceStrategy):
    """Compiles all that a replica runs, as TPUStrategy does; fails where XLA cannot."""

    def __init__(self):
        super().__init__("/cpu:0")
        self.compiled = []

    def run(self, fn, args=(), kwargs=None, options=None):
        step = tf.function(fn, jit_compile=True, autograph=False)
        self.compiled.append((step, tf.nest.map_structure(tf.TensorSpec.from_tensor, args)))
        return super().run(step, args, kwargs, options)


def pretraining(compute_dtype, dropout):
    # Enough classes for the loss to bring functions of its own that are compiled.
    config = tiny_config(vocab_size=COMPILED_FROM_CLASSES, hidden_dropout_prob=dropout)
    return PretrainingTask(config, compute_dtype, seed=3), pretraining_batch(ROWS)


def classification(compute_dtype, dropout):
    config = tiny_config(hidden_dropout_prob=dropout)
    task = SequenceClassificationTask(config, CLASSES, compute_dtype, 3, dropout)
    batch = pretraining_batch(ROWS)
    features = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    return task, {**features, LABEL: tf.constant([0, 2, 1, 1])}


class CompiledStepTest(parameterized.TestCase, tf.test.TestCase):
    def train(self, strategy, make_task, compute_dtype="float32", dropout=0.0):
        """Trains STEPS steps; returns the metrics of each, and variables and slots by name."""
        with strategy.scope():
            task, batch = make_task(compute_dtype, dropout)
        output_dir = self.create_tempdir().full_path
        config = TrainerConfig(output_dir, ROWS, 1, STEPS)
        trainer = Trainer(task, config, OptimizationConfig("lamb", 0.01, STEPS, 1), strategy)
        trainer.train(lambda size, skip: tf.data.Dataset.from_tensors(batch).repeat())
        with open(os.path.join(output_dir, "metrics.jsonl")) as handle:
            lines = [json.loads(line) for line in handle]
        names = (*task.loss_names, "gradient_norm")
        metrics = np.array([[line[name] for name in names] for line in lines])
        variables = (*task.model.weights, *trainer.optimizer.weights)
        return metrics, {variable.name: variable.numpy() for variable in variables}

    @parameterized.parameters(pretraining, classification)
    def test_a_compiled_training_step_makes_the_same_update(self, make_task):
        metrics, expected = self.train(tf.distribute.OneDeviceStrategy("/cpu:0"), make_task)
        compiled_metrics, compiled = self.train(CompiledStrategy(), make_task)
        self.assertLen(metrics, STEPS)
        self.assertAllClose(metrics, compiled_metrics, rtol=1e-5)
        for name, value in expected.items():
            if "key/bias" in name:  # softmax ignores it: its gradient is nothing but rounding
                continue
            tolerance = 1e-4 * np.abs(value).max()
            self.assertAllClose(value, compiled[name], atol=tolerance, rtol=0, msg=name)

    @pytest.mark.slow  # each part has a quick test: float32 above, bfloat16 in models_test
    def test_a_compiled_training_step_in_bfloat16_has_the_same_losses(self):
        metrics, _ = self.train(
            tf.distribute.OneDeviceStrategy("/cpu:0"), classification, "bfloat16"
        )
        compiled_metrics, _ = self.train(CompiledStrategy(), classification, "bfloat16")
        self.assertAllClose(metrics, compiled_metrics, rtol=1e-2)

    def test_every_shape_in_a_compiled_training_step_is_static(self):
        strategy = CompiledStrategy()
        metrics, _ = self.train(strategy, pretraining, "bfloat16", dropout=0.1)
        self.assertAllInRange(metrics, 0.0, 10.0)
        ((step, specs),) = strategy.compiled
        batch = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), specs)
        program = step.experimental_get_compiler_ir(*batch)(stage="hlo")
        self.assertIn(f"s32[{ROWS},", program)
        self.assertNotIn("<=", program)  # how XLA writes a size that data decide

    @parameterized.parameters(pretraining, classification)
    def test_compiled_evaluation_and_prediction_give_equal_numbers(self, make_task):
        results = []
        for strategy in (tf.distribute.OneDeviceStrategy("/cpu:0"), CompiledStrategy()):
            with strategy.scope():
                task, batch = make_task("float32", 0.0)
            examples = pad_batches(tf.data.Dataset.from_tensor_slices(batch), ROWS - 1)
            results.append([evaluate(task, strategy, examples)])
            if make_task is classification:
                results[-1].append(predict_logits(task.model, strategy, examples))
        self.assertAllClose(*results, rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    tf.test.main()
