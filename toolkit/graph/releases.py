"""TensorFlow's releases: which one a graph comes from, and from which on it can be loaded.

The table `schemas/op_history.txt.xz` holds the GraphDef versions of the releases from 1.4 on, and in which of them
every op and attribute first appears (made by `schemas/make_history.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from schemas import unpacked
from schemas.graph_pb2 import GraphDef
from schemas.node_def_pb2 import NodeDef
from toolkit.graph import opdefs

#: reasons given at most
_REASONS = 5


@dataclass(frozen=True, slots=True)
class ReaderRequirements:
    """What a reader of a graph must be.

    Attributes:
        release: the oldest release of TensorFlow that knows everything in it, "2.4".
        reasons: what asks for that release.
        custom: ops that no release has: they must be registered before the graph is loaded.
    """

    release: str
    reasons: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()


@dataclass(slots=True)
class _History:
    producers: dict[str, int] = field(default_factory=dict[str, int])
    since: dict[str, str] = field(default_factory=dict[str, str])
    order: dict[str, int] = field(default_factory=dict[str, int])
    #: op to its attributes that came after it
    late: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])


@cache
def _history() -> _History:
    out = _History()
    text = unpacked("op_history.txt.xz").decode()
    for line in text.splitlines():
        kind, name, *rest = line.split()
        if kind == "release":
            out.order[name] = len(out.order)
            out.producers[name] = int(rest[0])
        elif kind == "op":
            out.since[name] = rest[0]
        else:
            op, _, attr = name.partition(".")
            out.late.setdefault(op, {})[attr] = rest[0]
    return out


def releases() -> list[str]:
    """The releases in the table, oldest first."""
    return list(_history().order)


def written_by(producer: int) -> str:
    """The release that writes GraphDefs of this version: "2.4", "2.4 or 2.5" for one between, "" for none known."""
    history = _history()
    same = [release for release, version in history.producers.items() if version == producer]
    if same:
        return same[0] if len(same) == 1 else f"{same[0]} to {same[-1]}"
    by_version = sorted(history.producers, key=history.producers.__getitem__)  # 2.0 was branched off before 1.15
    before = [release for release in by_version if history.producers[release] < producer]
    after = [release for release in by_version if history.producers[release] > producer]
    if not before:
        return f"before {after[0]}" if producer > 0 else ""
    return f"after {before[-1]}" if not after else f"between {before[-1]} and {after[0]}"


def needs(graph: GraphDef, *, is_object_based: bool = False) -> ReaderRequirements:
    """From which release on TensorFlow loads a graph.

    Args:
        is_object_based: whether it comes in a SavedModel of TensorFlow 2, with its objects.
    """
    history = _history()
    found: dict[str, str] = {}  # what asks for it, to the release
    for release, version in history.producers.items():
        if version >= graph.versions.min_consumer:
            if history.order[release]:
                found[f"GraphDef version {graph.versions.min_consumer}"] = release
            break
    if is_object_based:
        found["objects of a TensorFlow 2 SavedModel"] = "2.0"
    own = {function.signature.name for function in graph.library.function}
    custom: dict[str, None] = {}
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        _ask(nodes, own, found, custom)
    if not found:
        return ReaderRequirements(releases()[0], (), tuple(custom))
    last = max(found.values(), key=history.order.__getitem__)
    reasons = [what for what, release in found.items() if release == last]
    return ReaderRequirements(last, tuple(reasons[:_REASONS]) if history.order[last] else (), tuple(custom))


@dataclass(frozen=True, slots=True)
class Later:
    """What of an op came after a release.

    Attributes:
        is_op: the op itself did.
        since: the release that brought it, "" for none that is known.
        attrs: attribute to the release that brought it.
    """

    is_op: bool
    since: str
    attrs: Mapping[str, str]


def later_than(op: str, release: str) -> Later:
    """What of an op a release of the table does not know."""
    history = _history()
    limit = history.order[release]
    since = history.since.get(op, "")
    late = {key: each for key, each in history.late.get(op, {}).items() if history.order[each] > limit}
    return Later(bool(since) and history.order[since] > limit, since, late)


def _ask(nodes: Iterable[NodeDef], own: set[str], found: dict[str, str], custom: dict[str, None]) -> None:
    history = _history()
    for node in nodes:
        op = node.op
        since = history.since.get(op)
        if since is not None:
            found.setdefault(op, since)
        elif op not in own and opdefs.find(op) is None:
            custom.setdefault(op)
        late = history.late.get(op)
        if late is not None:
            for attr, release in late.items():
                if attr in node.attr:
                    found.setdefault(f"attribute {attr} of {op}", release)
