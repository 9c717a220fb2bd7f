"""A small language that selects nodes: `op = Conv2D and attr.padding = SAME and under net/block1`.

    query     := term { or term }
    term      := factor { and factor }
    factor    := not factor | ( query ) | test
    test      := under SCOPE | before NODE | after NODE | has attr.NAME | FIELD OPERATOR VALUE
               | FIELD in ( VALUE, VALUE, ... )
    FIELD     := op | name | scope | device | dtype | inputs | fan-in | fan-out | function | attr.NAME
    OPERATOR  := = | != | ~ | !~ | < | <= | > | >=

`~` matches a shell pattern (* ? [a-z]; * spans slashes). `dtype` is the type of any output; `inputs` counts data
inputs, `fan-in` all edges in, `fan-out` all edges out. `before N` are the nodes that N depends on, `after N` those
that depend on it. Values with spaces or signs stand in quotes, single or double.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from toolkit.errors import GraphmillError, UsageError, did_you_mean
from toolkit.graph.attrs import FuncRef
from toolkit.graph.graph import Graph
from toolkit.graph.node import Edge, Node

FIELDS = ("op", "name", "scope", "device", "dtype", "inputs", "fan-in", "fan-out", "function")
_NUMERIC = frozenset({"inputs", "fan-in", "fan-out"})
_KEYWORDS = ("under", "before", "after", "has", "not", "and", "or", "in")
_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<sign>!=|!~|<=|>=|[=~<>(),])|(?P<word>[^\s=~<>!(),'\"]+))"
)


@dataclass
class SearchContext:
    """A graph while it is searched; what several tests need is made once.

    Attributes:
        function: the function whose body the graph is; "" for a main graph.
    """

    graph: Graph
    function: str = ""
    _consumers: list[list[Edge]] | None = None
    _near: dict[tuple[str, str], set[int]] = field(default_factory=dict[tuple[str, str], set[int]])

    @property
    def consumers(self) -> list[list[Edge]]:
        if self._consumers is None:
            self._consumers = self.graph.consumers()
        return self._consumers

    def near(self, side: str, name: str) -> set[int]:
        """The ids of the nodes before or after one; none where the graph does not have it."""
        key = (side, name)
        if key not in self._near:
            node = self.graph.get(name)
            self._near[key] = set() if node is None else reachable(node, self.consumers if side == "after" else None)
        return self._near[key]


Test = Callable[[Node, SearchContext], bool]


def reachable(node: Node, consumers: list[list[Edge]] | None) -> set[int]:
    """The ids of the nodes that a node depends on; with `consumers`, of those that depend on it. Without itself."""
    found: set[int] = set()
    todo = [node]
    while todo:
        current = todo.pop()
        if consumers is None:
            near: Iterable[Node] = (*(src for src, _ in current.inputs), *current.control_inputs)
        else:
            near = (edge.dst for edge in consumers[current.id])
        for other in near:
            if other.id not in found:
                found.add(other.id)
                todo.append(other)
    return found - {node.id}


@dataclass(frozen=True)
class Query:
    """A parsed query.

    Attributes:
        text: as it was written.
        test: whether a node is meant.
        nodes: the nodes it names (`before`, `after`), for checking that they exist.
        ops: the ops it names (`op = `), for hints when nothing is found.
    """

    text: str
    test: Test
    nodes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()

    def select(self, graph: Graph, function: str = "") -> list[Node]:
        """The nodes of a graph that are meant, in file order."""
        scene = SearchContext(graph, function)
        return [node for node in graph.nodes if self.test(node, scene)]


def parse(text: str) -> Query:
    """Read a query.

    Raises:
        UsageError: it does not follow the grammar; the message says where and what was expected.
    """
    parser = _Parser(text)
    test = parser.query()
    parser.end()
    return Query(text, test, tuple(parser.nodes), tuple(parser.ops))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # quoted, sign, word, end
    text: str
    column: int


class _Parser:
    def __init__(self, text: str):
        self.text = text
        self.tokens = self._tokens()
        self.position = 0
        self.nodes: list[str] = []
        self.ops: list[str] = []

    def _tokens(self) -> list[_Token]:
        found: list[_Token] = []
        position = 0
        while position < len(self.text.rstrip()):
            match = _TOKEN.match(self.text, position)
            if match is None:
                column = position + len(self.text[position:]) - len(self.text[position:].lstrip())
                sign = self.text[column]
                what = "the quote is not closed" if sign in "'\"" else f"'{sign}' has no meaning here"
                raise self._error(what, column)
            kind = match.lastgroup or ""
            value = match[kind]
            found.append(_Token(kind, value[1:-1] if kind == "quoted" else value, match.start(kind)))
            position = match.end()
        found.append(_Token("end", "", len(self.text)))
        return found

    def _error(self, what: str, column: int) -> UsageError:
        return UsageError(f"the query '{self.text}' is wrong at column {column + 1}: {what}")

    @property
    def now(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        token = self.now
        self.position += token.kind != "end"
        return token

    def accept(self, *texts: str) -> str | None:
        """Take the next token if it is one of these words or signs."""
        if self.now.kind in ("word", "sign") and self.now.text in texts:
            return self.take().text
        return None

    def end(self) -> None:
        if self.now.kind != "end":
            hint = did_you_mean(self.now.text, _KEYWORDS) or "; expected 'and', 'or' or the end"
            raise self._error(f"'{self.now.text}' comes too much{hint}", self.now.column)

    def query(self) -> Test:
        tests = [self.term()]
        while self.accept("or"):
            tests.append(self.term())
        return tests[0] if len(tests) == 1 else lambda node, scene: any(test(node, scene) for test in tests)

    def term(self) -> Test:
        tests = [self.factor()]
        while self.accept("and"):
            tests.append(self.factor())
        return tests[0] if len(tests) == 1 else lambda node, scene: all(test(node, scene) for test in tests)

    def factor(self) -> Test:
        if self.accept("not"):
            inner = self.factor()
            return lambda node, scene: not inner(node, scene)
        if self.accept("("):
            inner = self.query()
            if not self.accept(")"):
                raise self._error("a ')' is missing", self.now.column)
            return inner
        return self.test()

    def value(self, what: str) -> str:
        token = self.now
        if token.kind not in ("word", "quoted"):
            found = f"'{token.text}'" if token.text else "the end"
            raise self._error(f"expected {what}, found {found}", token.column)
        return self.take().text

    def test(self) -> Test:
        token = self.now
        word = self.value(f"a test such as 'op = Conv2D'; fields are {', '.join(FIELDS)}, attr.NAME")
        if word == "under":
            scope = self.value("a scope").strip("/") + "/"
            return lambda node, scene: node.name.startswith(scope)
        if word in ("before", "after"):
            name = self.value("a node")
            self.nodes.append(name)
            return lambda node, scene: node.id in scene.near(word, name)
        if word == "has":
            name = self.value("an attribute")
            key = name.removeprefix("attr.")
            return lambda node, scene: key in node.attrs
        if not word.startswith("attr.") and word not in FIELDS:
            hint = did_you_mean(word, [*FIELDS, *_KEYWORDS]) or f"; fields are {', '.join(FIELDS)}, attr.NAME"
            raise self._error(f"there is no field '{word}'{hint}", token.column)
        if self.accept("in"):
            return self._choice(word)
        return self._comparison(word)

    def _choice(self, name: str) -> Test:
        if not self.accept("("):
            raise self._error("expected '(' and a list of values after 'in'", self.now.column)
        tests = [_compare(name, "=", self.value("a value"))]
        while self.accept(","):
            tests.append(_compare(name, "=", self.value("a value")))
        if not self.accept(")"):
            raise self._error("a ')' is missing", self.now.column)
        return lambda node, scene: any(test(node, scene) for test in tests)

    def _comparison(self, name: str) -> Test:
        sign = self.accept("=", "!=", "~", "!~", "<", "<=", ">", ">=")
        if sign is None:
            raise self._error(f"expected =, !=, ~, !~, <, <=, >, >= or in after '{name}'", self.now.column)
        token = self.now
        value = self.value("a value")
        ordered = sign in ("<", "<=", ">", ">=")
        if name == "op" and sign == "=":
            self.ops.append(value)
        if (ordered or name in _NUMERIC) and "~" not in sign and _number(value) is None:
            raise self._error(f"'{value}' is not a number", token.column)
        return _compare(name, sign, value)


# -- tests -----------------------------------------------------------------------------------------------


def _compare(name: str, sign: str, value: str) -> Test:
    if sign in ("!=", "!~"):
        positive = _compare(name, sign[1:], value)
        return lambda node, scene: not positive(node, scene)
    get = _getter(name)
    if sign == "~":
        return lambda node, scene: any(fnmatch.fnmatchcase(text, value) for text in get(node, scene))
    number = _number(value)
    if sign == "=":
        return lambda node, scene: any(
            text == value or (number is not None and _number(text) == number) for text in get(node, scene)
        )
    assert number is not None
    order = _ORDERS[sign]
    return lambda node, scene: any(
        (found := _number(text)) is not None and order(found, number) for text in get(node, scene)
    )


_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


Getter = Callable[[Node, SearchContext], list[str]]


def _getter(name: str) -> Getter:
    """The texts that a field has for a node; a test holds when it does for one of them."""
    if name.startswith("attr."):
        key = name.removeprefix("attr.")
        return lambda node, scene: _attr(node, key)
    return _GETTERS[name]


def _dtypes(node: Node, scene: SearchContext) -> list[str]:
    try:
        return [str(dtype) for dtype in node.output_types]
    except GraphmillError:
        return []


_GETTERS: dict[str, Getter] = {
    "op": lambda node, scene: [node.op],
    "name": lambda node, scene: [node.name],
    "scope": lambda node, scene: [node.name.rpartition("/")[0]],
    "device": lambda node, scene: [node.device],
    "dtype": _dtypes,
    "inputs": lambda node, scene: [str(len(node.inputs))],
    "fan-in": lambda node, scene: [str(len(node.inputs) + len(node.control_inputs))],
    "fan-out": lambda node, scene: [str(len(scene.consumers[node.id]))],
    "function": lambda node, scene: [scene.function],
}


def _attr(node: Node, key: str) -> list[str]:
    """An attribute, or the op's default; a list as a whole, "[1, 2]" or "1,2", and by its elements."""
    try:
        value = node.attrs[key] if key in node.attrs else node.attr(key)
    except GraphmillError:
        return []
    if isinstance(value, list):
        parts = [show(item) for item in cast("list[Any]", value)]
        return [f"[{', '.join(parts)}]", ",".join(parts), *parts]
    return [show(value)]


def show(value: Any) -> str:
    """An attribute's value as it is written in queries: SAME, float32, true, [2,3], a function's name."""
    match value:
        case bytes():
            return value.decode(errors="backslashreplace")
        case bool():
            return str(value).lower()
        case FuncRef():
            return value.name
        case list():
            return "[" + ", ".join(show(item) for item in cast("list[Any]", value)) + "]"
        case _:
            return str(value) if not hasattr(value, "DESCRIPTOR") else "a tensor"


def shortest_path(start: Node, end: Node, consumers: list[list[Edge]]) -> list[Edge] | None:
    """The fewest edges, data and control, that lead from one node to another; None when none do."""
    if start is end:
        return []
    came: dict[int, Edge] = {}
    queue = [start]
    for node in queue:
        for edge in consumers[node.id]:
            if edge.dst.id in came or edge.dst is start:
                continue
            came[edge.dst.id] = edge
            if edge.dst is end:
                path = [edge]
                while path[-1].src is not start:
                    path.append(came[path[-1].src.id])
                return path[::-1]
            queue.append(edge.dst)
    return None


__all__ = ["FIELDS", "Query", "SearchContext", "parse", "reachable", "shortest_path", "show"]
