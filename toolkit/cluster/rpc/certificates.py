"""Files with keys and certificates (PEM), looked at before gRPC takes them: it says of none what is wrong with it."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path

from toolkit.errors import UsageError


def read_pem(variable: str, path: str) -> bytes:
    """What is in the file that an environment variable names; b"" where it names none.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return Path(path).read_bytes() if path else b""
    except OSError as error:
        raise UsageError(f"{variable}: {error.strerror}", file=path) from None


def read_roots(variable: str, path: str) -> bytes:
    """Certificates that those of others are checked by.

    Raises:
        UsageError: the file cannot be read, or has none.
    """
    found = read_pem(variable, path)
    if found:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=found.decode("ascii", "replace"))
        except (ssl.SSLError, ValueError):
            raise UsageError(f"{variable}: there is no certificate in it; expected PEM", file=path) from None
    elif path:
        raise UsageError(f"{variable}: it is empty; expected certificates (PEM)", file=path)
    return found


def check_pair(key: str, certificates: str, roots: bytes) -> None:
    """See that a server can prove itself with these files to who has the roots.

    Args:
        key, certificates: paths.
        roots: b"" where the others know the certificates from elsewhere.

    Raises:
        UsageError: they are no key and certificates, do not belong together, have expired, or the roots have not
            signed them.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # a key that asks for a passphrase would have this process ask at a terminal
        server.load_cert_chain(certificates, key, password=lambda: b"")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            what = f"the key is not that of the certificate in {certificates}"
        else:
            what = f"these are no key without a passphrase and no certificates of it in {certificates}; expected PEM"
        raise UsageError(what, file=key) from None
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False  # which name it is asked for by, its clients know
    trusted = roots or Path(certificates).read_bytes()
    if not roots:
        client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(cadata=trusted.decode("ascii", "replace"))
    try:
        _shake_hands(server, client)
    except ssl.SSLCertVerificationError as error:
        raise UsageError(
            f"nobody would take this certificate: {error.verify_message.rstrip('.')}", file=certificates
        ) from None


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Do so in memory."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(down, up), server.wrap_bio(up, down, server_side=True)]
    for _ in range(4):  # round trips; TLS 1.3 takes two
        for end in ends:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
