"""Why a task cannot be reached, in a few words: gRPC tells it in its own, and at length."""

from __future__ import annotations

import re

_REASONS: tuple[tuple[str, str], ...] = (
    ("certificate has expired", "its certificate has expired"),
    ("certificate is not yet valid", "its certificate is not valid yet (or this machine's clock is wrong)"),
    ("Hostname Verification Check failed", "its certificate is not for the name '{host}'"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not signed by those of GRAPHMILL_CLUSTER_CA ({detail})"),
    ("WRONG_VERSION_NUMBER", "it speaks no TLS, but GRAPHMILL_CLUSTER_CA is set here"),
    ("Tls handshake failed", "no TLS connection could be made ({detail})"),
    ("hostname lookup", "there is no host of the name '{host}'"),
    ("DNS resolution failed", "there is no host of the name '{host}'"),
    ("Domain name not found", "there is no host of the name '{host}'"),
    ("Connection refused", "nobody listens there"),
    ("No route to host", "there is no way to that host"),
    ("Network is unreachable", "there is no way to that host's network"),
    ("Received http2 header", "what answers there is no task, or a proxy in front of it ({details})"),
    ("Trying to connect an http1.x server", "what answers there is no task: it speaks HTTP/1"),
)
#: what a plain connection to a server with TLS ends with; later, connections end so for other reasons
_CLOSED = ("Socket closed", "Connection reset by peer")
_FIRST = "failed to connect"
#: of these, waiting longer changes nothing
_LASTING = ("certificate", "Hostname Verification", "WRONG_VERSION_NUMBER", "Tls handshake failed")
_VERIFICATION = re.compile(r"CERTIFICATE_VERIFY_FAILED: ([^:]+)")


def reason(details: str, address: str) -> str:
    """What a call's details say; what is not known, as it is.

    Args:
        details: of an UNAVAILABLE call.
        address: host:port that was called.
    """
    found = _VERIFICATION.search(details)
    detail = found[1].strip() if found else details.rpartition("error:")[2]
    for mark, text in _REASONS:
        if mark in details:
            return text.format(host=address.rpartition(":")[0], detail=detail, details=details)
    if details.startswith(_FIRST) and any(mark in details for mark in _CLOSED):
        return "it closed the connection; if it speaks TLS, set GRAPHMILL_CLUSTER_CA"
    return details


def is_lasting(details: str) -> bool:
    """Whether the task is there, and will not do as it is."""
    return any(mark in details for mark in _LASTING)
