"""Where a run executes: the tf.distribute strategy that the flags name."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from albert_tf.errors import UserError

STRATEGIES = ("auto", "cpu", "mirrored", "multi_worker", "tpu")


@dataclasses.dataclass(frozen=True)
class StrategyConfig:
    """Which devices to use; the TPU fields as in the official flags.

    Attributes:
      strategy: one of STRATEGIES; auto takes the TPU named, else all GPUs, else the CPU.
      tpu_name: name or grpc address of the TPU; "local" on a TPU VM.
      tpu_zone: Compute Engine zone.
      gcp_project: Google Cloud project.
    """

    strategy: str = "auto"
    tpu_name: str | None = None
    tpu_zone: str | None = None
    gcp_project: str | None = None

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise UserError(
                "unknown strategy", f"--strategy={self.strategy}", f"choose {', '.join(STRATEGIES)}"
            )


def create_strategy(config: StrategyConfig) -> tf.distribute.Strategy:
    """Connects to the devices.

    Raises:
      UserError: the devices asked for are not there.
    """
    gpus = tf.config.list_physical_devices("GPU")
    kind = config.strategy
    if kind == "auto":
        kind = "tpu" if config.tpu_name else "mirrored" if gpus else "cpu"
    if kind == "tpu":
        return _tpu_strategy(config)
    if kind == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    if kind == "mirrored":
        # Without GPUs it mirrors over the logical CPU devices.
        devices = [f"GPU:{i}" for i in range(len(gpus))] or [
            f"CPU:{i}" for i in range(len(tf.config.list_logical_devices("CPU")))
        ]
        return tf.distribute.MirroredStrategy(devices)
    return tf.distribute.OneDeviceStrategy("/cpu:0")


def _tpu_strategy(config: StrategyConfig) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=config.tpu_name or "local", zone=config.tpu_zone, project=config.gcp_project
        )
        if config.tpu_name not in (None, "local"):
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            "TPU not reached", f"--tpu_name={config.tpu_name}", f"check name and zone ({reason})"
        ) from error
    return tf.distribute.TPUStrategy(resolver)
