"""Datasets that begin a pipeline: tensors, ranges, files, random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from toolkit.errors import DataLossError, InvalidArgumentError, OpError
from toolkit.graph.shape import Shape
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import integer, require, require_scalar, shape_text
from toolkit.kernels.cpu.files.file_io import all_matching
from toolkit.kernels.datasets.base import INFINITE, UNKNOWN, Dataset, Element, Next, Run
from toolkit.kernels.datasets.options import kernel, simple
from toolkit.kernels.datasets.seeds import NoSeedGenerator, SeedGenerator
from toolkit.kernels.queues.elements import own, own_row
from toolkit.kernels.random.philox import WordStream
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.resources.records import (
    Record,
    check_compression,
    fixed_records,
    read_bytes,
    text_lines,
    tf_records,
)
from toolkit.kernels.types import Array


def _listed(count: int, element: Callable[[int], Element]) -> Dataset:
    """A dataset whose elements are known by number."""

    def start(run: Run) -> Next:
        position = -1

        def following() -> Element | None:
            nonlocal position
            if position + 1 >= count:
                return None
            run.go_on()
            position += 1
            return element(position)

        return following

    return Dataset(start, count)


def _shapes(op: KernelNode) -> Callable[[Sequence[tuple[int, ...]]], None]:
    """What holds components to the shapes that are declared.

    Raises:
        InvalidArgumentError: there is not one for each.
    """
    declared: list[Shape] = op.attr("output_shapes")
    count = len(op.input_types)
    require(
        count == len(declared), f"Number of components does not match: expected {count} shapes but got {len(declared)}."
    )

    def look(found: Sequence[tuple[int, ...]]) -> None:
        for index, (have, want) in enumerate(zip(found, declared, strict=True)):
            require(
                want.is_compatible_with(Shape(have)),
                f"Incompatible shapes at component {index}: expected {Shape(have)} but got {want}.",
            )

    return look


@kernel("TensorDataset")
def tensor_dataset(op: KernelNode) -> Compute:
    look = _shapes(op)

    def compute(*components: Any) -> Dataset:
        look([np.shape(c) for c in components])
        values = [own(c) for c in components]
        return _listed(1, lambda _: list(values))

    return compute


@kernel("TensorSliceDataset")
def tensor_slice_dataset(op: KernelNode) -> Compute:
    """The rows of tensors."""
    look = _shapes(op)

    def compute(*components: Any) -> Dataset:
        for c in components:
            require(np.ndim(c) > 0, "All components must be at least 1-dimensional")
        look([np.shape(c)[1:] for c in components])
        count = len(components[0])
        for c in components:
            require(
                len(c) == count, f"All components must have the same size in the 0th dimension, not {len(c)}, {count}"
            )
        values = [own(c) for c in components]
        return _listed(count, lambda i: [own_row(c, i) for c in values])

    return compute


@kernel("ListDataset")
def list_dataset(op: KernelNode) -> Compute:
    width = len(op.attr("output_types"))

    def compute(*tensors: Any) -> Dataset:
        values = [own(t) for t in tensors]
        return _listed(len(values) // width, lambda i: values[i * width : (i + 1) * width])

    return compute


@simple("SparseTensorSliceDataset")
def sparse_tensor_slice_dataset(indices: Array, values: Array, dense_shape: Array) -> Dataset:
    """The slices of a sparse tensor along its first dimension, each as indices, values and shape."""
    require(np.ndim(indices) == 2, f"Input indices must be a matrix. Got: {shape_text(indices)}")
    require(np.ndim(values) == 1, f"Input values must be a vector. Got: {shape_text(values)}")
    require(np.ndim(dense_shape) == 1, f"Input shape must be a vector. Got: {shape_text(dense_shape)}")
    require(
        len(indices) == len(values), f"Number of values must match number of indices: {len(values)}, {len(indices)}"
    )
    rows = indices[:, 0] if len(indices) else np.zeros(0, np.int64)
    require(np.all(np.diff(rows) >= 0), "The SparseTensor must be ordered in the batch dimension")
    shape = np.array(dense_shape[1:])

    def element(i: int) -> Element:
        low, high = np.searchsorted(rows, [i, i + 1])
        return [np.array(indices[low:high, 1:]), np.array(values[low:high]), shape]

    return _listed(int(dense_shape[0]), element)


@kernel("RangeDataset")
def range_dataset(op: KernelNode) -> Compute:
    dtype = op.attr("output_types")[0].numpy

    def compute(start: Array, stop: Array, step: Array) -> Dataset:
        for value, what in ((start, "start"), (stop, "stop"), (step, "step")):
            require_scalar(value, what)
        require(integer(step, "step") != 0, "step must be a non-zero integer.")
        numbers = range(integer(start, "start"), integer(stop, "stop"), integer(step, "step"))
        return _listed(len(numbers), lambda i: [np.array(numbers[i]).astype(dtype)])

    return compute


@kernel("RandomDataset", "RandomDatasetV2", "ExperimentalRandomDataset", kind=Kind.STATEFUL)
def random_dataset(op: KernelNode) -> Compute:
    """Uniform 32-bit numbers as int64; each iteration has the same ones unless told otherwise."""
    rerandomize: bool = op.attr("rerandomize_each_iteration", False)

    def compute(step: StepContext, seed: Array, seed2: Array, generator: Any = None) -> Dataset:
        seeds = seeds_of(generator, seed, seed2, rerandomize)

        def start(run: Run) -> Next:
            random = WordStream.seeded(*seeds.next())

            def following() -> Element:
                run.go_on()
                return [np.int64(random.next())]

            return following

        return Dataset(start, INFINITE)

    return compute


def seeds_of(generator: Any, seed: Array, seed2: Array, reshuffle: bool) -> SeedGenerator:
    """The generator of a handle, or one's own where the handle is a dummy or missing."""
    owned = generator.owned if isinstance(generator, ResourceHandle) else generator
    if isinstance(owned, SeedGenerator):
        return owned
    if owned is not None and not isinstance(owned, NoSeedGenerator):
        raise InvalidArgumentError(f"the handle is not one of a seed generator but of a {type(owned).__name__}")
    return SeedGenerator(integer(seed, "seed"), integer(seed2, "seed2"), reshuffle)


