"""Summaries that a step writes by itself: writers are resources of the graph, and each summary is an op that writes.

Whether an op writes is decided while the graph is made, or, where `record_if` is given a tensor, in the step. Without a
default writer there is nothing to do and nothing is added but a NoOp.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction import session_stack
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import control_dependencies, device, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import math_ops
from toolkit.client.summaries.summary import tagged
from toolkit.client.train.global_step import get_or_create_global_step
from toolkit.errors import ArgumentValueError, OperandTypeError
from toolkit.graph import dtypes

#: collections of TensorFlow's names: operations that make writers, and all that writes
INITIALIZERS, SUMMARIES = "_SUMMARY_WRITER_V2", "_SUMMARY_V2"
_CPU = "cpu:0"


class _Defaults(threading.local):
    """What holds in a thread: the writer, and whether it is used (None: nobody has said)."""

    def __init__(self) -> None:
        self.writer: ResourceSummaryWriter | None = None
        self.recording: Any = None


_defaults = _Defaults()


class SummaryWriter:
    """Where summaries go; this one leads nowhere.

    Methods return operations that a session runs, or None where there is nothing to run.
    """

    def set_as_default(self) -> None:
        """Make it the writer of this thread."""

    def as_default(self) -> AbstractContextManager[Any]:
        """A context in which it is the writer of this thread."""
        return self._nowhere()

    @contextmanager
    def _nowhere(self) -> Generator[None]:
        yield None

    def init(self) -> Any:
        """The operation that opens the file."""

    def flush(self) -> Any:
        """The operation that writes out what waits."""

    def close(self) -> Any:
        """The operation that flushes and closes the file."""


class ResourceSummaryWriter(SummaryWriter):
    """A writer that is a resource of the graph."""

    def __init__(self, shared_name: str | None, opened: Callable[[Tensor], Operation]):
        self.resource: Tensor = ops.summary_writer(shared_name=shared_name or "")
        self._opened = opened
        get_default_graph().add_to_collection(INITIALIZERS, opened(self.resource))

    def set_as_default(self) -> None:
        _defaults.writer = self

    def as_default(self) -> AbstractContextManager[Any]:
        return self._as_default()

    @contextmanager
    def _as_default(self) -> Generator[ResourceSummaryWriter]:
        before, _defaults.writer = _defaults.writer, self
        try:
            yield self
            self.flush()
        finally:
            _defaults.writer = before

    def init(self) -> Any:
        return self._opened(self.resource)

    def flush(self) -> Any:
        return flush(self)

    def close(self) -> Any:
        with control_dependencies([self.flush()]), device(_CPU):
            return ops.close_summary_writer(self.resource)


def create_file_writer(
    logdir: Any, max_queue: Any = None, flush_millis: Any = None, filename_suffix: Any = None, name: Any = None
) -> SummaryWriter:
    """A writer of an event file.

    Args:
        logdir: the folder; None: a writer that leads nowhere.
        max_queue: how many summaries wait before they are written; None: 10.
        flush_millis: how long they wait at most, in milliseconds; None: 120,000.
        filename_suffix: None: ".v2".
        name: writers of one name are one resource; None: "logdir:" and the folder.
    """
    if logdir is None:
        return SummaryWriter()
    folder = str(logdir)
    with device(_CPU):
        most = constant(10 if max_queue is None else max_queue)
        wait = constant(120_000 if flush_millis is None else flush_millis)
        suffix = constant(".v2" if filename_suffix is None else filename_suffix)

        def opened(resource: Tensor) -> Operation:
            return ops.create_summary_file_writer(resource, folder, most, wait, suffix)

        return ResourceSummaryWriter(f"logdir:{folder}" if name is None else name, opened)


def initialize(graph: Any = None, session: Any = None) -> None:
    """Open the files of all writers, and write a graph there.

    Args:
        graph: a Graph or a GraphDef; None: none is written.
        session: None: the default one.

    Raises:
        RuntimeError: there is no default writer.
        ValueError: there is no session.
    """
    if _defaults.writer is None:
        raise RuntimeError("there is no default writer: use `with writer.as_default()`")
    session = session_stack.get_default_session() if session is None else session
    if session is None:
        raise ArgumentValueError("there is no default session: pass one as `session`")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        given = array_ops.placeholder(dtypes.string)
        whole = graph.as_graph_def(add_shapes=True) if isinstance(graph, Graph) else graph
        session.run(write_graph(given, 0), {given: whole.SerializeToString()})


def summary_writer_initializer_op() -> list[Operation]:
    """The operations that open the files of all writers of the graph."""
    return get_default_graph().get_collection(INITIALIZERS)


def all_summary_ops() -> list[Any]:
    """What writes summaries in this graph."""
    return get_default_graph().get_collection(SUMMARIES)


def _recording() -> Any:
    """Whether summaries are written: a bool, or a tensor."""
    chosen = _defaults.recording
    chosen = chosen() if callable(chosen) else chosen
    return False if chosen is None else chosen


def should_record_summaries() -> Tensor:
    """Whether summaries are written, as a tensor; they are not where nobody has said so."""
    return ops.logical_and(True, convert_to_tensor(_recording(), dtypes.bool_))


@contextmanager
def record_if(condition: Any) -> Generator[None]:
    """A context in which summaries are written where the condition holds: a bool, a tensor, or a function."""
    before, _defaults.recording = _defaults.recording, condition
    try:
        yield
    finally:
        _defaults.recording = before


def always_record_summaries() -> AbstractContextManager[None]:
    """A context in which summaries are written."""
    return record_if(True)


def never_record_summaries() -> AbstractContextManager[None]:
    """A context in which no summaries are written."""
    return record_if(False)


def record_summaries_every_n_global_steps(n: Any, global_step: Any = None) -> AbstractContextManager[None]:
    """A context in which summaries are written at steps that are multiples of n."""
    step = get_or_create_global_step() if global_step is None else global_step
    with device(_CPU):
        return record_if(math_ops.equal(convert_to_tensor(step) % n, 0))


def _step(step: Any) -> Any:
    if step is None:
        return convert_to_tensor(get_or_create_global_step())
    return step if isinstance(step, Tensor) else convert_to_tensor(step, dtypes.int64)


def written(name: str, values: Any, write: Callable[[Tensor, Tensor, str, str], Operation], family: Any = None) -> Any:
    """An op that writes a summary, in the collection of those.

    Args:
        write: given the writer's handle, the values, a tag and the name of its node, adds it.
        family: stands before the tag.

    Returns:
        A bool that is True once it is written and False where it is not; a NoOp without a default writer.
    """
    writer = _defaults.writer
    if writer is None:
        return ops.no_op()
    outer = get_default_graph().get_name_scope()

    def record() -> Tensor:
        with name_scope(f"{outer}/" if outer else None), tagged(name, family, [values]) as (tag, scope):
            done = write(writer.resource, array_ops.identity(values), tag, scope)
            with control_dependencies([done]):
                return constant(True)

    with device(_CPU):
        recording = _recording()
        if isinstance(recording, Tensor):
            done = cond(recording, record, lambda: constant(False))
        else:
            done = record() if recording else constant(False)
        get_default_graph().add_to_collection(SUMMARIES, done)
    return done


def generic(name: str, tensor: Any, metadata: Any = None, family: Any = None, step: Any = None) -> Any:
    """Writes any tensor.

    Args:
        metadata: a SummaryMetadata, or one serialized.
    """

    def write(resource: Tensor, values: Tensor, tag: str, scope: str) -> Operation:
        text = metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata
        return ops.write_summary(resource, _step(step), values, tag, "" if text is None else text, name=scope)

    return written(name, tensor, write, family)


def scalar(name: str, tensor: Any, family: Any = None, step: Any = None) -> Any:
    """Writes one number."""

    def write(resource: Tensor, values: Tensor, tag: str, scope: str) -> Operation:
        return ops.write_scalar_summary(resource, _step(step), tag, values, name=scope)

    return written(name, tensor, write, family)


def histogram(name: str, tensor: Any, family: Any = None, step: Any = None) -> Any:
    """Writes the distribution of the values."""

    def write(resource: Tensor, values: Tensor, tag: str, scope: str) -> Operation:
        return ops.write_histogram_summary(resource, _step(step), tag, values, name=scope)

    return written(name, tensor, write, family)


def image(
    name: str, tensor: Any, bad_color: Any = None, max_images: Any = 3, family: Any = None, step: Any = None
) -> Any:
    """Writes the first pictures of a batch [batch, height, width, 1, 3 or 4]; `bad_color` stands for NaN."""

    def write(resource: Tensor, values: Tensor, tag: str, scope: str) -> Operation:
        color = constant([255, 0, 0, 255], dtypes.uint8) if bad_color is None else bad_color
        return ops.write_image_summary(resource, _step(step), tag, values, color, max_images=max_images, name=scope)

    return written(name, tensor, write, family)


def audio(name: str, tensor: Any, sample_rate: Any, max_outputs: Any, family: Any = None, step: Any = None) -> Any:
    """Writes clips [batch, frames, channels] of so many frames a second."""

    def write(resource: Tensor, values: Tensor, tag: str, scope: str) -> Operation:
        return ops.write_audio_summary(
            resource, _step(step), tag, values, sample_rate, max_outputs=max_outputs, name=scope
        )

    return written(name, tensor, write, family)


def write_graph(param: Any, step: Any = None, name: Any = None) -> Any:
    """Writes a serialized GraphDef, a string tensor, whatever `record_if` says.

    Raises:
        TypeError: it is no tensor.
    """
    if not isinstance(param, Tensor):
        raise OperandTypeError(f"graph: expected a string tensor, as a placeholder, got {type(param).__name__}")
    if _defaults.writer is None:
        return ops.no_op()
    with device(_CPU):
        return ops.write_graph_summary(_defaults.writer.resource, _step(step), array_ops.identity(param), name=name)


def import_event(tensor: Any, name: Any = None) -> Operation:
    """Writes a serialized Event as it is.

    Raises:
        RuntimeError: there is no default writer.
    """
    if _defaults.writer is None:
        raise RuntimeError("there is no default writer: use `with writer.as_default()`")
    return ops.import_event(_defaults.writer.resource, tensor, name=name)


def flush(writer: Any = None, name: Any = None) -> Operation:
    """Writes out what waits.

    Args:
        writer: a SummaryWriter or its handle; None: the default one, and a NoOp where there is none.
    """
    writer = _defaults.writer if writer is None else writer
    if writer is None:
        return ops.no_op()
    with device(_CPU):
        handle = writer.resource if isinstance(writer, ResourceSummaryWriter) else writer
        return ops.flush_summary_writer(handle, name=name)
