"""AlbertConfig: what a model is, readable from and writable to official albert_config.json."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from albert_tf import files
from albert_tf.errors import UserError

ACTIVATIONS = ("gelu", "relu")
"""gelu is the tanh form, as the official code defines it."""

PARAMETER_SHARING = ("all", "attention", "ffn", "none")
"""What the layers of a group share (paper, Table 4)."""


@dataclasses.dataclass(frozen=True)
class AlbertConfig:
    """Sizes and rates of an ALBERT model; field names are those of albert_config.json.

    Attributes:
      vocab_size: number of pieces, V.
      embedding_size: width of the embedding tables, E (paper, section 3.1).
      hidden_size: width of the encoder, H.
      num_hidden_layers: number of encoder layers that are run.
      num_hidden_groups: number of groups of layers with parameters of their own.
      inner_group_num: number of blocks that make one layer.
      num_attention_heads: must divide hidden_size.
      intermediate_size: width of the feed-forward network.
      hidden_act: one of ACTIVATIONS.
      hidden_dropout_prob: dropout of embeddings and of each sub-layer's output.
      attention_probs_dropout_prob: dropout of attention probabilities.
      max_position_embeddings: longest sequence.
      type_vocab_size: number of segments.
      initializer_range: standard deviation of the truncated normal initializer.
      layer_norm_eps: epsilon of every LayerNorm; 1e-12 in the official code.
      parameter_sharing: one of PARAMETER_SHARING.
      extra: keys of a file that we do not use; kept through a round trip.
    """

    vocab_size: int
    embedding_size: int = 128
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    parameter_sharing: str = "all"
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "int" and (type(value) is not int or value < 1):
                raise _bad(field.name, value, "must be a whole number of at least 1")
            if field.type == "float" and (
                isinstance(value, bool) or not isinstance(value, int | float) or value < 0
            ):
                raise _bad(field.name, value, "must be a number of at least 0")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if getattr(self, name) >= 1:
                raise _bad(name, getattr(self, name), "must be below 1")
        if self.hidden_act not in ACTIVATIONS:
            raise _bad("hidden_act", self.hidden_act, f"must be one of {', '.join(ACTIVATIONS)}")
        if self.parameter_sharing not in PARAMETER_SHARING:
            raise _bad(
                "parameter_sharing",
                self.parameter_sharing,
                f"must be one of {', '.join(PARAMETER_SHARING)}",
            )
        if self.hidden_size % self.num_attention_heads:
            raise _bad(
                "num_attention_heads",
                self.num_attention_heads,
                f"must divide hidden_size {self.hidden_size}",
            )
        if self.num_hidden_layers % self.num_hidden_groups:
            raise _bad(
                "num_hidden_groups",
                self.num_hidden_groups,
                f"must divide num_hidden_layers {self.num_hidden_layers}",
            )

    def block_schedule(self) -> list[tuple[int, int]]:
        """(attention block, feed-forward block) of each step through the encoder.

        Layer i belongs to group i // (layers / groups) and runs inner_group_num blocks. A kind
        of block that the layers of a group do not share has one set of weights a layer.

        Returns:
          num_hidden_layers * inner_group_num pairs of indices.
        """
        layers_per_group = self.num_hidden_layers // self.num_hidden_groups
        share_attention = self.parameter_sharing in ("all", "attention")
        share_ffn = self.parameter_sharing in ("all", "ffn")
        schedule = []
        for layer in range(self.num_hidden_layers):
            group = layer // layers_per_group
            for inner in range(self.inner_group_num):
                attention, ffn = (
                    (group if shared else layer) * self.inner_group_num + inner
                    for shared in (share_attention, share_ffn)
                )
                schedule.append((attention, ffn))
        return schedule

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> AlbertConfig:
        """A named size, e.g. preset("albert_base", vocab_size=8000).

        Raises:
          UserError: no such preset.
        """
        if name not in PRESETS:
            raise UserError("unknown preset", name, f"choose one of {', '.join(sorted(PRESETS))}")
        return cls(**{"vocab_size": 30000, **PRESETS[name], **overrides})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AlbertConfig:
        """Builds a config from JSON values; keys that we do not use go to `extra`."""
        names = {field.name for field in dataclasses.fields(cls)} - {"extra"}
        if "vocab_size" not in values:
            raise _bad("vocab_size", None, "is missing")
        known = {name: value for name, value in values.items() if name in names}
        extra = {name: value for name, value in values.items() if name not in names}
        return cls(**known, extra=extra)

    @classmethod
    def from_json_file(cls, path: str, flag: str = "--albert_config_file") -> AlbertConfig:
        """Reads albert_config.json.

        Raises:
          UserError: the file is missing, malformed, or holds an impossible value.
        """
        values = files.read_json(path, flag)
        if not isinstance(values, dict):
            raise UserError("is not a JSON object", f"{flag}={path}", "give an albert_config.json")
        try:
            return cls.from_dict(values)
        except UserError as error:
            raise UserError(error.what, f"{path}: {error.where}", error.remedy) from error

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values, with the unknown keys of the file they came from."""
        values = dataclasses.asdict(self)
        return {**values.pop("extra"), **values}

    def to_json_string(self) -> str:
        """The config as the text of an albert_config.json."""
        return json.dumps(self.to_dict(), indent=2) + "\n"


def _bad(name: str, value: Any, problem: str) -> UserError:
    return UserError(problem, f"{name}={value!r}", "mend the model configuration")


def _size(hidden: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    return dict(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        **more,
    )


PRESETS: dict[str, dict[str, Any]] = {
    # Paper, Table 1, without dropout, as its final models and the released v2; xlarge was
    # released with 16 heads, not H/64.
    "albert_base": _size(768, 12, 12),
    "albert_large": _size(1024, 24, 16),
    "albert_xlarge": _size(2048, 24, 16),
    "albert_xxlarge": _size(4096, 12, 64),
    # Learns something in minutes on two CPU cores; the wide initial weights speed its start.
    "quickstart": _size(128, 2, 2, max_position_embeddings=256, initializer_range=0.05),
}
