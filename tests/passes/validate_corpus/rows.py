"""Broken models, what each breaks, and what breaks them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.passes.validate_graphs import (
    node,
)
from toolkit.graph.attrs import encode

Make = Callable[[Path], list[str]]


@dataclass(frozen=True)
class Row:
    """A broken file.

    Attributes:
        name: of the row.
        rule: the id that must be among the findings.
        node: the node it must be reported for; "" not to ask.
        make: writes the file into a folder, and gives the command's arguments.
    """

    name: str
    rule: str
    node: str
    make: Make


ROWS: list[Row] = []


def row(
    name: str, rule: str, base: Callable[[], Any], defect: Callable[[Any], object], at: str = "", args: Any = ()
) -> None:
    """A row whose file is a message: made good, broken by `defect`, written."""

    def make(folder: Path) -> list[str]:
        message = base()
        defect(message)
        path = folder / "model.pb"
        path.write_bytes(message.SerializeToString())
        return [str(path), *(args(folder) if callable(args) else args)]

    ROWS.append(Row(name, rule, at, make))


def put(name: str, key: str, value: Any) -> Callable[[Any], None]:
    """Set an attribute of a node."""

    def defect(graph: Any) -> None:
        node(graph, name).attr[key].CopyFrom(encode(value))

    return defect


def drop(name: str, key: str) -> Callable[[Any], None]:
    """Remove an attribute of a node."""
    return lambda graph: node(graph, name).attr.pop(key)


def wire(name: str, *inputs: str) -> Callable[[Any], None]:
    """Replace a node's inputs."""

    def defect(graph: Any) -> None:
        found = node(graph, name)
        del found.input[:]
        found.input.extend(inputs)

    return defect


def on(device: str, *names: str) -> Callable[[Any], None]:
    def defect(graph: Any) -> None:
        for name in names:
            node(graph, name).device = device

    return defect


def op(name: str, new: str) -> Callable[[Any], None]:
    def defect(graph: Any) -> None:
        node(graph, name).op = new

    return defect


def both(*defects: Callable[[Any], object]) -> Callable[[Any], None]:
    def defect(message: Any) -> None:
        for one in defects:
            one(message)

    return defect


def inside(name: str, defect: Callable[[Any], object]) -> Callable[[Any], object]:
    """Break a function's body."""
    return lambda graph: defect(next(f for f in graph.library.function if f.signature.name == name))


def main(defect: Callable[[Any], object]) -> Callable[[Any], object]:
    """Break the graph of a MetaGraphDef."""
    return lambda message: defect(message.graph_def)
