# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The global step, learning rates, coordinators and queue runners, graphs as files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from schemas import event_pb2, graph_pb2, meta_graph_pb2
from toolkit.client.construction import context, session_stack
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.train import global_step as steps
from toolkit.formats.records.events import read_events


def get_global_step(graph: Any = None) -> Any:
    return steps.get_global_step(graph)


def create_global_step(graph: Any = None) -> Any:
    return steps.create_global_step(graph)


def get_or_create_global_step(graph: Any = None) -> Any:
    return steps.get_or_create_global_step(graph)


def global_step(sess: Any, global_step_tensor: Any) -> int:
    return int(sess.run(global_step_tensor))


def assert_global_step(global_step_tensor: Any) -> None:
    """
    Raises:
        TypeError: it is no variable or tensor, of no integer type, or no scalar.
    """
    if not hasattr(global_step_tensor, "graph") or not hasattr(global_step_tensor, "dtype"):
        raise TypeError(f"a global step is a variable or tensor, not {type(global_step_tensor).__name__}")
    name, dtype, shape = global_step_tensor.name, global_step_tensor.dtype, global_step_tensor.static_shape
    if not dtype.base_dtype.is_integer:
        raise TypeError(f"the global step '{name}' has type {dtype}; an integer type is needed")
    if shape.is_fully_defined and shape.rank != 0:
        raise TypeError(f"the global step '{name}' has shape {shape}; a scalar is needed")


def basic_train_loop(
    supervisor: Any, train_step_fn: Any, args: Any = None, kwargs: Any = None, master: str = ""
) -> None:
    """Call `train_step_fn(session, *args, **kwargs)` until the supervisor stops; anew when a session is lost."""
    from toolkit.errors import AbortedError

    lost = True
    while lost:
        lost = False
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
        except AbortedError:
            lost = True


def start_queue_runners(
    sess: Any = None, coord: Any = None, daemon: bool = True, start: bool = True, collection: str = "queue_runners"
) -> list[Any]:
    """The threads of all queue runners of the session's graph."""
    from toolkit.runtime.training.queue_runner import QueueRunner

    session: Any = session_stack.get_default_session() if sess is None else sess
    if session is None:
        raise ValueError("no session is given, and there is no default session; open one, or pass sess=")
    threads: list[Any] = []
    with session.graph.as_default():
        for runner in session.graph.get_collection(collection):
            is_fed = getattr(runner, "in_process_only", False)
            runs = runner if is_fed else QueueRunner.from_proto(runner.to_proto())
            threads += runs.create_threads(session, coord, daemon=daemon, start=start)
    return threads


