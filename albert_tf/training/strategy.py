"""Where a run executes: the tf.distribute strategy that the flags name."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from albert_tf.errors import UserError

STRATEGIES = ("auto", "cpu", "mirrored", "tpu")


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
        for name in ("tpu_name", "tpu_zone", "gcp_project"):
            value = getattr(self, name)
            if value and not self.uses_tpu:
                raise UserError(
                    "has no effect without a TPU",
                    f"--{name}={value}",
                    "give --tpu_name with --strategy=tpu or auto, or drop it",
                )

    @property
    def uses_tpu(self) -> bool:
        """Whether a TPU is asked for."""
        return self.strategy == "tpu" or (self.strategy == "auto" and bool(self.tpu_name))


def create_strategy(config: StrategyConfig) -> tf.distribute.Strategy:
    """Connects to the devices.

    Raises:
      UserError: the devices asked for are not there.
    """
    if config.uses_tpu:
        return _tpu_strategy(config)
    gpus = tf.config.list_physical_devices("GPU")
    if config.strategy == "mirrored" or (config.strategy == "auto" and gpus):
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
