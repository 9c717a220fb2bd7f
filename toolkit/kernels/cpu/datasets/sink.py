"""Ops that read a dataset to its end for what it does: tables and record files filled from one."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.formats.records.tfrecord import TFRecordWriter, check_compression
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import require, text
from toolkit.kernels.cpu.files.file_io import file_error
from toolkit.kernels.datasets.base import Run, a_dataset
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import lookup
from toolkit.kernels.resources.tables import LookupTable
from toolkit.kernels.types import Array


@kernel("InitializeTableFromDataset", kind=Kind.STATEFUL)
def initialize_table_from_dataset(op: KernelNode) -> Compute:
    """Fills a table with the (key, value) elements of a dataset."""

    def compute(step: StepContext, handle: Any, dataset: Any) -> None:
        table = lookup(step, handle, LookupTable)
        require(table.fixed, "the table is not initializable")
        current = a_dataset(dataset).start(Run(step))
        pairs: list[tuple[Any, Any]] = []
        while (element := current()) is not None:
            require(len(element) == 2, "The dataset must have elements of a key and a value")
            key, value = (np.asarray(part) for part in element)
            require(key.ndim == 0 and value.ndim == 0, "The dataset's keys and values must be scalars")
            pairs.append((key.item(), value.item()))
        table.initialize(pairs)

    return compute


@kernel("DatasetToTFRecord", "ExperimentalDatasetToTFRecord", kind=Kind.STATEFUL)
def dataset_to_tfrecord(op: KernelNode) -> Compute:
    """Writes a dataset of strings as a record file."""
    files = op.files

    def compute(step: StepContext, dataset: Any, filename: Array, compression_type: Array) -> None:
        path, compression = text(filename, "filename"), text(compression_type, "compression_type")
        current = a_dataset(dataset).start(Run(step))
        check_compression(compression)
        try:
            raw = files.open(path, "wb")
        except OSError as error:
            raise file_error(error, path) from None
        with TFRecordWriter(raw, compression) as writer:
            while (element := current()) is not None:
                value = np.asarray(element[0])
                if value.ndim or value.dtype != object:
                    raise InvalidArgumentError("DatasetToTFRecord wants a dataset of scalar strings")
                writer.write(value.item())

    return compute
