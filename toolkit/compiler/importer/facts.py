"""What is known of values before anything runs: shapes that follow from shapes, constants from constants."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step, as_outputs
from toolkit.errors import GraphmillError
from toolkit.graph.infer import infer_node
from toolkit.graph.shape import Shape
from toolkit.graph.shapes import registry
from toolkit.kernels.device_memory import DeviceArray

Dims = tuple[int, ...]

_FOLD_LIMIT = 1 << 23  # bytes: a constant bigger than this, and than what it is made of, is not made ahead of time
_FOLD_LIMIT_ONCE = 1 << 18  # bytes, in programs that run once: what is made ahead of time stays as long as the session
#: elements of an argument whose value counts where it follows from shapes, and of known values in keys
_SMALL_ARGUMENT = 64
_SMALL_CONSTANT = 1 << 10  # elements: what shape functions may look at


class Facts:
    """What has been found of steps, recalled for those that are alike: of nodes of one kind, with inputs of the same
    shapes and the same known values. In large graphs the same few steps come again and again.
    """

    def __init__(self) -> None:
        self._shapes: dict[Hashable, list[Dims | None]] = {}
        self._folded: dict[Hashable, list[Any]] = {}
        self._is_local: dict[str, bool] = {}

    def infer(self, step: Step, given: list[Value]) -> list[Dims | None]:
        """As `infer`."""
        key = self._key(step, given)
        if key is None:
            return infer(step, given)
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = infer(step, given)
        return list(found)

    def fold(self, step: Step, given: list[Value], shapes: list[Dims | None], *, once: bool) -> list[Value] | None:
        """As `fold`; nodes that are alike have the same arrays."""
        key = self._key(step, given) if all(_is_keyed(value.constant) for value in given) else None
        if key is None:
            return fold(step, given, shapes, once=once)
        found = self._folded.get(key)
        if found is None:
            values = fold(step, given, shapes, once=once)
            if values is not None and all(_is_keyed(value.constant) for value in values):
                self._folded[key] = [value.constant for value in values]
            return values
        return [Value(each.dtype, tuple(each.shape), each) for each in found]

    def _key(self, step: Step, given: list[Value]) -> Hashable:
        """All that the shapes of a step's outputs follow from; None where they may follow from other nodes."""
        node = step.node
        kind = node.kind
        if kind is None or not kind.is_shared:
            return None
        is_local = self._is_local.get(node.op)
        if is_local is None:
            is_local = self._is_local[node.op] = registry.is_local(node.op)
        if not is_local:
            return None
        key: list[Any] = [kind.like or kind]
        for value in given:
            constant = value.constant
            if value.dtype is None:  # a handle, of which other nodes say what it holds
                return None
            if constant is None:
                key.append(value.shape)
            elif _is_keyed(constant):
                key.append((constant.shape, constant.dtype.char, constant.tobytes()))
            elif _may_be_asked(constant):
                return None
            else:  # of which its shape counts alone; a tuple, to be no known value
                key.append(value.shape)
        return tuple(key)


def _is_keyed(constant: Any) -> bool:
    """Whether a known value can be part of a key: it has few elements, and they are numbers."""
    return (
        isinstance(constant, np.ndarray | np.generic)
        and constant.dtype.kind in "iubf"
        and constant.size <= _SMALL_ARGUMENT
    )


def _may_be_asked(constant: Any) -> bool:
    """Whether shape functions may look at a known value."""
    return (
        isinstance(constant, np.ndarray | np.generic)
        and constant.dtype.kind in "iub"
        and constant.size <= _SMALL_CONSTANT
    )


def infer(step: Step, given: list[Value]) -> list[Dims | None]:
    """The output shapes that follow from the inputs' shapes and known values; None where they do not."""
    known = {index: value.constant.tolist() for index, value in enumerate(given) if _may_be_asked(value.constant)}
    try:
        shapes = infer_node(step.node, [Shape(value.shape) for value in given], known)
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
