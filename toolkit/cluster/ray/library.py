"""The Ray library, imported when it is asked for: it is an extra, and takes a second."""

from __future__ import annotations

import importlib
import logging
import os
from pathlib import Path
from typing import Any

from toolkit.errors import UsageError

#: unless the user says otherwise: nothing is reported to anybody
_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0"}
#: likewise, for a Ray that is started here: it listens at loopback alone (elsewhere Ray asks for the address that
#: leads out), nobody looks at its metrics, and actors have this process's priority, whose work they do
_OWN_SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_enable_metrics_collection": "0", "RAY_worker_niceness": "0",
}  # fmt: skip

#: where Ray looks for the token that it shows to a cluster
_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_TOKEN_FILE = Path.home() / ".ray" / "auth_token"


def ray(*, own: bool = False) -> Any:
    """The module `ray`.

    Args:
        own: a Ray of this process's own will be started.

    Raises:
        UsageError: it is not installed.
    """
    if not own and (any(os.environ.get(name) for name in _TOKENS) or _TOKEN_FILE.is_file()):
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # heads of Ray's own making ask for it
    for name, value in (_SETTINGS | _OWN_SETTINGS if own else _SETTINGS).items():
        os.environ.setdefault(name, value)
    try:
        module = importlib.import_module("ray")
    except ModuleNotFoundError:
        raise UsageError(
            "steps in actors need Ray, which is not installed; run: pip install 'graphmill[ray]'"
        ) from None
    if own:
        logging.getLogger("ray").setLevel(logging.ERROR)
    return module
