"""What is known of values before anything runs: shapes that follow from shapes, constants from constants."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program import Program
from toolkit.compiler.steps import Step, as_outputs
from toolkit.errors import GraphmillError
from toolkit.graph.infer import ShapeMap, handle_data, infer_node
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes import registry
from toolkit.graph.shapes.calls import HandleData
from toolkit.kernels.device_memory import DeviceArray

Dims = tuple[int, ...]

_FOLD_LIMIT = 1 << 23  # bytes: a constant bigger than this, and than what it is made of, is not made ahead of time
_FOLD_LIMIT_ONCE = 1 << 18  # bytes, in programs that run once: what is made ahead of time stays as long as the session
#: elements of an argument whose value counts where it follows from shapes, and of known values in keys
_SMALL_ARGUMENT = 64
_SMALL_FOLDED = 1 << 16  # bytes of a constant that is kept for the next plan: vectors of channels, not their weights
_MOST_BYTES = 1 << 23  # of them all
_MOST_KEPT = 4096  # facts of a program that its next plan recalls: two megabytes
_SMALL_CONSTANT = 1 << 10  # elements: what shape functions may look at


class Facts:
    """What has been found of steps, recalled for those that are alike: of nodes of one kind, with inputs of the same
    shapes and the same known values. In large graphs the same few steps come again and again, and much of a program
    stays what it is when its arguments have other shapes. Plans of a program are made one after the other.
    """

    def __init__(self) -> None:
        self._shapes: dict[Hashable, list[Dims | None]] = {}
        self._folded: dict[Hashable, list[Any]] = {}
        self._known: dict[int, Any] = {}  # constants that keys have by their identity
        self._bytes = 0  # of what was folded, and of those
        self._is_local: dict[str, bool] = {}
        self._graph = ShapeMap()
        self._is_walking = False

    @staticmethod
    def of(program: Program) -> Facts:
        """Those of a program, which its next plan recalls; those of a large one would take more memory than it saves
        time, for it is rarely run with many shapes."""
        if len(program.steps) > _MOST_KEPT:
            return Facts()
        facts = program.learned.get(Facts)
        if facts is None or facts.is_full:
            facts = program.learned[Facts] = Facts()
        return facts

    @property
    def is_full(self) -> bool:
        """Whether it holds so much that it is better begun anew."""
        return len(self._shapes) + len(self._folded) > _MOST_KEPT or self._bytes > _MOST_BYTES

    def infer(self, step: Step, given: list[Value]) -> list[Dims | None]:
        """As `infer`."""
        key = self._key(step, given)
        if key is None:
            return infer(step, given, self._handle)
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = infer(step, given, self._handle)
        return list(found)

    def _handle(self, output: Output) -> HandleData | None:
        """What a resource or variant handle holds, as the graph says: whatever shapes its arguments have."""
        if self._is_walking:  # a walk that was not ended: by an error, or in a child that was forked meanwhile
            self._graph = ShapeMap()
        self._is_walking = True
        found = self._graph.handle(output)
        self._is_walking = False
        return found

    def fold(self, step: Step, given: list[Value], shapes: list[Dims | None], *, once: bool) -> list[Value] | None:
        """As `fold`; nodes that are alike have the same arrays, and so has the next plan."""
        key = self._fold_key(step, given)
        if key is None:
            return fold(step, given, shapes, once=once)
        found = self._folded.get(key)
        if found is None:
            values = fold(step, given, shapes, once=once)
            has_room = self._bytes <= _MOST_BYTES  # one plan may fold more than is worth keeping for the next
            if values is not None and has_room and all(_is_small(value.constant) for value in values):
                self._folded[key] = [value.constant for value in values]
                self._bytes += sum(value.nbytes for value in values)
                for value in given:
                    if not _is_keyed(value.constant) and id(value.constant) not in self._known:
                        self._known[id(value.constant)] = value.constant
                        self._bytes += value.nbytes
            return values
        return [Value(each.dtype, tuple(each.shape), each) for each in found]

    def _fold_key(self, step: Step, given: list[Value]) -> Hashable:
        """All that the outputs of a step follow from whose inputs are constants: small ones count with their numbers,
        larger ones are known by what they are; None where they are too large to be kept."""
        key = self._key(step, given)
        if key is None or all(_is_keyed(value.constant) for value in given):
            return key
        if not all(_is_small(value.constant) for value in given):
            return None
        return key, tuple([0 if _is_keyed(value.constant) else id(value.constant) for value in given])

    def _key(self, step: Step, given: list[Value]) -> Hashable:
        """All that the shapes of a step's outputs follow from; None where they may follow from other nodes."""
        node = step.node
        kind = node.kind
        if kind is not None and kind.is_shared:
            what: Hashable = kind.like or kind
        else:  # it is recalled for itself alone
            what = node
        is_local = self._is_local.get(node.op)
        if is_local is None:
            is_local = self._is_local[node.op] = registry.is_local(node.op)
        if not is_local:
            return None
        key: list[Any] = [what]
        for value in given:
            constant = value.constant
            if value.dtype is None:  # a handle, of which other nodes say what it holds
                return None
            if constant is None:
                key.append(value.shape if value.shape is not None else _rank(value))
            elif _is_keyed(constant):
                key.append((constant.shape, constant.dtype.char, constant.tobytes()))
            elif _may_be_asked(constant):
                return None
            else:  # of which its shape counts alone; a tuple, to be no known value
                key.append(value.shape)
        return tuple(key)


