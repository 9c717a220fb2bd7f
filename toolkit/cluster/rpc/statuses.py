"""Statuses on the wire: gRPC's codes are the canonical ones, so an error is the same on both sides."""

from __future__ import annotations

from typing import Any

from toolkit.cluster.rpc.library import grpc
from toolkit.errors import (
    BY_CODE,
    BugError,
    GraphmillError,
    InternalError,
    InvalidArgumentError,
    OpError,
    PermissionDeniedError,
    UnknownError,
)

#: of gRPC's codes, UNAUTHENTICATED is the one that no OpError has
_UNAUTHENTICATED = 16


def to_error(code: int, message: str, *, node: str | None = None) -> OpError:
    """The error of a canonical code."""
    return BY_CODE.get(code, UnknownError)(message, node=node)


def from_call(error: Any, where: str) -> OpError:
    """The error of a failed call.

    Args:
        error: a `grpc.RpcError` that a call raised.
        where: who was asked what, for a message that says nothing by itself.
    """
    code: int = error.code().value[0]
    details: str = error.details() or ""
    if code == _UNAUTHENTICATED:
        return PermissionDeniedError(f"{where}: {details or 'the server asks for a token'}")
    return to_error(code, details or f"{where}: {error.code().name}")


def status_of(error: BaseException) -> tuple[int, str]:
    """The canonical code and the message of what was raised, for the wire.

    A mistake in what was sent is INVALID_ARGUMENT, one of ours INTERNAL.
    """
    if isinstance(error, OpError):
        return error.code, str(error)
    if isinstance(error, GraphmillError) and not isinstance(error, BugError):
        return InvalidArgumentError.code, str(error)
    return InternalError.code, f"{type(error).__name__}: {error}"


def abort(context: Any, error: BaseException) -> None:
    """End a call with the status of an error; raises, as gRPC's contexts do."""
    code, message = status_of(error)
    known = {each.value[0]: each for each in grpc().StatusCode}
    context.abort(known[code], message)
