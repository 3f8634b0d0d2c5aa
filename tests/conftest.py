"""What must be set before TensorFlow starts and absl's test helpers run."""

import tensorflow as tf
from absl import flags

flags.FLAGS.mark_as_parsed()

# Two logical devices, so that MirroredStrategy has two replicas.
_CPU = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(_CPU, [tf.config.LogicalDeviceConfiguration()] * 2)

# A helper that unittest takes for a test, one "skipped" for each of our classes.
tf.test.TestCase.test_session.__test__ = False
