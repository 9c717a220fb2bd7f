"""The registry of shape functions and what they see."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any, cast

from toolkit.errors import GraphError, GraphmillError
from toolkit.graph import arity, opdefs, plugins
from toolkit.graph.node import Node
from toolkit.graph.shape import UNKNOWN, Dim, Shape, of_rank
from toolkit.graph.shapes.calls import Calls, HandleData

#: kinds of types (`DType.kind`) that are values themselves, not handles
_NUMBERS = "fiucb"


class ShapeContext:
    """A node while its output shapes are inferred.

    Attributes:
        node: the node.
        inputs: the shapes of its data inputs.
        output_handles: what the shape function says about handles it puts out, by output index.

    Args:
        calls: what is known of functions; by default nothing.
    """

    __slots__ = ("_calls", "_constants", "_handles", "inputs", "node", "output_handles")

    def __init__(
        self,
        node: Node,
        inputs: Sequence[Shape],
        constants: Callable[[int], Any],
        handles: Callable[[int], HandleData | None] = lambda index: None,
        calls: Calls | None = None,
    ):
        self.node = node
        self.inputs = list(inputs)
        self.output_handles: dict[int, HandleData] = {}
        self._constants = constants
        self._handles = handles
        self._calls = calls

    @property
    def calls(self) -> Calls:
        """What is known of functions by now."""
        if self._calls is None:
            self._calls = Calls()
        return self._calls

    def attr(self, name: str, default: Any = ...) -> Any:
        return self.node.attr(name, default)

    def text(self, name: str) -> str:
        """A string attribute as `str`."""
        return self.node.text(name)

    def constant(self, index: int) -> Any:
        """The value of a small input when it is known before running: a number, (nested) lists of numbers, or None.

        Elements that are not known (one of `Pack`ed sizes, say) are None.
        """
        return self._constants(index)

    def integer(self, index: int) -> int | None:
        """The value of an integer scalar (or one-element) input, or None when it is not known."""
        value = self._constants(index)
        while isinstance(value, list) and len(value) == 1:  # type: ignore[arg-type]
            value = value[0]  # type: ignore[assignment]
        return int(value) if isinstance(value, int) else None

    def number(self, index: int) -> int | float | None:
        """The value of a scalar input, or None when it is not known."""
        value = self._constants(index)
        return value if isinstance(value, int | float) else None

    def integers(self, index: int) -> list[int] | None:
        """The value of an integer scalar or vector input as a list, or None when any element is unknown."""
        value = self._constants(index)
        values = listed(value)
        if values is None:
            values = [value]
        return [int(v) for v in values] if all(isinstance(v, int) for v in values) else None

    def numbers(self, name: str, length: int) -> list[int]:
        """An attribute that is a list of so many integers.

        Raises:
            GraphmillError: it has another length.
        """
        found: list[int] = self.node.attr(name)
        if len(found) != length:
            raise GraphmillError(f"attribute '{name}' must have {length} elements; it has {len(found)}")
        return found

    def vector(self, index: int, length: int | None = None) -> list[int | None] | None:
        """The elements of an integer vector input, None where one is not known; or None when nothing is known.

        Raises:
            GraphmillError: it is no vector of integers, or not of this length.
        """
        value = self._constants(index)
        if value is None:
            return None
        if not isinstance(value, list) or not all(v is None or isinstance(v, int) for v in value):  # type: ignore[misc]
            raise GraphmillError(f"input {index} must be a vector of integers")
        elements = cast("list[int | None]", value)
        if length is not None and len(elements) != length:
            raise GraphmillError(f"input {index} must have {length} element(s); it has {len(elements)}")
        return elements

    def pairs(self, index: int, rows: int | None = None) -> list[list[int | None]] | None:
        """The rows of an integer input of two columns, None where an element is not known; or None.

        Raises:
            GraphmillError: it is no such matrix, or not of so many rows.
        """
        value = self._constants(index)
        if value is None:
            return None
        found = [listed(row) for row in listed(value) or []]
        if any(row is None or len(row) != 2 or not all(v is None or isinstance(v, int) for v in row) for row in found):
            raise GraphmillError(f"input {index} must be a matrix of integers with two columns")
        if rows is not None and len(found) != rows:
            raise GraphmillError(f"input {index} must have {rows} row(s); it has {len(found)}")
        return cast("list[list[int | None]]", found)

    def constant_shape(self, index: int) -> Shape:
        """The value of an integer vector input read as a shape; as much of it as is known.

        Raises:
            GraphmillError: it has a number below -1, which stands for a size that is not known.
        """
        value = self._constants(index)
        if isinstance(value, list):
            if any(isinstance(v, int) and v < -1 for v in value):  # type: ignore[misc]
                raise GraphmillError(f"input {index} has a negative size: {value}")
            return Shape([v if isinstance(v, int) else None for v in value])  # type: ignore[misc]
        length = self.inputs[index][0] if self.inputs[index].rank == 1 else None
        return UNKNOWN if length is None else of_rank(length)

    def rank(self, index: int, rank: int) -> Shape:
        """The shape of an input, which must have this rank.

        Raises:
            GraphmillError: it has another.
        """
        shape = self.inputs[index]
        if shape.dims is None:
            return of_rank(rank)
        if len(shape.dims) != rank:
            raise GraphmillError(f"input {index} must have rank {rank}; it has shape {shape}")
        return shape

    def rank_at_least(self, index: int, rank: int) -> Shape:
        """The shape of an input, whose rank must not be smaller.

        Raises:
            GraphmillError: it is.
        """
        shape = self.inputs[index]
        if shape.dims is not None and len(shape.dims) < rank:
            raise GraphmillError(f"input {index} must have at least rank {rank}; it has shape {shape}")
        return shape

    def rank_at_most(self, index: int, rank: int) -> Shape:
        """The shape of an input, whose rank must not be larger.

        Raises:
            GraphmillError: it is.
        """
        shape = self.inputs[index]
        if shape.dims is not None and len(shape.dims) > rank:
            raise GraphmillError(f"input {index} must have at most rank {rank}; it has shape {shape}")
        return shape

    def handle(self, index: int) -> HandleData | None:
        """What the resource or variant handle at an input holds, when known; other inputs hold nothing."""
        # who asks for all inputs of a call must not have the graph walked back for its numbers
        if self.node.input_types[index].base.kind in _NUMBERS:
            return None
        return self._handles(index)

    def unknown(self) -> list[Shape]:
        """An unknown shape for every output."""
        return [UNKNOWN] * self.node.num_outputs


def merge_dims(a: Dim, b: Dim, what: str = "sizes") -> Dim:
    """The size that both mean.

    Raises:
        GraphmillError: they are known and differ.
    """
    if a is None or a == b:
        return b
    if b is None:
        return a
    raise GraphmillError(f"{what} must be equal; they are {a} and {b}")


def axis_of(axis: int, rank: int, what: str = "axis") -> int:
    """A possibly negative axis as 0..rank-1.

    Raises:
        GraphmillError: it is outside -rank..rank-1.
    """
    if not -rank <= axis < rank:
        raise GraphmillError(f"{what} {axis} is outside {-rank}..{rank - 1}")
    return axis % rank if rank else 0


def listed(value: Any) -> list[Any] | None:
    """A constant as a list, or None when it is none."""
    return cast("list[Any]", value) if isinstance(value, list) else None


ShapeFunction = Callable[[ShapeContext], Sequence[Shape]]
_functions: dict[str, ShapeFunction] = {}
_loaded = False


def shape_function(*ops: str) -> Callable[[ShapeFunction], ShapeFunction]:
    """Register a shape function; it returns one Shape per output, or raises GraphmillError on a contradiction.

    Raises:
        GraphError: an op has one already; a plugin names an op that does not exist.
    """

    def register(function: ShapeFunction) -> ShapeFunction:
        if plugins.registers(function):
            arity.require(function, 1, "a shape function takes one argument, the ShapeContext")
            for op in ops:
                opdefs.require_for(op, "a shape function")
            load()  # to know what is there
            function = _counted(function)
        for op in ops:
            if op in _functions:
                raise GraphError(f"two shape functions for '{op}'")
            _functions[op] = function
        return function

    return register


def _counted(function: ShapeFunction) -> ShapeFunction:
    """A plugin's shape function, held to one shape per output; it may give shapes as lists of sizes."""

    @functools.wraps(function)
    def call(c: ShapeContext) -> list[Shape]:
        try:
            found = list(function(c))
        except GraphmillError:
            raise
        except Exception as error:  # the plugin's mistake, not ours
            what = f"the shape function of {c.node.op} failed: {type(error).__name__}: {error}"
            raise GraphError(what, node=c.node.name) from error
        if len(found) != c.node.num_outputs:
            raise GraphError(
                f"the shape function of {c.node.op} returned {len(found)} shape(s) for {c.node.num_outputs} output(s)",
                node=c.node.name,
            )
        return [shape if isinstance(shape, Shape) else Shape(shape) for shape in found]

    return call


