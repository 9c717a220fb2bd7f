"""The gRPC library, imported when it is asked for: it is an extra, and takes a tenth of a second."""

from __future__ import annotations

from types import ModuleType

from toolkit.errors import UsageError


def grpc() -> ModuleType:
    """The module `grpc`.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import grpc as module
    except ModuleNotFoundError:
        raise UsageError(
            "clusters of several processes talk over gRPC, and grpcio is not installed; run: "
            "pip install 'graphmill[grpc]'"
        ) from None
    return module
