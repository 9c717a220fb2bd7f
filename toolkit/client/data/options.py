"""What `Dataset.with_options` takes: how a pipeline runs, not what it gives.

The elements and their order are the same whatever these say; they travel in the graph, for TensorFlow's runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class _Settings:
    """Named settings that are None until they are set.

    `FIELDS` says, by name, the number of a setting in TensorFlow's Options message, in rising order.
    """

    FIELDS: ClassVar[Mapping[str, int]] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_values", dict.fromkeys(self.FIELDS))

    def __getattr__(self, name: str) -> Any:
        values: dict[str, Any] = object.__getattribute__(self, "_values")
        if name in values:
            return values[name]
        raise AttributeError(f"{type(self).__name__} has no setting '{name}'; it has {', '.join(self.FIELDS)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.FIELDS:
            raise AttributeError(f"{type(self).__name__} has no setting '{name}'; it has {', '.join(self.FIELDS)}")
        self._values[name] = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._values == self._values

    __hash__ = None  # type: ignore[assignment]

    def serialized(self) -> bytes:
        """The settings that are set, in the wire format."""
        return b"".join(_field(number, self._values[name]) for name, number in self.FIELDS.items())


def _field(number: int, value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, _Settings):
        return _varint(number << 3 | 2) + _varint(len(inner := value.serialized())) + inner
    return _varint(number << 3) + _varint(int(value))


def _varint(value: int) -> bytes:
    out = bytearray()
    value &= 2**64 - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class ThreadingOptions(_Settings):
    """How many threads a pipeline may use."""

    FIELDS: ClassVar[Mapping[str, int]] = {"max_intra_op_parallelism": 1, "private_threadpool_size": 2}


class OptimizationOptions(_Settings):
    """Which rewrites of pipelines are allowed."""

    FIELDS: ClassVar[Mapping[str, int]] = {
        "apply_default_optimizations": 1, "filter_fusion": 6, "filter_parallelization": 18, "map_and_batch_fusion": 9,
        "map_and_filter_fusion": 10, "map_fusion": 11, "map_parallelization": 12, "noop_elimination": 14,
        "parallel_batch": 15, "shuffle_and_repeat_fusion": 17, "inject_prefetch": 19, "seq_interleave_prefetch": 21,
    }  # fmt: skip


class MapVectorizationOptions(_Settings):
    """Whether functions of elements became functions of batches; no release reads that any more."""

    FIELDS: ClassVar[Mapping[str, int]] = {"enabled": 1, "use_choose_fastest": 2}


class AutotuneOptions(_Settings):
    """Whether numbers are chosen while a pipeline runs."""

    FIELDS: ClassVar[Mapping[str, int]] = {
        "enabled": 1,
        "cpu_budget": 2,
        "ram_budget": 3,
        "autotune_algorithm": 4,
        "initial_parallelism": 5,
    }


class DistributeOptions(_Settings):
    """How a pipeline is shared between workers."""

    FIELDS: ClassVar[Mapping[str, int]] = {"auto_shard_policy": 1, "num_devices": 2}


class ServiceOptions(_Settings):
    """Of pipelines that another process runs."""

    FIELDS: ClassVar[Mapping[str, int]] = {"pinned": 1}


class Options(_Settings):
    """Settings of a pipeline."""

    FIELDS: ClassVar[Mapping[str, int]] = {
        "deterministic": 1, "experimental_distribute": 2, "experimental_optimization": 3, "experimental_slack": 4,
        "threading": 5, "experimental_external_state_policy": 6, "autotune": 7,
        "experimental_symbolic_checkpoint": 8, "experimental_warm_start": 9, "dataset_name": 10, "framework_type": 11,
        "experimental_service": 12,
    }  # fmt: skip
    _OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        "experimental_deterministic": "deterministic",
        "experimental_threading": "threading",
    }

    def __init__(self) -> None:
        super().__init__()
        self.autotune = AutotuneOptions()
        self.experimental_distribute = DistributeOptions()
        self.experimental_optimization = OptimizationOptions()
        self.threading = ThreadingOptions()
        self.experimental_service = ServiceOptions()

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(self._OTHER_NAMES.get(name, name))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(self._OTHER_NAMES.get(name, name), value)

    def merge(self, options: Options) -> Options:
        """These settings, with those that `options` has set in their place."""
        merged = Options()
        _merge_into(merged, self)
        _merge_into(merged, options)
        return merged


def _merge_into(target: _Settings, source: _Settings) -> None:
    for name, value in source._values.items():
        if isinstance(value, _Settings):
            _merge_into(getattr(target, name), value)
        elif value is not None:
            setattr(target, name, value)
