"""Targets of the form grpc://HOST:PORT, as `toolkit.runtime.sessions.targets` asks for them."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence

from schemas import config_pb2
from toolkit.cluster.client.calls import MasterCalls
from toolkit.cluster.client.master_session import MasterSession
from toolkit.cluster.client.own_master import OwnMaster, service_at
from toolkit.cluster.rpc.certificates import read_roots
from toolkit.cluster.rpc.channels import Access, ChannelSettings
from toolkit.errors import UsageError
from toolkit.graph.graph import Graph

#: environment variables: the token that a server asks for, and a file with the certificates that its own is checked by
TOKEN = "GRAPHMILL_CLUSTER_TOKEN"
ROOTS = "GRAPHMILL_CLUSTER_CA"
_TARGET = re.compile(r"grpc://((?:\[[0-9a-fA-F:.]+\]|[^/:\s\[\]]+):(\d{1,5}))")


def address_of(target: str) -> str:
    """Host and port of a target.

    Raises:
        UsageError: it has no such form.
    """
    found = _TARGET.fullmatch(target)
    if found is None or not 0 < int(found[2]) < 1 << 16:
        raise UsageError(
            f"'{target}' is no address of a master; expected grpc://HOST:PORT, as in grpc://localhost:2222"
        )
    return found[1]


def access() -> Access:
    """How servers let this process in, from its environment.

    Raises:
        UsageError: the file with certificates cannot be read or has none, or the token has what cannot be sent.
    """
    return Access(os.environ.get(TOKEN, ""), read_roots(ROOTS, os.environ.get(ROOTS, "")))


def open(target: str, graph: Graph, config: config_pb2.ConfigProto) -> MasterSession:
    """A session at the master of that address, which may be one of this process; nothing is asked of it yet.

    Of `config.rpc_options` the connection is made so, with one channel, as in TensorFlow; one of this process is
    asked over gRPC only where `use_rpc_for_inprocess_master` says so.

    Raises:
        UsageError: no such address, or gRPC is not installed.
    """
    options = config.rpc_options
    own = None if options.use_rpc_for_inprocess_master else service_at(target)
    if own is not None:
        return MasterSession(OwnMaster(target, own), graph, config)
    settings = dataclasses.replace(ChannelSettings.of(options), count=1)
    calls = MasterCalls(target, address_of(target), access(), settings)
    return MasterSession(calls, graph, config)


def reset(target: str, containers: Sequence[str], config: config_pb2.ConfigProto) -> None:
    """Empty these containers, or all, at the tasks of a master that its device filters let through.

    Sessions at the master are closed by that.

    Raises:
        UnavailableError: it cannot be reached.
    """
    calls = MasterCalls(target, address_of(target), access())
    try:
        calls.reset(containers, config.device_filters, (config.operation_timeout_in_ms or None))
    finally:
        calls.close()
