import json
import os

import tensorflow as tf
from absl.testing import parameterized

from albert_tf.config import PRESETS, AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertEncoder, AlbertPretrainer
from tests.shared_data import shared_path
from tests.tiny_models import tiny_config


class AlbertConfigTest(parameterized.TestCase, tf.test.TestCase):
    def test_unknown_keys_survive_a_round_trip(self):
        values = {**tiny_config().to_dict(), "net_structure_type": 0, "gap_size": 7}
        path = os.path.join(self.get_temp_dir(), "albert_config.json")
        with open(path, "w") as handle:
            json.dump(values, handle)
        self.assertEqual(AlbertConfig.from_json_file(path).to_dict(), values)

    @parameterized.parameters(
        ("hidden_size", 33, "num_attention_heads"),
        ("vocab_size", 0, "vocab_size"),
        ("num_hidden_layers", "12", "num_hidden_layers"),
        ("hidden_act", "swish", "hidden_act"),
        ("hidden_dropout_prob", 1.0, "hidden_dropout_prob"),
        ("num_hidden_groups", 5, "num_hidden_groups"),
        ("parameter_sharing", "some", "parameter_sharing"),
        ("embedding_size", 0, "embedding_size"),
    )
    def test_an_impossible_value_is_refused_by_name(self, name, value, named):
        with self.assertRaisesRegex(UserError, named):
            tiny_config(**{name: value})

    def test_unreadable_files_are_refused(self):
        directory = self.get_temp_dir()
        broken = os.path.join(directory, "broken.json")
        with open(broken, "w") as handle:
            handle.write("{")
        for path in (broken, directory, os.path.join(directory, "missing")):
            with self.assertRaisesRegex(UserError, path):
                AlbertConfig.from_json_file(path)

    def test_an_unknown_preset_lists_the_known_ones(self):
        with self.assertRaisesRegex(UserError, "albert_xxlarge"):
            AlbertConfig.preset("albert_huge")

    def test_layers_share_what_the_config_says(self):
        layers = {"num_hidden_layers": 4}
        self.assertEqual(tiny_config(**layers).block_schedule(), [(0, 0)] * 4)
        self.assertEqual(
            tiny_config(**layers, num_hidden_groups=2).block_schedule(),
            [(0, 0), (0, 0), (1, 1), (1, 1)],
        )
        self.assertEqual(
            tiny_config(num_hidden_layers=2, inner_group_num=2).block_schedule(),
            [(0, 0), (1, 1), (0, 0), (1, 1)],
        )
        self.assertEqual(
            tiny_config(**layers, parameter_sharing="attention").block_schedule(),
            [(0, 0), (0, 1), (0, 2), (0, 3)],
        )
        self.assertEqual(
            tiny_config(**layers, parameter_sharing="ffn").block_schedule(),
            [(0, 0), (1, 0), (2, 0), (3, 0)],
        )
        self.assertEqual(
            tiny_config(**layers, parameter_sharing="none").block_schedule(),
            [(0, 0), (1, 1), (2, 2), (3, 3)],
        )

    @parameterized.parameters(
        ("albert_base", 11_683_584, 11_813_810), ("albert_large", 17_683_968, 17_847_474)
    )
    def test_presets_have_the_released_numbers_of_parameters(self, name, encoder, pretrainer):
        config = AlbertConfig.preset(name)
        self.assertEqual(AlbertEncoder(config).count_params(), encoder)
        self.assertEqual(AlbertPretrainer(config).count_params(), pretrainer)

    @parameterized.parameters(*PRESETS)
    def test_presets_follow_the_vocabulary(self, name):
        self.assertEqual(AlbertConfig.preset(name, vocab_size=8000).vocab_size, 8000)

    def test_a_released_config_equals_its_preset(self):
        path = shared_path("data/configs/en_kamalkraj_base.json")
        released = AlbertConfig.from_json_file(path)
        preset = AlbertConfig.preset(
            "albert_base", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1
        )
        self.assertEqual(released, preset)


if __name__ == "__main__":
    tf.test.main()
