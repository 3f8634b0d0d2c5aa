import tensorflow as tf
from absl.testing import parameterized

from albert_tf.layers.operations import FUSED, PLAIN

ROWS, WIDTH = 6, 8


def random(seed, *shape):
    return tf.random.stateless_normal(shape, [seed, 1])


class OperationsTest(parameterized.TestCase, tf.test.TestCase):
    """Fused operations against the plain ones, values and gradients."""

    def check(self, name, *arguments, constants=(), tolerance=2e-6):
        results = []
        for operations in (PLAIN, FUSED):
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                output = getattr(operations, name)(*arguments, *constants)
                loss = tf.reduce_sum(tf.cast(output, tf.float32) * random(9, *output.shape))
            results.append([output, *tape.gradient(loss, arguments)])
        for plain, fused in zip(*results, strict=True):
            self.assertEqual(plain.dtype, fused.dtype)
            self.assertAllClose(plain, fused, atol=tolerance, rtol=tolerance)

    @parameterized.parameters((tf.float32, 1e-5), (tf.bfloat16, 0.1))
    def test_bias_gelu(self, dtype, tolerance):
        x = tf.cast(3 * random(1, ROWS, WIDTH), dtype)
        self.check("bias_gelu", x, random(2, WIDTH), tolerance=tolerance)

    @parameterized.parameters((tf.float32, 1e-5), (tf.bfloat16, 0.1))
    def test_add_layer_norm(self, dtype, tolerance):
        x, residual = (tf.cast(random(i, ROWS, WIDTH), dtype) for i in (1, 2))
        vectors = [random(i, WIDTH) for i in (3, 4, 5)]
        self.check("add_layer_norm", x, residual, *vectors, constants=[1e-12], tolerance=tolerance)

    @parameterized.parameters((tf.float32, 1e-5), (tf.bfloat16, 0.05))
    def test_softmax(self, dtype, tolerance):
        bias = tf.constant([[0.0] * 5 + [-10000.0] * 3, [-10000.0] * 8])[:, None, None, :]
        scores = tf.cast(random(1, 2, 3, 8, 8), dtype)
        self.check("softmax", scores, constants=[0.35, bias], tolerance=tolerance)


if __name__ == "__main__":
    tf.test.main()
