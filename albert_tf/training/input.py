"""How a run iterates over its input: one iterator for all replicas of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tensorflow as tf

from albert_tf.tasks.task import Batch

DatasetFunction = Callable[[int, int], tf.data.Dataset]
"""(batch size of a replica, batches to skip) -> batches of static shape, without end."""


def untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """A dataset without the tuner of tf.data, whose thread sleeps for up to a minute.

    Deleting an iterator waits for it, an idle wait at the end of every run and evaluation.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def training_iterator(
    strategy: tf.distribute.Strategy,
    dataset_fn: DatasetFunction,
    train_batch_size: int,
    position: int,
) -> Iterator[Batch]:
    """An endless iterator over batches of a strategy's replicas.

    Args:
      strategy: where the run executes.
      dataset_fn: makes the input.
      train_batch_size: sequences an update, over all replicas.
      position: updates already done, whose batches are skipped.
    """
    replicas = strategy.num_replicas_in_sync
    batch_size = train_batch_size // replicas

    def for_host(context: tf.distribute.InputContext) -> tf.data.Dataset:
        # A replica takes every replicas-th batch; hosts share the work the same way.
        dataset = dataset_fn(batch_size, position * replicas)
        return untuned(dataset.shard(context.num_input_pipelines, context.input_pipeline_id))

    if isinstance(strategy, tf.distribute.OneDeviceStrategy):
        # The strategy's own iterator copies to a device, with a tuner that cannot be turned off.
        return iter(for_host(tf.distribute.InputContext()))
    return iter(strategy.distribute_datasets_from_function(for_host))
