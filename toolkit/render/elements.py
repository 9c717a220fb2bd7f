"""The picture's own model of a graph: elements, links between them, and the scopes they are in.

It flattens what the domain model keeps apart. Function bodies become scopes where they are called, several
graphs (the parts of a partition) become scopes side by side, and loop frames become scopes around their nodes.
Everything later (collapsing, folding, drawing) works on elements, links and scopes only.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol, SupportsIndex

from toolkit.graph.node import Node
from toolkit.render.describe import Shapes


class LinkKind(IntEnum):
    """What an edge carries."""

    DATA = 0
    CONTROL = 1
    REFERENCE = 2  # a reference type or a resource handle: whoever receives it may change the variable behind it


class Link(NamedTuple):
    """An edge between two elements; `src_output` is -1 for control edges."""

    src: int
    dst: int
    kind: LinkKind
    src_output: int
    dst_input: int


class Element:
    """One node, as the picture sees it.

    Attributes:
        id: its position in `Model.elements`.
        name: its full name in the picture; a node inside a function body carries the path of the call.
        op, device: as in NodeDef.
        node: the node itself; one of a table has no inputs (`toolkit.render.unmade`).
        homes: the innermost scope that each element of the model is in (`Model.homes`).
        calls: the functions that it names in its attributes.
        note: a remark of whoever made the model ("recursive call").
    """

    __slots__ = ("calls", "device", "homes", "id", "name", "node", "note", "op")

    def __init__(self, id: int, name: str, node: Node, homes: list[Scope]):
        self.id = id
        self.name = name
        self.op = node.op
        self.device = node.device
        self.node = node
        self.homes = homes
        self.calls: tuple[str, ...] = ()
        self.note = ""

    @property
    def scope(self) -> Scope:
        """The innermost scope it is in."""
        return self.homes[self.id]

    @property
    def function(self) -> str:
        """The function whose body it is in; "" in the graph itself."""
        scope: Scope | None = self.scope
        while scope is not None:
            # The node that calls a function is drawn as the frame of the body, and is not in it.
            if scope.function and scope.lead != self.id:
                return scope.function
            scope = scope.parent
        return ""

    def __repr__(self) -> str:
        return f"<Element {self.name} = {self.op}>"


class Elements(Protocol):
    """Elements by their ids: a list, or what makes them when they are asked for (`toolkit.render.unmade`)."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Element]: ...

    def __getitem__(self, number: SupportsIndex, /) -> Element: ...

    def append(self, element: Element, /) -> None: ...


