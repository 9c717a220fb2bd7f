"""Datasets kept for the next iteration: in memory, or in files as TensorFlow keeps them.

The files are a checkpoint, one tensor for each component of each element; what TensorFlow wrote is read here and the
other way round.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from toolkit.errors import DataLossError, InvalidArgumentError, NotFoundError
from toolkit.formats.bundle import paths
from toolkit.formats.bundle.entry import index_path
from toolkit.formats.bundle.reader import BundleReader
from toolkit.formats.bundle.remote import is_remote
from toolkit.formats.bundle.writer import BundleWriter
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import require_scalar
from toolkit.kernels.datasets.base import Dataset, Element, Next, Run, a_dataset
from toolkit.kernels.datasets.options import kernel, simple
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.types import Array
from toolkit.policy.outside import Reach

_POSITION_WIDTH = 7  # TensorFlow counts up to 10 million elements; beyond, names grow


class MemoryCache:
    """The elements of an input that was read to its end once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.elements: list[Element] | None = None

    def keep(self, source: Next) -> Next:
        """The elements of an input, which are kept when it has ended."""
        kept: list[Element] = []

        def following() -> Element | None:
            element = source()
            if element is not None:
                kept.append(element)
            else:
                with self.lock:
                    self.elements = self.elements if self.elements is not None else list(kept)
            return element

        return following


class FileCache:
    """The elements of an input in files whose names begin with a prefix.

    Args:
        prefix: a path that may be written.
        types: of the components.
    """

    def __init__(self, prefix: str, types: list[DType]):
        self._prefix = prefix
        self._types = types

    @property
    def is_complete(self) -> bool:
        """Whether somebody has read the input to its end."""
        return paths.exists(index_path(self._prefix))

    def _name(self, position: int, component: int) -> str:
        width = len(str(len(self._types) - 1))
        return f"{position:>{_POSITION_WIDTH}}_{component:>{width}}"

    def keep(self, source: Next) -> Next:
        """The elements of an input, which are written; the files appear when it has ended.

        Raises:
            NotFoundError: there is no folder for them.
            InvalidArgumentError: an element has components of other types than the dataset.
        """
        folder = os.path.dirname(self._prefix)  # noqa: PTH120 -- it may be a URL
        if not is_remote(self._prefix) and not paths.is_folder(folder):
            raise NotFoundError(f"{self._prefix}: there is no folder for the cache")
        writer = BundleWriter(self._prefix)
        position = 0

        def following() -> Element | None:
            nonlocal position
            element = source()
            if element is None:
                if position >= 0:
                    writer.finish()
                position = -1
                return None
            if len(element) != len(self._types):
                raise InvalidArgumentError(f"an element has {len(element)} components, the cache {len(self._types)}")
            for component, (value, dtype) in enumerate(zip(element, self._types, strict=True)):
                writer.add(self._name(position, component), np.asarray(value), dtype)
            position += 1
            return element

        return following

    def elements(self) -> Next:
        """The elements that were written.

        Raises:
            InvalidArgumentError: they are of other types than the dataset.
            DataLossError: the files are damaged.
        """
        reader = BundleReader(self._prefix)
        count, rest = divmod(len(reader.entries), len(self._types))
        if rest:
            raise DataLossError(f"{self._prefix}: {len(reader.entries)} tensors are no elements of {len(self._types)}")
        position = 0

        def following() -> Element | None:
            nonlocal position
            if position >= count:
                reader.close()
                return None
            element = [self._read(reader, position, component) for component in range(len(self._types))]
            position += 1
            return element

        return following

    def _read(self, reader: BundleReader, position: int, component: int) -> Array:
        name, dtype = self._name(position, component), self._types[component]
        found = reader.entry(name).dtype
        if found is not dtype:
            raise InvalidArgumentError(f"Data type mismatch at component {component}: expected {found}, got {dtype}.")
        return reader.read(name)


@kernel("CacheDataset", "CacheDatasetV2", kind=Kind.STATEFUL)
def cache_dataset(op: KernelNode) -> Compute:
    """The elements of the first complete iteration: in memory, or in files where there is a name."""
    files, types = op.files, op.attr("output_types")

    def compute(step: StepContext, dataset: Any, filename: Array, handle: Any = None) -> Dataset:
        source = a_dataset(dataset)
        require_scalar(filename, "`filename`")
        if name := os.fsdecode(np.asarray(filename).item()):
            stored = FileCache(files.checkpoint(Reach.WRITE, name), types)

            def start_stored(run: Run) -> Next:
                return stored.elements() if stored.is_complete else stored.keep(source.start(run))

            return Dataset(start_stored, source.cardinality)
        owned = handle.owned if isinstance(handle, ResourceHandle) else None
        cache = owned if isinstance(owned, MemoryCache) else MemoryCache()

        def start(run: Run) -> Next:
            if cache.elements is None:
                return cache.keep(source.start(run))
            kept = iter(cache.elements)
            return lambda: next(kept, None)

        return Dataset(start, source.cardinality)

    return compute


@kernel("AnonymousMemoryCache", kind=Kind.STATEFUL)
def anonymous_memory_cache(op: KernelNode) -> Compute:
    def compute(step: StepContext) -> tuple[Any, Any]:
        handle = ResourceHandle("", op.name, "MemoryCache", owned=MemoryCache())
        return handle, handle

    return compute


@kernel("DummyMemoryCache", kind=Kind.STATEFUL)
def dummy_memory_cache(op: KernelNode) -> Compute:
    def compute(step: StepContext) -> Any:
        return ResourceHandle("", op.name, "MemoryCache", owned=object())

    return compute


@simple("DeleteMemoryCache", "DeleteSeedGenerator", "DeleteRandomSeedGenerator")
def delete_owned(handle: Any, deleter: Any) -> None:
    """The handle keeps its resource alive; there is nothing to do."""
