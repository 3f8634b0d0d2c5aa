import numpy as np
import tensorflow as tf

from albert_tf.tasks.cross_entropy import COMPILED_FROM_CLASSES, cross_entropy


class CrossEntropyTest(tf.test.TestCase):
    def test_compiled_losses_and_gradients_equal_those_of_tensorflow(self):
        rng = np.random.default_rng(0)
        shape = [3, 5, COMPILED_FROM_CLASSES]
        # From flat to so sharp that most probabilities underflow.
        scale = np.array([1e-3, 1.0, 5.0, 50.0, 1000.0])[:, np.newaxis]
        logits = tf.constant(rng.normal(size=shape) * scale, tf.float32)
        labels = tf.constant(rng.integers(0, shape[-1], shape[:-1]), tf.int32)
        upstream = tf.constant(rng.uniform(size=shape[:-1]), tf.float32)

        def with_gradient(function):
            with tf.GradientTape() as tape:
                tape.watch(logits)
                losses = function(logits, labels)
            return losses, tape.gradient(losses, logits, upstream)

        compiled = tf.function(lambda: with_gradient(cross_entropy))
        self.assertIn("PartitionedCall", {op.type for op in _operations(compiled)})
        expected = with_gradient(lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x))
        for one, other in zip(compiled(), expected, strict=True):
            self.assertAllClose(one, other, atol=1e-6, rtol=2e-5)

    def test_few_classes_and_open_shapes_are_not_compiled(self):
        for shape in ([4, 2], [None, COMPILED_FROM_CLASSES]):
            spec = tf.TensorSpec(shape, tf.float32)
            function = tf.function(cross_entropy, [spec, tf.TensorSpec(shape[:1], tf.int32)])
            self.assertNotIn("PartitionedCall", {op.type for op in _operations(function)})


def _operations(function):
    return function.get_concrete_function().graph.get_operations()


if __name__ == "__main__":
    tf.test.main()