def add_queue_runner(qr: Any, collection: str = "queue_runners") -> None:
    context.get_default_graph().add_to_collection(collection, qr)


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Write a GraphDef to a file of a folder, which is made; returns its path."""
    from google.protobuf import text_format

    message = graph_or_graph_def.as_graph_def() if hasattr(graph_or_graph_def, "as_graph_def") else graph_or_graph_def
    os.makedirs(logdir, exist_ok=True)
    path = os.path.join(logdir, name)
    data = text_format.MessageToString(message).encode() if as_text else message.SerializeToString(deterministic=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def scalar(name: str, tensor: Any, collections: Any = None, family: Any = None) -> Tensor:
    from toolkit.client.summaries import summary

    return summary.scalar(name, tensor, collections, family)


def histogram(name: str, values: Any, collections: Any = None, family: Any = None) -> Tensor:
    from toolkit.client.summaries import summary

    return summary.histogram(name, values, collections, family)


def image(name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: Any = None) -> Tensor:
    from toolkit.client.summaries import summary

    return summary.image(name, tensor, max_outputs, collections, family)


def audio(
    name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None, family: Any = None
) -> Tensor:
    from toolkit.client.summaries import summary

    return summary.audio(name, tensor, sample_rate, max_outputs, collections, family)


def tensor_summary(
    name: str, tensor: Any, summary_description: Any = None, collections: Any = None, summary_metadata: Any = None,
    family: Any = None, display_name: Any = None,
) -> Tensor:  # fmt: skip
    from toolkit.client.summaries import summary

    return summary.tensor_summary(
        name, tensor, summary_metadata, collections, display_name, summary_description, family
    )


def get_summary_description(node_def: Any) -> Any:
    """The SummaryDescription that a TensorSummary's node has as JSON.

    Raises:
        ValueError: it is a node of another op.
    """
    from google.protobuf import json_format

    from schemas import summary_pb2
    from toolkit.errors import ArgumentValueError

    if node_def.op != "TensorSummary":
        raise ArgumentValueError(f"get_summary_description: expected a node of TensorSummary, got one of {node_def.op}")
    text = node_def.attr["description"].s
    return json_format.Parse(text.decode() or "{}", summary_pb2.SummaryDescription())


def text(name: str, tensor: Any, collections: Any = None) -> Tensor:
    from toolkit.client.summaries import summary

    return summary.text(name, tensor, collections)


def merge(inputs: Any, collections: Any = None, name: Any = None) -> Tensor:
    from toolkit.client import ops

    with name_scope(name, "Merge", list(inputs)):
        merged: Tensor = ops.merge_summary(list(inputs), name=name)
        if collections is not None:
            context.get_default_graph().add_to_collections(collections, merged)
        return merged


def merge_all(key: str = "summaries", scope: Any = None, name: Any = None) -> Tensor | None:
    found = context.get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


def summary_iterator(path: str) -> Iterator[event_pb2.Event]:
    """The events of a file."""
    return read_events(path)


def _meta_graph(graph: Any) -> meta_graph_pb2.MetaGraphDef:
    """A MetaGraphDef with nothing but the graph, or GraphDef."""
    from toolkit.tensorflow.families.train.saver import export_meta_graph

    if hasattr(graph, "as_graph_def"):
        return export_meta_graph(graph=graph, collection_list=[])
    return meta_graph_pb2.MetaGraphDef(graph_def=graph_pb2.GraphDef.FromString(graph.SerializeToString()))


class FileWriter:
    """Writes summaries and graphs to an event file, for TensorBoard."""

    def __init__(
        self, logdir: Any, graph: Any = None, max_queue: int = 10, flush_secs: float = 120, graph_def: Any = None,
        filename_suffix: Any = None, session: Any = None,
    ):  # fmt: skip
        self._logdir = os.fspath(logdir)
        self._suffix, self._flush_secs = filename_suffix or "", flush_secs
        self._open()
        if graph is None and session is not None:
            graph = session.graph
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)
            self.add_meta_graph(_meta_graph(graph if graph_def is None else graph_def))

    def _open(self) -> None:
        from toolkit.formats.records.events import EventWriter

        os.makedirs(self._logdir, exist_ok=True)
        self._writer: EventWriter | None = EventWriter(self._logdir, self._suffix, self._flush_secs)

    def _to(self) -> Any:
        if self._writer is None:
            self._open()
        return self._writer

    def get_logdir(self) -> str:
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        self._to().add_summary(summary, None if global_step is None else int(global_step))

    def add_event(self, event: Any) -> None:
        self._to().add_event(event)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        message = graph_def
        if graph is not None:
            message = graph.as_graph_def(add_shapes=True) if hasattr(graph, "as_graph_def") else graph
        self._to().add_graph(message, None if global_step is None else int(global_step))

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        self._to().add_meta_graph(meta_graph_def, global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        self._to().add_run_metadata(run_metadata, tag, global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        from schemas import event_pb2

        event = event_pb2.Event(session_log=session_log)
        if global_step is not None:
            event.step = int(global_step)
        self._to().add_event(event)

    def flush(self) -> None:
        self._to().flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def reopen(self) -> None:
        if self._writer is None:
            self._open()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
