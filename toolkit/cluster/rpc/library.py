"""The gRPC library, imported when it is asked for: it is an extra, and takes a tenth of a second."""

from __future__ import annotations

import os
from types import ModuleType

from toolkit.errors import UsageError

#: unless the user says otherwise: children that are forked have no use for the library and should not hear of it, and
#: what it writes about connections that end is told by the status of a call
_SETTINGS = {"GRPC_ENABLE_FORK_SUPPORT": "false", "GRPC_VERBOSITY": "NONE"}


def grpc() -> ModuleType:
    """The module `grpc`.

    Raises:
        UsageError: it is not installed.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import grpc as module
    except ModuleNotFoundError:
        raise UsageError(
            "clusters of several processes talk over gRPC, and grpcio is not installed; run: "
            "pip install 'graphmill[grpc]'"
        ) from None
    return module