def _rank(value: Value) -> int | None:
    """How many axes a value of unknown shape has, where that follows from what makes it.

    So the parts of a shape are numbers, as is the largest of many lengths; loops are decided by such.
    """
    producer = value.producer
    if value.shape is not None or not isinstance(producer, Call):
        return None
    if producer.op == "Shape":
        return 1
    wanted = producer.inputs[1] if producer.op == "Reshape" else None
    return wanted.shape[0] if wanted is not None and wanted.shape is not None and len(wanted.shape) == 1 else None


def _shape(value: Value) -> Shape:
    """What is known of a value's shape."""
    rank = _rank(value)
    return Shape(value.shape) if rank is None else Shape([None] * rank)


def _is_keyed(constant: Any) -> bool:
    """Whether a known value can be part of a key: it has few elements, and they are numbers."""
    return (
        isinstance(constant, np.ndarray | np.generic)
        and constant.dtype.kind in "iubf"
        and constant.size <= _SMALL_ARGUMENT
    )


def _is_small(constant: Any) -> bool:
    """Whether a constant may be kept for the next plan."""
    return (
        isinstance(constant, np.ndarray | np.generic)
        and constant.dtype.kind in "iubf"
        and (constant.nbytes <= _SMALL_FOLDED)
    )


def _may_be_asked(constant: Any) -> bool:
    """Whether shape functions may look at a known value."""
    return (
        isinstance(constant, np.ndarray | np.generic)
        and constant.dtype.kind in "iub"
        and constant.size <= _SMALL_CONSTANT
    )


def infer(
    step: Step, given: list[Value], handle: Callable[[Output], HandleData | None] = handle_data
) -> list[Dims | None]:
    """The output shapes that follow from the inputs' shapes and known values; None where they do not.

    Args:
        handle: what the handle that an output is holds.
    """
    sources = step.node.inputs
    known = {index: value.constant.tolist() for index, value in enumerate(given) if _may_be_asked(value.constant)}
    try:
        shapes = infer_node(
            step.node,
            [_shape(value) for value in given],
            known,
            lambda index: handle(sources[index]),
        )
    except GraphmillError:
        return [None] * step.num_outputs  # the kernel reports what is wrong
    return [concrete(shape) for shape in shapes]


def shape_fact(step: Step, value: Value) -> Value:
    """The answer to a question about a shape that is known."""
    assert value.shape is not None
    dtype = numpy_type(step.node.output_types[0])
    match step.node.op:
        case "Size":
            fact = np.asarray(value.size, dtype)
        case "Rank":
            fact = np.asarray(len(value.shape), dtype)
        case _:
            fact = np.asarray(value.shape, dtype)
    return Value(dtype, fact.shape, fact)


def fold(step: Step, given: list[Value], shapes: list[Dims | None], *, once: bool = False) -> list[Value] | None:
    """The outputs of an operation whose inputs are constants, as constants; None where it is left to run.

    Args:
        once: the program runs once, as a rule.
    """
    before = sum(value.nbytes for value in given if value.shape is not None and value.dtype is not None)
    after = sum(
        math.prod(shape) * dtype.numpy.itemsize
        for dtype, shape in zip(step.node.output_types, shapes, strict=True)
        if shape is not None
    )
    most = _FOLD_LIMIT_ONCE if once else max(before, _FOLD_LIMIT)
    if after > most:
        return None
    try:
        with np.errstate(all="ignore"):
            outputs = as_outputs(step, step.compute(*[value.constant for value in given]))
    except Exception:  # whatever is wrong is reported when the step runs
        return None
    if any(not isinstance(output, TENSORS) for output in outputs):
        return None
    if sum(output.nbytes for output in outputs) > most:  # of a size that only the values tell
        return None
    return [Value(dtype_of(output), shape_of(output), output) for output in outputs]


#: what is a tensor, in whichever memory it lies; only what host code may look into decides anything here
TENSORS = np.ndarray | np.generic | DeviceArray


def is_known(argument: Any) -> bool:
    """Whether a plan is made for the value of an argument that follows from shapes alone, not for its shape."""
    return (
        isinstance(argument, np.ndarray | np.generic)
        and argument.dtype.kind in "iub"
        and (argument.size <= _SMALL_ARGUMENT)
    )


def value_of(argument: Any) -> Value:
    if isinstance(argument, TENSORS):
        return Value(argument.dtype, argument.shape)
    return Value(None, None)


def shape_of(value: Any) -> tuple[int, ...] | None:
    return tuple(value.shape) if isinstance(value, TENSORS) else None


def dtype_of(value: Any) -> Any:
    return value.dtype if isinstance(value, TENSORS) else None


def concrete(shape: Shape) -> tuple[int, ...] | None:
    return tuple(shape.as_list()) if shape.is_fully_defined else None


@functools.cache  # there are some fifty types
def numpy_type(dtype: Any) -> Any:
    base = dtype.base
    return None if base.name in ("resource", "variant") else base.numpy
