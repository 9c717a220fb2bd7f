"""Datasets of what Python functions make of elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.construction.create import create_op
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.batching import deterministic_text
from toolkit.client.data.dataset import Dataset, made_of
from toolkit.client.data.elements import first_size_of, int64
from toolkit.client.data.leaves import DatasetLeaf, TensorLeaf
from toolkit.client.data.sources import from_tensors
from toolkit.client.functions.graph import FunctionGraph
from toolkit.client.functions.trace import TracedFunction, function_name, trace
from toolkit.client.structures import nest
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.shape import UNKNOWN

_MARK = "_tf_data_function"
_CHOSEN = -1


@dataclass
class ElementFunction:
    """A function of elements in the graph's library.

    Attributes:
        structure: what it returns.
    """

    traced: TracedFunction
    structure: Any

    @property
    def captured(self) -> list[Tensor]:
        return self.traced.captured

    @property
    def ref(self) -> FuncRef:
        return FuncRef(self.traced.name, {_MARK: True})

    @property
    def captured_types(self) -> list[Any]:
        return [tensor.dtype.base for tensor in self.captured]


def element_function(
    python_function: Callable[..., Any], arguments: Any, method: str, *, one_by_one: bool = False
) -> ElementFunction:
    """The function that a Python function of elements becomes.

    Args:
        arguments: the structure of an element; with `one_by_one`, a tuple of the structures of several arguments.
        method: what it is given to, in names.

    Raises:
        GraphError: what it returns cannot be an element.
    """
    flat = structures.leaves(arguments)
    given = [(f"args_{i}", leaf.carried, leaf.carried_shape) for i, leaf in enumerate(flat)]
    found: list[Any] = []

    def call(graph: FunctionGraph, tensors: list[Tensor]) -> Any:
        element = structures.unpacked(arguments, tensors)
        # a plain tuple is taken apart, a named one is an argument
        returned = python_function(*element) if one_by_one or type(element) is tuple else python_function(element)
        return tuple(returned) if isinstance(returned, list) else returned  # type: ignore[arg-type]

    def convert(returned: Any) -> list[Tensor]:
        returned = _with_lists_packed(returned)
        if returned is None or any(leaf is None for leaf in nest.flatten(returned)):
            raise GraphError(f"the function given to {method} must return tensors, not {returned!r}")
        converted = nest.map_structure(_value, returned)
        found.append(structures.structure_of(converted))
        return structures.packed(found[0], returned)

    name = function_name(python_function, f"{method}_") if callable(python_function) else None
    traced = trace(python_function, given, name=name, call=call, convert=convert, attrs={_MARK: True})
    return ElementFunction(traced, found[0])


def _with_lists_packed(returned: Any) -> Any:
    """What a function returned, with each list inside made one tensor: lists are no structure of elements."""

    def has_no_lists(part: Any) -> bool:
        return not isinstance(part, list)

    def packed(part: Any) -> Any:
        return convert_to_tensor(cast("Any", part)) if isinstance(part, list) else part

    shallow = nest.get_traverse_shallow_structure(has_no_lists, returned)
    return nest.map_structure_up_to(shallow, packed, returned)


def _value(leaf: Any) -> Any:
    return leaf if hasattr(leaf, "variant") or hasattr(leaf, "dense_shape") else convert_to_tensor(leaf)


def map_elements(
    source: Dataset, map_func: Any, num_parallel_calls: Any, deterministic: Any, synchronous: bool, unbounded: bool,
    *, preserve_cardinality: bool = False, inter_op: bool = True,
) -> Dataset:  # fmt: skip
    """What a function makes of each element."""
    function = element_function(map_func, source.structure, "Dataset_map")
    attrs = {
        "f": function.ref, "use_inter_op_parallelism": inter_op, "preserve_cardinality": preserve_cardinality,
    }  # fmt: skip
    if num_parallel_calls is None:
        attrs["force_synchronous"] = synchronous
        return made_of(source, "MapDataset", [function.captured], attrs, function.structure)
    calls = int64(num_parallel_calls, "num_parallel_calls")
    attrs |= {"deterministic": deterministic_text(deterministic), "use_unbounded_threadpool": unbounded}
    return made_of(source, "ParallelMapDatasetV2", [function.captured, calls], attrs, function.structure)


def predicate_function(source: Dataset, predicate: Any, method: str) -> ElementFunction:
    """A function of elements that says yes or no.

    Raises:
        ValueError: it returns something else.
    """
    function = element_function(predicate, source.structure, method)
    leaf = function.structure
    scalar = isinstance(leaf, TensorLeaf) and leaf.dtype.base is dtypes.bool_ and leaf.shape.rank in (0, None)
    if not scalar:
        raise ValueError(f"a predicate must return one bool, not {leaf!r}")
    return function


def filtered(source: Dataset, predicate: Any) -> Dataset:
    """The elements of which a function says True."""
    function = predicate_function(source, predicate, "Dataset_filter")
    return made_of(source, "FilterDataset", [function.captured], {"predicate": function.ref})


def take_while(source: Dataset, predicate: Any) -> Dataset:
    """The elements before the first of which a function says False."""
    function = predicate_function(source, predicate, "Dataset_take_while")
    return made_of(source, "TakeWhileDataset", [function.captured], {"predicate": function.ref})


def dataset_function(source: Dataset, map_func: Any, method: str) -> ElementFunction:
    """A function of elements that returns datasets.

    Raises:
        TypeError: it returns something else.
    """
    function = element_function(map_func, source.structure, method)
    if not isinstance(function.structure, DatasetLeaf):
        raise TypeError(f"the function given to {method} must return a Dataset, not {function.structure!r}")
    return function


def flat_map(source: Dataset, map_func: Any) -> Dataset:
    """The elements of the datasets that a function makes, one dataset after the other."""
    function = dataset_function(source, map_func, "Dataset_flat_map")
    return made_of(source, "FlatMapDataset", [function.captured], {"f": function.ref}, function.structure.elements)


def interleave(
    source: Dataset, map_func: Any, cycle_length: Any, block_length: Any, num_parallel_calls: Any, deterministic: Any
) -> Dataset:
    """The elements of the datasets that a function makes, `block_length` of each of `cycle_length` in turns."""
    function = dataset_function(source, map_func, "Dataset_interleave")
    elements = function.structure.elements
    cycle = int64(_CHOSEN if cycle_length is None else cycle_length, "cycle_length")
    block = int64(1 if block_length is None else block_length, "block_length")
    if num_parallel_calls is None:
        inputs = [function.captured, cycle, block]
        return made_of(source, "InterleaveDataset", inputs, {"f": function.ref}, elements)
    inputs = [
        function.captured, cycle, block, int64(_CHOSEN, "buffer_output_elements"),
        int64(_CHOSEN, "prefetch_input_elements"), int64(num_parallel_calls, "num_parallel_calls"),
    ]  # fmt: skip
    attrs = {"f": function.ref, "deterministic": deterministic_text(deterministic)}
    return made_of(source, "ParallelInterleaveDatasetV4", inputs, attrs, elements)


# -- functions with a state ----------------------------------------------------------------------------------------


def scan(source: Dataset, initial_state: Any, scan_func: Any) -> Dataset:
    """What a function of a state and an element returns beside the next state."""
    state = structures.normalized(initial_state)
    start = structures.structure_of(state)
    function, returned = _with_state(scan_func, start, source, "Dataset_scan", has_output=True)
    structure = returned[1]
    attrs = {"f": function.ref, "preserve_cardinality": True, "use_default_device": True}
    inputs = [structures.packed(start, state), function.captured]
    return made_of(source, "ScanDataset", inputs, attrs, structure)


def reduce(source: Dataset, initial_state: Any, reduce_func: Any) -> Any:
    """The last state of a function of a state and an element."""
    with name_scope("initial_state"):
        state = structures.normalized(initial_state)
    start = structures.structure_of(state)
    function, _ = _with_state(reduce_func, start, source, "reduce", has_output=False)
    found = create_op(
        "ReduceDataset", [source.variant, structures.packed(start, state), function.captured],
        {"f": function.ref, "use_inter_op_parallelism": True, **structures.attributes(function.structure)},
    )  # fmt: skip
    return structures.unpacked(function.structure, found.outputs)


def _with_state(
    python_function: Any, start: Any, source: Dataset, method: str, *, has_output: bool
) -> tuple[ElementFunction, Any]:
    """A function of a state and an element; its states must be alike.

    Raises:
        TypeError: it returns a state of other types.
        GraphError: its states get more general from call to call.
    """
    function = element_function(python_function, (start, source.structure), method, one_by_one=True)
    returned: Any = function.structure
    if has_output and not (isinstance(returned, tuple) and len(cast("tuple[Any, ...]", returned)) == 2):
        raise TypeError(f"the function given to {method} must return a state and an output, not {returned!r}")
    state = cast("Any", returned[0] if has_output else returned)
    old, new = structures.leaves(start), structures.leaves(state)
    if [leaf.dtype for leaf in old] != [leaf.dtype for leaf in new]:
        raise TypeError(f"the function given to {method} must return a state like {start!r}, not {state!r}")
    for before, after in zip(old, new, strict=True):
        if before.shape.most_specific_common(after.shape) != before.shape:
            looser = structures.mapped(lambda leaf: leaf.with_shape(UNKNOWN), start)
            return _with_state(python_function, looser, source, method, has_output=has_output)
    return function, cast("Any", returned)


def parallel_interleave(
    source: Dataset, map_func: Any, cycle_length: int, block_length: int = 1, sloppy: bool | None = False,
    buffer_output_elements: int | None = None, prefetch_input_elements: int | None = None,
) -> Dataset:  # fmt: skip
    """As `interleave`, as tf.contrib.data had it."""
    function = dataset_function(source, map_func, "tf_data_experimental_parallel_interleave")
    ahead = 2 * block_length if buffer_output_elements is None else buffer_output_elements
    started = 2 * cycle_length if prefetch_input_elements is None else prefetch_input_elements
    inputs = [
        function.captured, int64(cycle_length, "cycle_length"), int64(block_length, "block_length"),
        int64(ahead, "buffer_output_elements"), int64(started, "prefetch_input_elements"),
    ]  # fmt: skip
    attrs = {"f": function.ref, "deterministic": deterministic_text(None if sloppy is None else not sloppy)}
    elements = function.structure.elements
    return made_of(source, "LegacyParallelInterleaveDatasetV2", inputs, attrs, elements)


def counter(start: Any, step: Any, dtype: Any) -> Dataset:
    """Numbers from start on, without end."""
    with name_scope("counter"):
        kind = as_dtype(dtype)
        first = convert_to_tensor(start, kind, name="start")
        by = convert_to_tensor(step, kind, name="step")
        return scan(from_tensors(0).repeat(), first, lambda state, _: (state + by, state))


def map_and_batch(
    source: Dataset, map_func: Any, batch_size: Any, num_parallel_batches: Any, drop_remainder: Any,
    num_parallel_calls: Any,
) -> Dataset:  # fmt: skip
    """What a function makes of each element, `batch_size` of them stacked.

    Raises:
        ValueError: both `num_parallel_batches` and `num_parallel_calls` are given.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError("map_and_batch takes either num_parallel_batches or num_parallel_calls")
    function = element_function(map_func, source.structure, "tf_data_experimental_map_and_batch")
    size = int64(batch_size, "batch_size")
    calls = num_parallel_calls if num_parallel_calls is not None else batch_size * (num_parallel_batches or 1)
    parallel = int64(calls, "num_parallel_calls")
    drop = convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
    structure = structures.mapped(structures.first_size(first_size_of(drop_remainder, size)), function.structure)
    inputs = [function.captured, size, parallel, drop]
    attrs = {"f": function.ref, "preserve_cardinality": True}
    return made_of(source, "MapAndBatchDataset", inputs, attrs, structure)