# -- files -----------------------------------------------------------------------------------------------


def _from_files(filenames: Array, records: Callable[[int, str], Iterator[Record]]) -> Dataset:
    """The records of files, one file after the other."""
    require(np.ndim(filenames) <= 1, f"`filenames` must be a scalar or a vector, got shape {shape_text(filenames)}")
    names = [name.decode(errors="surrogateescape") for name in np.atleast_1d(filenames).tolist()]

    def start(run: Run) -> Next:
        position = 0
        current: Iterator[Record] | None = None
        is_open = False  # a record of the current file was read

        def following() -> Element | None:
            nonlocal position, current, is_open
            while True:
                if current is None:
                    if position >= len(names):
                        return None
                    current = records(position, names[position])
                    position += 1
                    is_open = False
                try:
                    record = next(current, None)
                except OpError as error:
                    current = None
                    if not is_open and not isinstance(error, DataLossError):
                        position -= 1  # what cannot be opened stays in the way; what is damaged does not
                    raise
                is_open = True
                if record is not None:
                    return [np.array(record[1], object)]
                current = None

        return following

    return Dataset(start)


def _compression(value: Array) -> str:
    require_scalar(value, "`compression_type`")
    compression = np.asarray(value).item().decode()
    check_compression(compression)
    return compression


@kernel("TextLineDataset", kind=Kind.STATEFUL)
def text_line_dataset(op: KernelNode) -> Compute:
    files = op.files

    def compute(step: StepContext, filenames: Array, compression_type: Array, buffer_size: Array) -> Dataset:
        compression = _compression(compression_type)
        return _from_files(filenames, lambda _, name: text_lines(files, name, 0, compression))

    return compute


@kernel("TFRecordDataset", "TFRecordDatasetV2", kind=Kind.STATEFUL)
def tf_record_dataset(op: KernelNode) -> Compute:
    """The records of TFRecord files, from an offset in each where `byte_offsets` says so."""
    files = op.files

    def compute(
        step: StepContext,
        filenames: Array,
        compression_type: Array,
        buffer_size: Array,
        byte_offsets: Array | None = None,
    ) -> Dataset:
        compression = _compression(compression_type)
        offsets: list[int] = [] if byte_offsets is None else np.atleast_1d(byte_offsets).tolist()
        require(
            not offsets or len(offsets) == np.size(filenames),
            f"`byte_offsets` must be empty or have one entry for each of the {np.size(filenames)} files",
        )

        def records(position: int, name: str) -> Iterator[Record]:
            first = offsets[position] if offsets else 0
            return (record for record in tf_records(files, name, compression) if record[0] >= first)

        return _from_files(filenames, records)

    return compute


@kernel("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2", kind=Kind.STATEFUL)
def fixed_length_record_dataset(op: KernelNode) -> Compute:
    files = op.files

    def compute(
        step: StepContext,
        filenames: Array,
        header_bytes: Array,
        record_bytes: Array,
        footer_bytes: Array,
        buffer_size: Array,
        compression_type: Array | None = None,
    ) -> Dataset:
        header, record = integer(header_bytes, "header_bytes"), integer(record_bytes, "record_bytes")
        footer = integer(footer_bytes, "footer_bytes")
        require(header >= 0, "`header_bytes` must be >= 0")
        require(record > 0, "`record_bytes` must be > 0")
        require(footer >= 0, "`footer_bytes` must be >= 0")
        compression = "" if compression_type is None else _compression(compression_type)

        def records(_: int, name: str) -> Iterator[Record]:
            body = len(read_bytes(files, name, compression)) - header - footer
            require(
                body % record == 0,
                f'Excluding the header ({header} bytes) and footer ({footer} bytes), input file "{name}" has body '
                f"length {body} bytes, which is not an exact multiple of the record length ({record} bytes).",
            )
            yield from fixed_records(files, name, record, header, footer, 0, compression)

        return _from_files(filenames, records)

    return compute


@kernel("MatchingFilesDataset", "ExperimentalMatchingFilesDataset", kind=Kind.STATEFUL)
def matching_files_dataset(op: KernelNode) -> Compute:
    """The files that match any of the patterns, in order of their names."""
    files = op.files

    def compute(step: StepContext, patterns: Array) -> Dataset:
        def start(run: Run) -> Next:
            names: Any = np.unique(np.asarray(all_matching(files, np.atleast_1d(patterns)), object)).tolist()
            names.reverse()
            return lambda: [np.array(names.pop(), object)] if names else None

        return Dataset(start, UNKNOWN)

    return compute
