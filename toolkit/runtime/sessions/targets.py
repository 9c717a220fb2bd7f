"""Where a session's steps run: the kinds of targets beside this process, and what carries steps to them.

A target such as "grpc://host:port" names a master in another process. What talks to it lies above this room, so it is
looked up here by the target's scheme: modules in a table, or whatever `register` was given.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from schemas import config_pb2, device_attributes_pb2
from toolkit.errors import UsageError
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.runtime.steps.resources import SHARED_PREFIX

_SEPARATOR = "://"


@dataclass(frozen=True, slots=True)
class StepOptions:
    """What one step is told beside its feeds.

    Attributes:
        options: as the caller gave it.
        metadata: to be filled in, or None.
        timeout_ms: after which the step is cancelled; None for what the session was configured with.
    """

    options: config_pb2.RunOptions | None = None
    metadata: config_pb2.RunMetadata | None = None
    timeout_ms: int | None = None


class Remote(Protocol):
    """A session at a master: TensorFlow's MasterService. Calls may come from many threads.

    Nothing is asked of the master before the first step. Every method raises UnavailableError where it cannot be
    reached, AbortedError where it no longer knows the session, and the error of the step where that failed.
    """

    def prepare(self, feeds: Sequence[Output], fetches: Sequence[Output], targets: Sequence[Node]) -> Any:
        """A combination that will be run, as `run` and the others take it."""
        ...

    def run(self, step: Any, arguments: Sequence[Any], told: StepOptions) -> list[Any]:
        """Run a step; returns the values of its fetches, in their order."""
        ...

    def make_callable(self, step: Any, options: config_pb2.RunOptions | None = None) -> Callable[[Sequence[Any]], Any]:
        """A function of the arguments that returns the values, known to the master from now on."""
        ...

    def partial_run_setup(self, step: Any) -> str:
        """Start a step that is fed and fetched bit by bit; returns its handle."""
        ...

    def partial_run(self, handle: str, step: Any, arguments: Sequence[Any]) -> list[Any]:
        """Go on with it."""
        ...

    def list_devices(self) -> list[device_attributes_pb2.DeviceAttributes]:
        """The devices of the master's task, then those of the others."""
        ...

    def close(self) -> None:
        """End what runs and forget the session. Again is fine, and so is a master that is gone."""
        ...


class Kind(Protocol):
    """A kind of targets: a module, or an object that has these two."""

    def open(self, target: str, graph: Graph, config: config_pb2.ConfigProto) -> Remote:
        """A session at the master that a target names."""
        ...

    def reset(self, target: str, containers: Sequence[str], config: config_pb2.ConfigProto) -> None:
        """Empty these containers, or all, at the tasks of a master."""
        ...


#: scheme -> the module that knows it
_MODULES = {"grpc": "toolkit.cluster.client.kind", "ray": "toolkit.cluster.ray.kind"}
#: schemes that are targets by themselves
_ALONE = ("ray",)
_registered: dict[str, Kind] = {}


def register(scheme: str, kind: Kind) -> None:
    """Have sessions whose targets begin with `scheme`:// go there."""
    _registered[scheme] = kind


def is_remote(target: str) -> bool:
    """Whether a target is not of this process."""
    return target in _ALONE or (_SEPARATOR in target and not target.startswith(SHARED_PREFIX))


def kind_of(target: str) -> Kind:
    """What knows a target that is not of this process.

    Raises:
        UsageError: nothing does.
    """
    scheme = target.partition(_SEPARATOR)[0]
    found: Any = _registered.get(scheme)
    if found is None and scheme in _MODULES:
        found = importlib.import_module(_MODULES[scheme])
        _registered[scheme] = cast("Kind", found)
    if found is None:
        known = ", ".join(f"{each}{_SEPARATOR}..." for each in sorted({*_MODULES, *_registered, "local"}))
        raise UsageError(f"'{target}' is not a session target; expected '' or one of {known}")
    return found
