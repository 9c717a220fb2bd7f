"""Opening what `run` is given: a model, or a partition folder put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.formats.model import Model, read_model
from toolkit.runtime.devices import Device


@dataclass(slots=True)
class Loaded:
    """A model, and the devices it was made for when it came as partitions."""

    model: Model
    devices: list[Device] | None = None


def load(source: str, tags: Sequence[str] | None = None) -> Loaded:
    """Read a model file or folder.

    Raises:
        GraphmillError: it cannot be read; see `read_model`.
    """
    return Loaded(read_model(source, tags=tags))


def is_partition_folder(source: str) -> bool:
    return Path(source, "partitions.yaml").is_file()
