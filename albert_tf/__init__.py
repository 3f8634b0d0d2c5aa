"""ALBERT in TensorFlow 2.

encoder = albert_tf.load_encoder("model_dir")
tokenizer = albert_tf.AlbertTokenizer("model_dir/spm.model")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tf.config import AlbertConfig
    from albert_tf.loading import load_encoder, load_pretrainer
    from albert_tf.tokenization import AlbertTokenizer

# Loaded on first use, so that data preparation does not wait for the model code.
_PUBLIC = {
    "AlbertConfig": "albert_tf.config",
    "AlbertTokenizer": "albert_tf.tokenization",
    "load_encoder": "albert_tf.loading",
    "load_pretrainer": "albert_tf.loading",
}

__all__ = ["AlbertConfig", "AlbertTokenizer", "load_encoder", "load_pretrainer"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
