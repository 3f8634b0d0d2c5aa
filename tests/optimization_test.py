import os

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from albert_tf.checkpoint_conversion.tf1_names import variable_map
from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer
from albert_tf.optimization import (
    Lamb,
    OptimizationConfig,
    WarmupLinearDecay,
    create_optimizer,
)
from tests.checkpoint_conversion.tf1_test import load_golden
from tests.shared_data import shared_path
from tests.tiny_models import tiny_config


def step(optimizer, weight, gradient, name="dense/kernel"):
    variable = tf.Variable(weight, name=name)
    optimizer.apply_gradients([(tf.constant(gradient), variable)])
    return variable.numpy()


class OfficialRunsTest(parameterized.TestCase, tf.test.TestCase):
    """Twelve steps, and single updates, as the official optimizers made them."""

    @parameterized.parameters("lamb", "adamw")
    def test_twelve_steps_with_warm_up_and_clipping(self, name):
        task, _ = load_golden("tf1_base")
        golden = np.load(shared_path(f"golden/lamb/{name}.npz"))
        batches = np.load(shared_path("golden/lamb/batches.npz"))
        optimizer = create_optimizer(OptimizationConfig(name, 0.00176, 12, 4))
        names = variable_map(task.model)
        variables = task.model.trainable_variables

        @tf.function
        def update(batch):
            with tf.GradientTape() as tape:
                losses = task.losses(batch, task.model(batch)).values()
                loss = tf.add_n([r.total / (r.weight + r.epsilon) for r in losses])
            gradients = tape.gradient(loss, variables)
            dense = [tf.convert_to_tensor(gradient) for gradient in gradients]
            clipped, norm = tf.clip_by_global_norm(dense, 1.0)
            optimizer.apply_gradients(zip(clipped, variables, strict=True))
            return loss, norm

        for done in range(12):
            loss, norm = update(
                {os.path.basename(k): tf.constant(batches[k][done]) for k in batches}
            )
            self.assertAllClose(loss, golden["loss"][done], atol=1e-5)
            self.assertAllClose(norm, golden["global_norm"][done], atol=5e-5)
            if done + 1 not in (1, 2, 6, 12):
                continue
            for key, variable in names.items():
                expected = golden[f"step_{done + 1}/var/{key}"]
                self.assertAllClose(variable, expected, atol=1e-5, rtol=0, msg=key)
                if done + 1 == 12:
                    m = optimizer.get_slot(variable, "m")
                    v = optimizer.get_slot(variable, "v")
                    self.assertAllClose(m, golden[f"step_12/adam_m/{key}"], atol=1e-6, rtol=0)
                    self.assertAllClose(v, golden[f"step_12/adam_v/{key}"], atol=1e-8, rtol=0)

    @parameterized.parameters("lamb", "adamw")
    def test_toy_variables(self, name):
        golden = np.load(shared_path(f"golden/lamb/toy_{name}.npz"))
        names = [key.removeprefix("init/") for key in golden if key.startswith("init/")]
        variables = {key: tf.Variable(golden[f"init/{key}"], name=key) for key in names}
        rates = tf.constant(golden["learning_rate"])
        optimizer = Lamb(lambda: rates[done], layer_adaptation=name == "lamb")
        for done in range(len(rates)):
            optimizer.apply_gradients(
                [(tf.constant(golden[f"grads/{key}"][done]), variables[key]) for key in names]
            )
            for key in names:
                expected = golden[f"var/{key}"][done]
                tolerance = 2e-6 * max(1.0, np.abs(expected).max())
                self.assertAllClose(variables[key], expected, atol=tolerance, rtol=0, msg=key)


