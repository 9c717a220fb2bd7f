# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""A profile by name scopes: a tree of nodes by the parts of their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schemas import tfprof_output_pb2
from toolkit.tensorflow.profiling.nodes import Profiled, graph_node
from toolkit.tensorflow.profiling.options import Options

ROOT = "_TFProfRoot"
_SCOPE = "_kTFScopeParent"
_TOTALS = ("total_parameters", "total_float_ops", "total_run_count", "total_definition_count")


class _Scope:
    """A node, or a scope of that name."""

    def __init__(self, name: str):
        self.node = Profiled(name, "", {_SCOPE}, [], {})
        self.below: dict[str, _Scope] = {}
        self.accounted = False
        self.totals: dict[str, int] = dict.fromkeys(_TOTALS, 0)

    def begin(self) -> None:
        """Count itself alone."""
        own = (self.node.parameters, self.node.float_ops, self.node.runs, 1)
        self.totals = dict(zip(_TOTALS, own, strict=True))

    def add(self, other: _Scope) -> None:
        for key, value in other.totals.items():
            self.totals[key] += value


def tree(nodes: Iterable[Profiled]) -> _Scope:
    root = _Scope(ROOT)
    for node in nodes:
        at, parts = root, node.name.split("/")
        for length, part in enumerate(parts, 1):
            at = at.below.setdefault(part, _Scope("/".join(parts[:length])))
        at.node = node
    return root


def profile(nodes: Iterable[Profiled], options: Options) -> tuple[tfprof_output_pb2.GraphNodeProto, list[str]]:
    """What is shown of a tree, as a message and as lines."""
    root = tree(nodes)
    kept = _account(root, options)
    for each in kept:
        root.add(each)
    root.below = {each.node.name: each for each in kept}
    ((_, found),) = _visited(_starts([root], options), options, 1, 0)
    return found


def _account(scope: _Scope, options: Options) -> list[_Scope]:
    """Keep what counts, or has something below that does; count all of it."""
    found: list[_Scope] = []
    for name in sorted(scope.below):
        each = scope.below[name]
        kept = _account(each, options)
        each.below = {inside.node.name: inside for inside in kept}
        each.accounted = options.accounts(each.node.types)
        each.begin()
        for inside in kept:
            each.add(inside)
        if each.accounted or kept:
            found.append(each)
    return found


def _starts(scopes: Iterable[_Scope], options: Options) -> list[_Scope]:
    """The outermost that a profile begins at; the root always is shown."""
    found: list[_Scope] = []
    for each in scopes:
        if options.matches("start_name", each.node.name):
            found.append(each)
        elif each.node.name == ROOT:
            each.below = {start.node.name: start for start in _starts(each.below.values(), options)}
            found.append(each)
        else:
            found += _starts(each.below.values(), options)
    return found


def _shows(scope: _Scope, options: Options, depth: int) -> bool:
    node = scope.node
    if node.name == ROOT:
        return True
    own = {"params": node.parameters, "float_ops": node.float_ops, "occurrence": node.runs}
    if depth > options.depth or any(own.get(key, 0) < least for key, least in options.least.items()):
        return False
    return options.shows(node.name)


def _visited(scopes: Iterable[_Scope], options: Options, depth: int, indent: int) -> list[tuple[_Scope, Any]]:
    """Scopes with their messages and lines, sorted; those of what is hidden stand in its place."""
    found: list[tuple[_Scope, Any]] = []
    for scope in scopes:
        shown = _shows(scope, options, depth)
        trimmed = options.matches("trim_name", scope.node.name)
        below = scope.below.values() if not trimmed and depth < options.depth else ()
        inside = _visited(below, options, depth + 1, indent + 2 if shown else indent)
        if not shown:
            found += inside
            continue
        inside.sort(key=lambda pair: _order(pair[0], options))
        if options.only_shown:
            scope.begin()
            for each, _ in inside:
                scope.add(each)
        lines = [_line(scope, options, indent)]
        for _, (_, more) in inside:
            lines += more
        found.append((scope, (_message(scope, [message for _, (message, _) in inside]), lines)))
    return found


def _order(scope: _Scope, options: Options) -> Any:
    key = {"params": "total_parameters", "float_ops": "total_float_ops", "occurrence": "total_run_count"}
    return -scope.totals.get(key.get(options.order, ""), 0), scope.node.name


def _message(scope: _Scope, children: list[Any]) -> tfprof_output_pb2.GraphNodeProto:
    found = graph_node(scope.node)
    for key, value in scope.totals.items():
        setattr(found, key, value)
    found.children.extend(children)
    return found


def _line(scope: _Scope, options: Options, indent: int) -> str:
    node, totals = scope.node, scope.totals

    def own(count: int) -> str:
        return short(count) if scope.accounted else "--"

    said: list[str] = []
    for column in options.columns:
        match column:
            case "params":
                if node.shape:
                    said.append("x".join(str(size) for size in node.shape))
                said.append(f"{own(node.parameters)}/{short(totals['total_parameters'])} params")
            case "float_ops":
                said.append(f"{own(node.float_ops)}/{short(totals['total_float_ops'])} flops")
            case "device":
                said += [node.device] if node.device else []
            case "op_types":
                said.append("|".join(sorted(node.types)))
            case "occurrence":
                runs = f"{own(node.runs)}/{totals['total_run_count']}"
                said.append(f"{runs}|{'1' if scope.accounted else '--'}/{totals['total_definition_count']}")
            case _:
                shapes = ("x".join(str(size) for size in sizes) for sizes in node.input_shapes.values())
                said.append("|".join(f"{i}:{text}" for i, text in zip(node.input_shapes, shapes, strict=True)))
    return f"{' ' * indent}{node.name} ({', '.join(said)})"


def short(count: int) -> str:
    """12, 1.20k, 3.40m, 5.60b."""
    if count < 1000:
        return str(count)
    for unit, letter in ((1000, "k"), (1000_000, "m")):
        if count < unit * 1000:
            return f"{count / unit:.2f}{letter}"
    return f"{count / 1000_000_000:.2f}b"