class Links(Protocol):
    """Links by their numbers: a list, or columns (`toolkit.render.link_table`)."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Link]: ...

    def __getitem__(self, number: SupportsIndex, /) -> Link: ...


class Scope:
    """A named group of elements and scopes.

    Attributes:
        path: unique in the model; the path of the root is "", others end in "/".
        label: what to write on it.
        kind: scope, function, loop, partition, series, section or variable.
        parent: the scope around it; None for the root.
        scopes, elements: what is directly in it, in order.
        lead: the element that the scope stands for, such as the node that calls the function.
        size: how many elements are in it at any depth; `Model.count_sizes` fills it in.
        function: the name of the function whose body this is; "" for other scopes.
        repeats: what all names in it begin with and no picture needs, such as the path of a call in its body.
    """

    __slots__ = (
        "by_name", "detail", "elements", "function", "kind", "label", "lead", "parent", "path", "repeats", "scopes",
        "size",
    )  # fmt: skip

    def __init__(self, path: str, label: str, parent: Scope | None, kind: str = "scope"):
        self.path = path
        self.label = label
        self.parent = parent
        self.kind = kind
        self.detail = ""
        self.scopes: list[Scope] = []
        self.elements: list[int] = []
        self.by_name: dict[str, Scope] = {}
        self.lead: int | None = None
        self.size = 0
        self.repeats = ""
        self.function = ""

    @property
    def depth(self) -> int:
        """How many scopes are around it."""
        depth = 0
        scope = self.parent
        while scope is not None:
            depth += 1
            scope = scope.parent
        return depth

    def child(self, name: str, kind: str = "scope", label: str | None = None) -> Scope:
        """The scope `name` directly in this one, made if it is not there yet."""
        found = self.by_name.get(name)
        if found is None:
            found = Scope(f"{self.path}{name}/", label or name, self, kind)
            self.by_name[name] = found
            self.scopes.append(found)
        return found

    def walk(self) -> Iterator[Scope]:
        """This scope and all in it, outer ones first."""
        stack: list[Scope] = [self]
        while stack:
            scope = stack.pop()
            yield scope
            if scope.scopes:
                stack += scope.scopes[::-1]

    def all_elements(self) -> Iterator[int]:
        """The elements in it at any depth."""
        if not self.scopes:  # as most scopes
            yield from self.elements
            return
        for scope in self.walk():
            yield from scope.elements

    def __repr__(self) -> str:
        return f"<Scope {self.path or '(root)'} {self.kind}>"


def relative_name(name: str, scope: Scope) -> str:
    """An element's name without the path of the scope it is drawn in."""
    around: Scope | None = scope
    while around is not None and around.kind in ("series", "section", "aside"):
        around = around.parent
    prefix = around.path if around is not None else ""
    if name.startswith(prefix):
        rest = name[len(prefix) :]
        return rest.removeprefix(around.repeats) if around is not None else rest
    return name.rpartition("/")[2]


@dataclass(slots=True)
class Model:
    """Everything that could be drawn.

    Attributes:
        names, ops: of the elements, in order.
        homes: the innermost scope that each element is in.
        links: all edges; those into and out of a call lead to its body's arguments and results. Of a large model they
            are columns.
        messages: what the reader should know, such as functions that were not opened.
        shapes: what is known about the shapes of outputs.
    """

    title: str
    elements: Elements = field(default_factory=list[Element])
    names: list[str] = field(default_factory=list[str])
    ops: list[str] = field(default_factory=list[str])
    homes: list[Scope] = field(default_factory=list[Scope])
    links: Links = field(default_factory=list[Link])
    root: Scope = field(default_factory=lambda: Scope("", "", None, "root"))
    messages: list[str] = field(default_factory=list[str])
    shapes: Shapes = field(default_factory=Shapes)

    @property
    def has_columns(self) -> bool:
        """Whether links are columns."""
        return not isinstance(self.links, list)

    def add(self, name: str, node: Node, scope: Scope) -> Element:
        element = Element(len(self.homes), name, node, self.homes)
        self.elements.append(element)
        self.names.append(name)
        self.ops.append(node.op)
        self.homes.append(scope)
        scope.elements.append(element.id)
        return element

    def of_op(self, ops: Container[str]) -> list[int]:
        """The elements of some ops, in order."""
        return [i for i, op in enumerate(self.ops) if op in ops]

    def keep(self, chosen: Sequence[int]) -> None:
        """Forget all elements but these, which are numbered anew, in this order; scopes and links stay as they are."""
        self.elements = elements = [self.elements[i] for i in chosen]
        self.names = [self.names[i] for i in chosen]
        self.ops = [self.ops[i] for i in chosen]
        self.homes = [self.homes[i] for i in chosen]
        for position, element in enumerate(elements):
            element.id, element.homes = position, self.homes

    def count_sizes(self) -> None:
        """Fill in `Scope.size`, and forget scopes in which nothing is left."""
        for scope in reversed(list(self.root.walk())):
            size = len(scope.elements)
            if scope.scopes:
                scope.scopes = [s for s in scope.scopes if s.size]
                size += sum([s.size for s in scope.scopes])
            scope.size = size

    def move(self, element: int, scope: Scope) -> None:
        """Put an element into another scope. Linear in the scope it leaves; use `Scope.elements` for many."""
        self.homes[element].elements.remove(element)
        scope.elements.append(element)
        self.homes[element] = scope