class LambTest(tf.test.TestCase):
    def test_first_update_has_no_bias_correction(self):
        # m = .1 g, v = .001 g^2: the update of an excluded variable is .1 / sqrt(.001).
        value = step(Lamb(0.01), [1.0, 1.0], [2.0, 2.0], name="dense/bias")
        self.assertAllClose(value, [1 - 0.01 * 0.1 / np.sqrt(0.001)] * 2, rtol=1e-4)

    def test_bias_correction_is_an_option(self):
        value = step(Lamb(0.01, bias_correction=True), [1.0], [2.0], name="dense/bias")
        self.assertAllClose(value, [0.99], rtol=1e-4)

    def test_the_trust_ratio_makes_the_step_a_share_of_the_weight(self):
        value = step(Lamb(0.01, weight_decay_rate=0.0), [3.0, 4.0], [7.0, 7.0])
        self.assertAllClose(np.linalg.norm(value - [3.0, 4.0]), 0.05, rtol=1e-4)

    def test_zero_weights_move_and_zero_gradients_only_decay(self):
        self.assertAllClose(
            step(Lamb(0.01), [0.0], [1.0]), [-0.01 * 0.1 / np.sqrt(0.001)], rtol=1e-3
        )
        no_decay = Lamb(0.01, weight_decay_rate=0.0)
        self.assertAllEqual(step(no_decay, [2.0], [0.0]), [2.0])
        self.assertAllClose(step(Lamb(0.01), [2.0], [0.0]), [1.98])

    def test_only_kernels_and_tables_are_decayed(self):
        model = AlbertPretrainer(tiny_config())
        optimizer = Lamb(0.1, layer_adaptation=False)
        before = [variable.numpy() for variable in model.trainable_variables]
        optimizer.apply_gradients([(tf.zeros_like(v), v) for v in model.trainable_variables])
        for variable, old in zip(model.trainable_variables, before, strict=True):
            excluded = any(word in variable.name for word in ("bias", "gamma", "beta"))
            self.assertEqual(optimizer.is_excluded(variable.name), excluded, variable.name)
            expected = old if excluded else old * (1 - 0.1 * 0.01)
            self.assertAllClose(variable, expected, rtol=1e-5, msg=variable.name)


class ScheduleTest(tf.test.TestCase):
    def test_equals_the_official_schedule(self):
        golden = np.load(shared_path("golden/lamb/lr_schedule.npz"))
        cases = {key.split("/")[0] for key in golden}
        checked = 0
        for case in cases:
            rate, total, warmup, power, start = golden[f"{case}/args"]
            if power != 1 or start != 0:
                continue
            schedule = WarmupLinearDecay(rate, int(total), int(warmup))
            rates = [float(schedule(int(s))) for s in golden[f"{case}/step"]]
            expected = golden[f"{case}/learning_rate"]
            self.assertAllClose(rates, expected, rtol=1e-5, atol=1e-9)
            checked += 1
        self.assertGreater(checked, 0)

    def test_warm_up_then_decay_to_zero_and_never_below(self):
        schedule = WarmupLinearDecay(1.0, 10, 4)
        rates = [float(schedule(s)) for s in (0, 2, 4, 5, 10, 20)]
        self.assertAllClose(rates, [0.0, 0.5, 0.6, 0.5, 0.0, 0.0])


class OptimizationConfigTest(parameterized.TestCase, tf.test.TestCase):
    def test_names_work_in_any_case(self):
        self.assertEqual(OptimizationConfig("LAMB", 0.1, 10, 1).optimizer, "lamb")

    @parameterized.parameters(
        ({"optimizer": "lamp"}, "lamb or adamw"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"num_warmup_steps": 11}, "num_warmup_steps=11"),
        ({"num_warmup_steps": -1, "num_train_steps": None}, "num_warmup_steps=-1"),
        ({"num_train_steps": 0}, "num_train_steps"),
    )
    def test_unusable_values_are_refused_by_name(self, change, message):
        values = {
            "optimizer": "lamb",
            "learning_rate": 0.1,
            "num_train_steps": 10,
            "num_warmup_steps": 1,
        }
        with self.assertRaisesRegex(UserError, message):
            OptimizationConfig(**{**values, **change})

    def test_open_counts_are_filled_in_and_given_ones_kept(self):
        filled = OptimizationConfig("lamb", 0.1, None, None).with_steps(40)
        self.assertEqual((filled.num_train_steps, filled.num_warmup_steps), (40, 4))
        given = OptimizationConfig("lamb", 0.1, 20, 3).with_steps(40)
        self.assertEqual((given.num_train_steps, given.num_warmup_steps), (20, 3))
        with self.assertRaisesRegex(UserError, "choose at most 40"):
            OptimizationConfig("lamb", 0.1, None, 41).with_steps(40)


if __name__ == "__main__":
    tf.test.main()
