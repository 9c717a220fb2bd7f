"""Datasets of what Python generators give.

Each pass over the dataset starts the generator anew, in the process that made the graph: the graph's functions call
it by tokens, so that a graph in a file has none of it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.dataset import Dataset, made_of
from toolkit.client.data.leaves import Leaf, TensorLeaf
from toolkit.client.data.mapping import ElementFunction, element_function, flat_map
from toolkit.client.data.sources import from_tensors
from toolkit.client.functions.script_ops import py_func
from toolkit.client.structures import nest
from toolkit.errors import ArgumentTypeError, GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.shape import SCALAR, Shape

_METHOD = "Dataset_from_generator"


class _Passes:
    """The passes over a generator that are under way, by number."""

    def __init__(self, generator: Callable[..., Any], expected: Any):
        self._generator = generator
        self._expected = expected
        self._leaves: list[Leaf] = structures.leaves(expected)
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._arguments: dict[int, Sequence[Any]] = {}
        self._running: dict[int, Iterator[Any]] = {}

    def begin(self, *arguments: Any) -> Any:
        """The number of a new pass."""
        with self._lock:
            number = next(self._numbers)
            self._arguments[number] = arguments
        return np.int64(number)

    def advance(self, number: Any) -> list[Any]:
        """The arrays of the next element. Raises StopIteration at the end, TypeError for what is no such element."""
        number = int(number)
        running = self._running.get(number)
        if running is None:
            running = self._running[number] = iter(self._generator(*self._arguments.pop(number)))
        return self._arrays(next(running))

    def finish(self, number: Any) -> Any:
        """Forget a pass."""
        self._running.pop(int(number), None)
        return np.int64(0)

    def _arrays(self, element: Any) -> list[Any]:
        try:
            values = nest.flatten_up_to(self._expected, element)
        except (GraphmillError, TypeError, ValueError):
            raise TypeError(f"the generator gave {element!r}, where {self._expected!r} is expected") from None
        return [_array(value, leaf) for value, leaf in zip(values, self._leaves, strict=True)]


def _array(value: Any, leaf: Leaf) -> Any:
    dtype = leaf.carried.base
    try:
        array = np.asarray(value, object if dtype is dtypes.string else dtype.numpy)
    except (TypeError, ValueError):
        raise TypeError(f"the generator gave {value!r}, which cannot become {dtype.name}") from None
    if not leaf.carried_shape.is_compatible_with(Shape(array.shape)):
        raise TypeError(
            f"the generator gave an element of shape {Shape(array.shape)}, where {leaf.carried_shape} is expected"
        )
    return array


def from_generator(
    generator: Any, output_types: Any = None, output_shapes: Any = None, args: Any = None, output_signature: Any = None
) -> Dataset:
    """The elements that a Python generator gives, in each pass anew.

    Args:
        generator: a function whose result can be iterated over; it gets the values of `args` as arrays.
        output_types, output_shapes: what an element is; unknown shapes by default.
        args: tensors, computed when a pass begins.
        output_signature: TensorSpecs in place of types and shapes.

    Raises:
        TypeError: it is no function, or what its elements are is not said, or said twice.
    """
    if not callable(generator):
        raise ArgumentTypeError(f"the generator is a function whose result can be iterated over, not {generator!r}")
    expected = _expected(output_types, output_shapes, output_signature)
    given = [convert_to_tensor(value, name=f"args_{i}") for i, value in enumerate(args or ())]
    passes = _Passes(generator, expected)

    # what the functions are called stands in the graph: these are TensorFlow's names
    def get_iterator_id_fn(_unused: Any) -> Tensor:
        return py_func(passes.begin, given, dtypes.int64)

    def generator_next_fn(number: Any) -> Any:
        leaves = structures.leaves(expected)
        values = py_func(passes.advance, [number], [leaf.carried for leaf in leaves])
        for value, leaf in zip(values, leaves, strict=True):
            value.set_shape(leaf.carried_shape)
        return structures.unpacked(expected, values)

    def finalize_fn(number: Any) -> Tensor:
        return py_func(passes.finish, [number], dtypes.int64)

    def flat_map_fn(dummy: Any) -> Dataset:
        state = TensorLeaf(dtypes.int64, SCALAR)
        functions = [
            element_function(get_iterator_id_fn, structures.structure_of(dummy), _METHOD),
            element_function(generator_next_fn, state, _METHOD),
            element_function(finalize_fn, state, _METHOD),
        ]
        return _generated(dummy, functions, expected)

    return flat_map(from_tensors(0), flat_map_fn)


def _generated(dummy: Tensor, functions: Sequence[ElementFunction], expected: Any) -> Dataset:
    start, following, end = functions
    attrs = {"init_func": start.ref, "next_func": following.ref, "finalize_func": end.ref}
    inputs = [[dummy, *start.captured], following.captured, end.captured]
    return made_of(None, "GeneratorDataset", inputs, attrs, expected)


def _expected(types: Any, shapes: Any, signature: Any) -> Any:
    if signature is None:
        if types is None:
            raise ArgumentTypeError("from_generator needs output_types, or output_signature: what an element is")
        return structures.structure_from(types, shapes)
    if types is not None or shapes is not None:
        raise ArgumentTypeError("output_signature says types and shapes; give it, or output_types and output_shapes")
    for spec in nest.flatten(signature):
        if not (hasattr(spec, "dtype") and hasattr(spec, "shape")) or hasattr(spec, "ragged_rank"):
            raise ArgumentTypeError(f"output_signature is of TensorSpecs, not {spec!r}")
    types = nest.map_structure(_dtype_of, signature)
    return structures.structure_from(types, nest.map_structure(_shape_of, signature))


def _dtype_of(spec: Any) -> Any:
    return spec.dtype


def _shape_of(spec: Any) -> Any:
    return spec.shape
