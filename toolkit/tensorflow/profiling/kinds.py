# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""A profile by ops: all nodes of an op together, each row inside the one before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schemas import tfprof_output_pb2
from toolkit.errors import UsageError
from toolkit.tensorflow.profiling.nodes import Profiled, graph_node
from toolkit.tensorflow.profiling.options import Options
from toolkit.tensorflow.profiling.scopes import ROOT, short


class _Kind:
    """An op with its nodes.

    Attributes:
        parameters, float_ops: of its nodes.
        total_parameters, total_float_ops: with those of all rows after it.
    """

    def __init__(self, name: str, nodes: list[Profiled]):
        self.name, self.nodes = name, nodes
        self.types = set[str]().union(*(node.types for node in nodes))
        self.parameters = sum(node.parameters for node in nodes)
        self.float_ops = sum(node.float_ops for node in nodes)
        self.runs = sum(node.runs for node in nodes)
        self.total_parameters, self.total_float_ops = self.parameters, self.float_ops

    def count(self, following: _Kind | None) -> None:
        self.total_parameters = self.parameters + (following.total_parameters if following else 0)
        self.total_float_ops = self.float_ops + (following.total_float_ops if following else 0)


def profile(nodes: Iterable[Profiled], options: Options) -> tuple[tfprof_output_pb2.MultiGraphNodeProto, list[str]]:
    """What is shown of the ops, as a message and as lines."""
    if "input_shapes" in options.select:
        raise UsageError("select of a profile: input_shapes are those of single nodes; take cmd='scope'")
    by_kind: dict[str, list[Profiled]] = {}
    for node in nodes:
        if options.accounts(node.types):
            by_kind.setdefault(node.kind, []).append(node)
    kinds = [_Kind(name, found) for name, found in by_kind.items()]
    kinds.sort(key=lambda kind: _order(kind, options))
    whole = _counted(kinds)
    start = next((i for i, kind in enumerate(kinds) if options.matches("start_name", kind.name)), len(kinds))
    shown: list[_Kind] = []
    for depth, kind in enumerate(kinds[start:]):
        if options.matches("trim_name", kind.name) or depth > options.depth:
            break
        totals = {"params": kind.total_parameters, "float_ops": kind.total_float_ops, "occurrence": kind.runs}
        if all(totals.get(key, 0) >= least for key, least in options.least.items()) and options.shows(kind.name):
            shown.append(kind)
    if options.only_shown:
        whole = _counted(shown)
    root = tfprof_output_pb2.MultiGraphNodeProto(name=ROOT, total_parameters=whole[0], total_float_ops=whole[1])
    if shown:
        root.children.append(_messages(shown))
    return root, [_line(kind, whole, options) for kind in shown]


def _counted(kinds: list[_Kind]) -> tuple[int, int]:
    """Each with what follows; returns the sums of all."""
    following = None
    for kind in reversed(kinds):
        kind.count(following)
        following = kind
    return (following.total_parameters, following.total_float_ops) if following else (0, 0)


def _order(kind: _Kind, options: Options) -> Any:
    by = {"params": kind.parameters, "float_ops": kind.float_ops, "occurrence": len(kind.nodes)}
    return -by.get(options.order, 0), kind.name


def _messages(kinds: list[_Kind]) -> tfprof_output_pb2.MultiGraphNodeProto:
    """Each inside the one before it."""
    found: tfprof_output_pb2.MultiGraphNodeProto | None = None
    for kind in reversed(kinds):
        inside = found
        found = tfprof_output_pb2.MultiGraphNodeProto(
            name=kind.name, parameters=kind.parameters, float_ops=kind.float_ops,
            total_parameters=kind.total_parameters, total_float_ops=kind.total_float_ops,
        )  # fmt: skip
        found.graph_nodes.extend(graph_node(node) for node in sorted(kind.nodes, key=lambda node: node.name))
        if inside is not None:
            found.children.append(inside)
    assert found is not None
    return found


def _line(kind: _Kind, whole: tuple[int, int], options: Options) -> str:
    said: list[str] = []
    for column in options.columns:
        match column:
            case "params":
                said.append(_share(kind.parameters, kind.total_parameters, whole[0], "params"))
            case "float_ops":
                said.append(_share(kind.float_ops, kind.total_float_ops, whole[1], "float_ops"))
            case "device":
                said.append("|".join(sorted({node.device for node in kind.nodes if node.device})))
            case "op_types":
                said.append("|".join(sorted(kind.types)))
            case _:
                said.append(f"{f'{kind.runs}|{len(kind.nodes)}':>10}")
    return f"{kind.name:<25}{', '.join(said)}"


def _share(own: int, total: int, whole: int, what: str) -> str:
    of_all, of_own = (100.0 * total / whole, 100.0 * own / whole) if whole else (0.0, 0.0)
    return f"{f'{short(own)} {what} ({of_all:.2f}%, {of_own:.2f}%)':>30}"
