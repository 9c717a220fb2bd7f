"""A graph as an event file that TensorBoard's graph view opens."""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import DecodeError

from schemas import config_pb2
from toolkit.errors import FormatError, UsageError
from toolkit.formats import io
from toolkit.formats.records.events import EventWriter
from toolkit.graph.graph import Graph


def write_tensorboard(logdir: str, graph: Graph, run_metadata: str | None = None) -> str:
    """Write an event file with a graph, and with the RunMetadata of a step, into a folder.

    Args:
        run_metadata: a file with a serialized RunMetadata; TensorBoard colours by its times and memory.

    Returns:
        the file that was written.

    Raises:
        UsageError: the folder is a file.
        FormatError: `run_metadata` is no RunMetadata.
        GraphmillError: the folder cannot be written.
    """
    if Path(logdir).is_file():
        raise UsageError(f"'{logdir}' is a file; --tensorboard writes into a folder")
    data = _metadata(run_metadata) if run_metadata is not None else None
    with EventWriter(logdir) as writer:
        writer.add_graph(graph.to_proto().SerializeToString(deterministic=True))
        if data is not None:
            writer.add_run_metadata(data, "step")
        return writer.path


def _metadata(path: str) -> bytes:
    data = io.read_bytes(path)
    message = config_pb2.RunMetadata()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise FormatError("is no RunMetadata message", file=path) from None
    if not message.step_stats.dev_stats:
        raise FormatError("is no RunMetadata message of a traced step: it has no step_stats", file=path)
    return data
