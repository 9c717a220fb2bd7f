"""Statuses on the wire: gRPC's codes are the canonical ones, so an error is the same on both sides.

The node that failed stands behind the message as TensorFlow's clients look for it: [[{{node NAME}}]].
"""

from __future__ import annotations

import re
from typing import Any

from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.unreachable import reason
from toolkit.errors import (
    BY_CODE,
    BugError,
    CancelledError,
    GraphmillError,
    InternalError,
    InvalidArgumentError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnknownError,
)

#: what TensorFlow's servers add to a message: what they have logged of late, of other steps too
_LOGS = "\nRecent warning and error logs:"
#: how a message names the node that it is about; TensorFlow 1 wrote the node's definition behind the name
_NODE_MARK = re.compile(r"\s*\[\[(?:Node: )?(?:\{\{node ([^}\s]+)\}\}[^]\n]*|([\w./>-]+) = [^\n]*)\]\]")
#: likewise an edge between two tasks, beside the mark of a node
_EDGE_MARK = re.compile(r"\n\t \[\[[\w./>-]+\]\]")
#: and what gRPC has to say about a call between two of them
_CALLS = "\nAdditional GRPC error information from"
#: what several tasks ended with, one paragraph each, under the code of the one that was heard of first
_SUMMED_UP = re.compile(r"^([A-Z_]+): From /job:", re.MULTILINE)
_CODES = {kind.status: code for code, kind in BY_CODE.items()}
#: of gRPC's codes, UNAUTHENTICATED is the one that no OpError has
_UNAUTHENTICATED = 16


def to_error(code: int, message: str, *, node: str | None = None) -> OpError:
    """The error of a canonical code; the node is the first one that the message has a mark of.

    A failing task cancels what the others do, and TensorFlow's master may hear of that before it hears of the
    failure: where a message sums up several ends, the error is of the first that is no cancellation.
    """
    message, has_logs, logs = message.partition(_LOGS)
    message = message.partition(_CALLS)[0]
    if code == CancelledError.code:
        ends = (_CODES.get(name) for name in _SUMMED_UP.findall(message))
        code = next((end for end in ends if end not in (None, code)), code)
    mark = _NODE_MARK.search(message)
    if mark is None and has_logs:  # those of other errors come first
        marks = list(_NODE_MARK.finditer(logs))
        if marks and node is None:
            node = marks[-1].group(1) or marks[-1].group(2)
    elif mark is not None and node is None:
        node = mark.group(1) or mark.group(2)
        message = _EDGE_MARK.sub("", _NODE_MARK.sub("", message))
    return BY_CODE.get(code, UnknownError)(message, node=node)


def from_call(error: Any, where: str, address: str = "") -> OpError:
    """The error of a failed call.

    Args:
        error: a `grpc.RpcError` that a call raised.
        where: who was asked what, for a message that says nothing by itself.
        address: host:port that was called, for why it cannot be reached.
    """
    code: int = error.code().value[0]
    details: str = error.details() or ""
    if code == _UNAUTHENTICATED:
        return PermissionDeniedError(f"{where}: {details or 'the server asks for a token'}")
    if code == UnavailableError.code and address:
        details = reason(details, address)
    return to_error(code, details or f"{where}: {error.code().name}")


def status_of(error: BaseException) -> tuple[int, str]:
    """The canonical code and the message of what was raised, for the wire.

    A mistake in what was sent is INVALID_ARGUMENT, one of ours INTERNAL.
    """
    if isinstance(error, MemoryError):  # outside of a step, which says more
        return ResourceExhaustedError.code, f"this task has not so much memory left: {error}"
    if isinstance(error, RecursionError):
        return ResourceExhaustedError.code, "the graph's functions call one another too deep for the stack"
    if not isinstance(error, GraphmillError):
        return InternalError.code, f"{type(error).__name__}: {error}"
    message = error.message if error.node is None else f"{error.message}\n\t [[{{{{node {error.node}}}}}]]"
    if isinstance(error, OpError):
        return error.code, message
    return (InternalError if isinstance(error, BugError) else InvalidArgumentError).code, message


def abort(context: Any, error: BaseException) -> None:
    """End a call with the status of an error; raises, as gRPC's contexts do."""
    code, message = status_of(error)
    known = {each.value[0]: each for each in grpc().StatusCode}
    context.abort(known[code], message)
