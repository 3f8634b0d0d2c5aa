import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.layers.operations import FUSED, PLAIN

ROWS, WIDTH = 6, 8
BFLOAT16_STEP = 2.0**-7
"""From 1 to the next bfloat16: as far as two roundings of nearly equal numbers can differ."""


def random(seed, *shape):
    return tf.random.stateless_normal(shape, [seed, 1])


class OperationsTest(parameterized.TestCase, tf.test.TestCase):
    """Fused operations against the plain ones, values and gradients."""

    def check(self, name, dtype, *arguments, constants=()):
        results = []
        for operations in (PLAIN, FUSED):
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                output = getattr(operations, name)(*arguments, *constants)
                loss = tf.reduce_sum(tf.cast(output, tf.float32) * random(9, *output.shape))
            results.append([output, *tape.gradient(loss, arguments)])
        for index, (plain, fused) in enumerate(zip(*results, strict=True)):
            self.assertEqual(plain.dtype, fused.dtype)
            if dtype == tf.float32:
                self.assertAllClose(plain, fused, atol=1e-5, rtol=1e-5)
            elif index == 0:
                # Equal float32 numbers but for their last bits may round to neighbours.
                self.assertAllClose(plain, fused, atol=1e-6, rtol=BFLOAT16_STEP)
            else:
                # Fused gradients start from rounded outputs.
                largest = np.abs(tf.cast(plain, tf.float32)).max()
                self.assertAllClose(plain, fused, atol=largest * BFLOAT16_STEP, rtol=0)

    @parameterized.parameters(tf.float32, tf.bfloat16)
    def test_bias_gelu(self, dtype):
        x = tf.cast(3 * random(1, ROWS, WIDTH), dtype)
        self.check("bias_gelu", dtype, x, random(2, WIDTH))

    @parameterized.parameters(tf.float32, tf.bfloat16)
    def test_add_layer_norm(self, dtype):
        x, residual = (tf.cast(random(i, ROWS, WIDTH), dtype) for i in (1, 2))
        vectors = [random(i, WIDTH) for i in (3, 4, 5)]
        self.check("add_layer_norm", dtype, x, residual, *vectors, constants=[1e-12])

    @parameterized.parameters(tf.float32, tf.bfloat16)
    def test_softmax(self, dtype):
        bias = tf.constant([[0.0] * 5 + [-10000.0] * 3, [-10000.0] * 8])[:, None, None, :]
        scores = tf.cast(random(1, 2, 3, 8, 8), dtype)
        self.check("softmax", dtype, scores, constants=[0.35, bias])


if __name__ == "__main__":
    tf.test.main()
