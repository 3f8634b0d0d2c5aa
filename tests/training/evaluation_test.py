import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.data.pretraining import evaluation_examples
from albert_tf.data.record_files import inspect_files
from albert_tf.tasks.pretraining import PretrainingTask
from albert_tf.tasks.sequence_classification import SequenceClassificationTask
from albert_tf.training.evaluation import evaluate, pad_batches, predict_logits
from albert_tf.training.strategy import StrategyConfig, create_strategy
from tests.tiny_models import pretraining_batch, tiny_config, write_records
from tests.tiny_vocabulary import VOCAB_SIZE


class EvaluationTest(parameterized.TestCase, tf.test.TestCase):
    """Every row counts once, however batches fall on replicas."""

    @parameterized.parameters(4, 7, 20)
    def test_metrics_do_not_depend_on_replicas_or_batches(self, batch_size):
        shards = write_records(self.create_tempdir().full_path, rows=12)
        examples = evaluation_examples(inspect_files(shards, "--input_file"), VOCAB_SIZE)
        results = []
        for name, size in (("cpu", 12), ("cpu", batch_size), ("mirrored", batch_size)):
            strategy = create_strategy(StrategyConfig(name))
            with strategy.scope():
                task = PretrainingTask(tiny_config(), seed=3)
            results.append(evaluate(task, strategy, pad_batches(examples, size)))
        self.assertAllClose(results[0], results[1], rtol=1e-5)
        self.assertAllClose(results[0], results[2], rtol=1e-5)

    def test_logits_come_in_the_order_of_the_rows(self):
        rows = {
            name: values
            for name, values in pretraining_batch(12).items()
            if name in ("input_ids", "input_mask", "segment_ids")
        }
        strategy = create_strategy(StrategyConfig("mirrored"))
        with strategy.scope():
            model = SequenceClassificationTask(tiny_config(), 3, seed=3).model
        examples = tf.data.Dataset.from_tensor_slices(rows)
        logits = predict_logits(model, strategy, pad_batches(examples, 4))
        self.assertAllClose(logits, np.asarray(model(rows)["logits"]), atol=1e-5)


if __name__ == "__main__":
    tf.test.main()
