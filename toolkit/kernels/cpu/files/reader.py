"""The ops of readers. LMDBReader has no kernel: it needs a library that is not among the dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from toolkit.kernels.context import Done, StepContext
from toolkit.kernels.cpu.common import require, require_scalar
from toolkit.kernels.queues.base import QueueResource
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import ResourceHandle, lookup, resource_name, string_handle
from toolkit.kernels.resources.readers import Reader
from toolkit.kernels.resources.records import (
    Record,
    check_compression,
    fixed_records,
    read_bytes,
    text_lines,
    tf_records,
)
from toolkit.kernels.types import Array


def _text_line(op: KernelNode, name: str) -> Callable[[], Reader]:
    skip, files = op.attr("skip_header_lines"), op.files
    require(skip >= 0, f"skip_header_lines must be >= 0 not {skip}")
    return lambda: Reader(name, lambda path: text_lines(files, path, skip))


def _fixed_length(op: KernelNode, name: str) -> Callable[[], Reader]:
    record, header, footer, hop = (op.attr(f"{part}_bytes") for part in ("record", "header", "footer", "hop"))
    encoding, files = op.text("encoding", ""), op.files
    require(header >= 0, f"header_bytes must be >= 0 not {header}")
    require(record > 0, f"record_bytes must be > 0 not {record}")
    require(footer >= 0, f"footer_bytes must be >= 0 not {footer}")
    require(hop >= 0, f"hop_bytes must be >= 0 not {hop}")
    check_compression(encoding)
    return lambda: Reader(name, lambda path: fixed_records(files, path, record, header, footer, hop, encoding))


def _tf_record(op: KernelNode, name: str) -> Callable[[], Reader]:
    compression, files = op.text("compression_type"), op.files
    check_compression(compression)
    return lambda: Reader(name, lambda path: tf_records(files, path, compression))


def _whole_file(op: KernelNode, name: str) -> Callable[[], Reader]:
    files = op.files

    def read(path: str) -> Iterator[Record]:
        yield 0, read_bytes(files, path)

    return lambda: Reader(name, read, whole=True)


def _identity(op: KernelNode, name: str) -> Callable[[], Reader]:
    def read(path: str) -> Iterator[Record]:
        yield 0, path.encode(errors="surrogateescape")

    return lambda: Reader(name, read, whole=True)


_READERS: dict[str, Callable[[KernelNode, str], Callable[[], Reader]]] = {
    "TextLineReader": _text_line,
    "FixedLengthRecordReader": _fixed_length,
    "TFRecordReader": _tf_record,
    "WholeFileReader": _whole_file,
    "IdentityReader": _identity,
}


@kernel(*_READERS, *(f"{name}V2" for name in _READERS), kind=Kind.STATEFUL)
def make_reader(op: KernelNode) -> Compute:
    """The handle of a reader, made when it is first asked for."""
    container, name = resource_name(op)
    make = _READERS[op.op.removesuffix("V2")](op, name)
    handle: Any = ResourceHandle(container, name, "Reader") if op.op.endswith("V2") else string_handle(container, name)

    def compute(step: StepContext) -> Any:
        step.resources.get_or_create(container, name, Reader, make)
        return handle

    return compute


@kernel("ReaderRead", "ReaderReadV2", kind=Kind.ASYNC)
def read(op: KernelNode) -> Compute:
    def compute(step: StepContext, done: Done, handle: Any, queue: Any) -> None:
        def finish(result: Any) -> None:
            done(result if isinstance(result, Exception) else [np.array(part[0], object) for part in result])

        reader = lookup(step, handle, Reader)
        reader.read(lookup(step, queue, QueueResource), None, step.cancellation, finish)

    return compute


@kernel("ReaderReadUpTo", "ReaderReadUpToV2", kind=Kind.ASYNC)
def read_up_to(op: KernelNode) -> Compute:
    def compute(step: StepContext, done: Done, handle: Any, queue: Any, limit: Array) -> None:
        def finish(result: Any) -> None:
            done(result if isinstance(result, Exception) else [np.array(part, object) for part in result])

        require_scalar(limit, "num_records")
        require(int(limit) >= 0, f"num_records must not be negative, but is {int(limit)}")
        reader = lookup(step, handle, Reader)
        if not int(limit):
            finish(([], []))
            return
        reader.read(lookup(step, queue, QueueResource), int(limit), step.cancellation, finish)

    return compute


@kernel("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2", kind=Kind.STATEFUL)
def num_records(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> Array:
        return np.int64(lookup(step, handle, Reader).num_records)

    return compute


@kernel("ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2", kind=Kind.STATEFUL)
def num_work_units(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> Array:
        return np.int64(lookup(step, handle, Reader).work_finished)

    return compute


@kernel("ReaderReset", "ReaderResetV2", kind=Kind.STATEFUL)
def reset(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> None:
        lookup(step, handle, Reader).reset()

    return compute


@kernel("ReaderSerializeState", "ReaderSerializeStateV2", kind=Kind.STATEFUL)
def serialize_state(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> Array:
        return np.array(lookup(step, handle, Reader).serialize(), object)

    return compute


@kernel("ReaderRestoreState", "ReaderRestoreStateV2", kind=Kind.STATEFUL)
def restore_state(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any, state: Array) -> None:
        require_scalar(state, "Reader state")
        lookup(step, handle, Reader).restore(np.asarray(state).item())

    return compute
