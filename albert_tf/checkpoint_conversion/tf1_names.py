"""The name map between our variables and official TF1 checkpoints; shapes are the same."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.layers.encoder import SharedEncoder
from albert_tf.layers.heads import MaskedLMHead, PooledOutputHead
from albert_tf.models import AlbertClassifier, AlbertEncoder, AlbertModel, AlbertPretrainer

EMBEDDINGS = {
    "word_embeddings": "word_embeddings",
    "token_type_embeddings": "token_type_embeddings",
    "position_embeddings": "position_embeddings",
    "gamma": "LayerNorm/gamma",
    "beta": "LayerNorm/beta",
}
ATTENTION = {
    "query_kernel": "attention_1/self/query/kernel",
    "query_bias": "attention_1/self/query/bias",
    "key_kernel": "attention_1/self/key/kernel",
    "key_bias": "attention_1/self/key/bias",
    "value_kernel": "attention_1/self/value/kernel",
    "value_bias": "attention_1/self/value/bias",
    "output_kernel": "attention_1/output/dense/kernel",
    "output_bias": "attention_1/output/dense/bias",
    "gamma": "LayerNorm/gamma",
    "beta": "LayerNorm/beta",
}
FEED_FORWARD = {
    "intermediate_kernel": "ffn_1/intermediate/dense/kernel",
    "intermediate_bias": "ffn_1/intermediate/dense/bias",
    "output_kernel": "ffn_1/intermediate/output/dense/kernel",
    "output_bias": "ffn_1/intermediate/output/dense/bias",
    "gamma": "LayerNorm_1/gamma",
    "beta": "LayerNorm_1/beta",
}
PROJECTION = {"projection_kernel": "kernel", "projection_bias": "bias"}
POOLER = {"kernel": "kernel", "bias": "bias"}
MASKED_LM = {
    "transform_kernel": "transform/dense/kernel",
    "transform_bias": "transform/dense/bias",
    "gamma": "transform/LayerNorm/gamma",
    "beta": "transform/LayerNorm/beta",
    "output_bias": "output_bias",
}
POOLED_OUTPUT_HEAD = {"output_weights": "output_weights", "output_bias": "output_bias"}


def variable_map(model: AlbertModel) -> dict[str, tf.Variable]:
    """TF1 name -> our variable, for every variable of an encoder, pretrainer or classifier."""
    if isinstance(model, AlbertEncoder):
        return _encoder_map(model)
    names = _encoder_map(model.encoder)
    if isinstance(model, AlbertPretrainer):
        names |= _masked_lm_map(model.masked_lm)
        names |= _head_map(model.sentence_order, "cls/seq_relationship/")
    elif isinstance(model, AlbertClassifier):
        names |= _head_map(model.head, "")
    return names


def _encoder_map(model: AlbertEncoder) -> dict[str, tf.Variable]:
    names = _named(model.embeddings, EMBEDDINGS, "bert/embeddings/")
    names |= _named(model.pooler, POOLER, "bert/pooler/dense/")
    encoder = model.encoder
    if encoder.has_projection:
        names |= _named(encoder, PROJECTION, "bert/encoder/embedding_hidden_mapping_in/")
    return names | _blocks_map(encoder)


def _blocks_map(encoder: SharedEncoder) -> dict[str, tf.Variable]:
    inner_blocks = encoder.config.inner_group_num
    names = {}
    for blocks, table in (
        (encoder.attention_blocks, ATTENTION),
        (encoder.ffn_blocks, FEED_FORWARD),
    ):
        for index, block in enumerate(blocks):
            group, inner = divmod(index, inner_blocks)
            prefix = f"bert/encoder/transformer/group_{group}/inner_group_{inner}/"
            names |= _named(block, table, prefix)
    return names


def _masked_lm_map(head: MaskedLMHead) -> dict[str, tf.Variable]:
    return _named(head, MASKED_LM, "cls/predictions/")


def _head_map(head: PooledOutputHead, prefix: str) -> dict[str, tf.Variable]:
    return _named(head, POOLED_OUTPUT_HEAD, prefix)


def _named(layer: object, table: dict[str, str], prefix: str) -> dict[str, tf.Variable]:
    return {prefix + theirs: getattr(layer, ours) for ours, theirs in table.items()}
