"""Datasets of files: their names, lines and records."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.create import create_op
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data.dataset import Dataset, dataset_of
from toolkit.client.data.elements import int64
from toolkit.client.data.leaves import TensorLeaf
from toolkit.client.data.mapping import flat_map, parallel_interleave
from toolkit.client.data.sources import slices_of
from toolkit.client.flow import control_flow
from toolkit.client.math import math_ops
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

_BUFFER = 256 * 1024
#: the runtime chooses
_CHOSEN = -1
_RECORD = TensorLeaf(dtypes.string, Shape([]))


def list_files(file_pattern: Any, shuffle: Any, seed: Any) -> Dataset:
    """The names of files that match; in a new order in each pass, unless `shuffle` is False.

    A step that finds none fails.
    """
    with name_scope("list_files"):
        pattern = convert_to_tensor(file_pattern, dtypes.string, name="file_pattern")
        found = ops.matching_files(pattern)
        some = ops.greater(array_ops.shape(found)[0], 0, name="match_not_empty")
        joined = _joined(pattern)
        message = ops.add("No files matched pattern: ", joined, name="message")
        checked = control_flow.Assert(some, [message], summarize=1, name="assert_not_empty")
        with get_default_graph().control_dependencies([checked]):
            found = array_ops.identity(found)
        names = slices_of(found, is_files=True)
        if shuffle or shuffle is None:
            count = math_ops.maximum(array_ops.shape(found, out_type=dtypes.int64)[0], 1)
            names = names.shuffle(count, seed)
        return names


def _joined(pattern: Tensor) -> Tensor:
    """All patterns in one text."""
    rank = pattern.static_shape.rank
    if rank is None:
        raise GraphError("list_files needs a pattern, or a list of patterns, whose rank is known")
    with name_scope("ReduceJoin"):
        axes = convert_to_tensor(list(range(rank)), dtypes.int32, name="Const")
        return ops.reduce_join(pattern, axes, separator=", ", name="ReduceJoin")


def _filenames(filenames: Any) -> Dataset:
    """A dataset of names of a list, a tensor or a dataset.

    Raises:
        TypeError: they are no texts.
    """
    if isinstance(filenames, Dataset):
        leaf = filenames.structure
        if not isinstance(leaf, TensorLeaf) or leaf.dtype.base is not dtypes.string:
            raise TypeError(f"file names must be texts, not {leaf!r}")
        return filenames
    names = convert_to_tensor(filenames, dtypes.string)
    return slices_of(array_ops.reshape(names, [-1], name="flat_filenames"), is_files=True)


def _buffer_size(buffer_size: Any, default: int = _BUFFER) -> Tensor:
    return int64(default if buffer_size is None else buffer_size, "buffer_size")


def _compression(compression_type: Any) -> Tensor:
    kind = "" if compression_type is None else compression_type
    return convert_to_tensor(kind, dtypes.string, name="compression_type")


class TFRecordDataset(Dataset):
    """The records of TFRecord files."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        def read_one_file(filename: Any) -> Dataset:
            inputs = [filename, _compression(compression_type), _buffer_size(buffer_size, _CHOSEN)]
            return dataset_of(create_op("TFRecordDataset", inputs).outputs[0], _RECORD)

        _read(self, filenames, read_one_file, num_parallel_reads)


class TextLineDataset(Dataset):
    """The lines of text files."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        def read_one_file(filename: Any) -> Dataset:
            inputs = [filename, _compression(compression_type), _buffer_size(buffer_size)]
            return dataset_of(create_op("TextLineDataset", inputs).outputs[0], _RECORD)

        _read(self, filenames, read_one_file, num_parallel_reads)


class FixedLengthRecordDataset(Dataset):
    """The records of files, all of one length."""

    def __init__(
        self, filenames: Any, record_bytes: Any, header_bytes: Any = None, footer_bytes: Any = None,
        buffer_size: Any = None, compression_type: Any = None, num_parallel_reads: Any = None, name: str | None = None,
    ):  # fmt: skip
        def read_one_file(filename: Any) -> Dataset:
            length = int64(record_bytes, "record_bytes")
            header = int64(0 if header_bytes is None else header_bytes, "header_bytes")
            inputs = [
                filename, header, length, int64(0 if footer_bytes is None else footer_bytes, "footer_bytes"),
                _buffer_size(buffer_size), _compression(compression_type),
            ]  # fmt: skip
            return dataset_of(create_op("FixedLengthRecordDatasetV2", inputs).outputs[0], _RECORD)

        _read(self, filenames, read_one_file, num_parallel_reads)


def _read(made: Dataset, filenames: Any, read_one_file: Any, num_parallel_reads: Any) -> None:
    """The records of files, one file after the other or several in turns."""
    names = _filenames(filenames)
    if num_parallel_reads is None:
        records = flat_map(names, read_one_file)
    else:
        records = parallel_interleave(names, read_one_file, num_parallel_reads)
    made.hold(records.variant, records.structure, records.given_options)