def load() -> None:
    """Import every module of shape functions; done once."""
    global _loaded
    if not _loaded:
        import toolkit.graph.shapes as package

        for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            importlib.import_module(info.name)
        _loaded = True


def find(op: str) -> ShapeFunction | None:
    """The shape function of an op, or None."""
    load()
    return _functions.get(op)


def is_local(op: str) -> bool:
    """Whether the shape function of an op looks at nothing but attributes, shapes, constants and handles: not at the
    nodes that its inputs come from, nor at functions."""
    function = _functions.get(op)
    return function is None or function.__module__ in _local_modules()


def looks_at_nodes(op: str) -> bool:
    """Whether the shape function of an op may look at the nodes that its inputs come from, whatever is known of
    them."""
    function = find(op)
    return not is_local(op) and function is not None and function.__module__ != f"{__package__}.functional"


def looks_at_sources(op: str) -> bool:
    """Whether the shape function of an op, if it looks at nodes, looks at op and attributes of those that its inputs
    come from and at nothing else: a queue, a table, a list of texts."""
    function = find(op)
    return function is None or function.__module__ in (f"{__package__}.data_flow", f"{__package__}.io")


@functools.cache
def _local_modules() -> frozenset[str]:
    import toolkit.graph.shapes as package

    own = {info.name for info in pkgutil.iter_modules(package.__path__, package.__name__ + ".")}
    return frozenset(own - {f"{package.__name__}.{name}" for name in ("data_flow", "io", "functional")})


def names() -> list[str]:
    """The ops that have a shape function, sorted."""
    load()
    return sorted(_functions)
