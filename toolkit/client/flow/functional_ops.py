"""Functions over the rows of tensors: `map_fn`, `scan`, `foldl`, `foldr`. Each is a loop over TensorArrays."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import while_loop
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.structures import nest
from toolkit.client.variables.store import get_variable_scope
from toolkit.errors import GraphError, UsageError
from toolkit.graph.shape import Dim, Shape


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """`fn` of every row of `elems` (a tensor, or a structure of tensors with the same first size), stacked.

    Args:
        dtype, fn_output_signature: the types of what `fn` returns, in its structure; default: those of `elems`.
        parallel_iterations: default: 10.
        infer_shape: all results have the same shape.

    Raises:
        UsageError: `fn` is no function; structures are not alike.
        GraphError: there are no rows: a scalar, or no tensor at all.
    """
    _check(fn)
    signature = dtype if fn_output_signature is None else fn_output_signature
    flat: list[Any] = nest.flatten(elems)
    if not flat:
        raise GraphError("map_fn needs at least one tensor to go over")
    types = [as_dtype(leaf) for leaf in nest.flatten(signature)] if signature is not None else None
    with name_scope(name, "map", flat), _read_beside():
        tensors = [convert_to_tensor(leaf, name="elem") for leaf in flat]
        count, known = _rows(tensors)
        sources = [TensorArray(t.dtype.base, count) for t in tensors]
        sources = [array.unstack(t) for array, t in zip(sources, tensors, strict=True)]
        i = constant(0)
        if types is None:
            types = [t.dtype.base for t in tensors]
        results = [TensorArray(kind, count, infer_shape=infer_shape) for kind in types]

        def body(i: Tensor, arrays: list[TensorArray]) -> Any:
            value = fn(nest.pack_sequence_as(elems, [array.read(i) for array in sources]))
            nest.assert_same_structure(elems if signature is None else signature, value)
            leaves = nest.flatten(value)
            arrays = [array.write(i, leaf) for array, leaf in zip(arrays, leaves, strict=True)]
            return i + 1, arrays

        _, arrays = while_loop(
            lambda i, _: i < count, body, (i, results), parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop, swap_memory=swap_memory, maximum_iterations=count,
        )  # fmt: skip
        return nest.pack_sequence_as(elems if signature is None else signature, _stacked(arrays, known))


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All partial results of `accumulated = fn(accumulated, row)`, stacked in the order of the rows.

    Args:
        initializer: where to start, in the structure of what `fn` returns; default: the first row.
        reverse: go from the last row to the first.

    Raises:
        UsageError: `fn` is no function; structures are not alike.
        GraphError: there are no rows.
    """
    _check(fn)
    flat: list[Any] = nest.flatten(elems)
    like = elems if initializer is None else initializer
    with name_scope(name, "scan", flat), _read_beside():
        tensors = [convert_to_tensor(leaf, name="elem") for leaf in flat]
        count, known = _rows(tensors, zero_is_known=True)
        sources = [TensorArray(t.dtype.base, count, element_shape=_row_shape(t)) for t in tensors]
        sources = [array.unstack(t) for array, t in zip(sources, tensors, strict=True)]
        first = count - 1 if reverse else 0
        if initializer is None:
            start = [array.read(first) for array in sources]
            i: Any = 1
        else:
            start = [convert_to_tensor(leaf) for leaf in nest.flatten(initializer)]
            i = 0
        results = [
            TensorArray(
                t.dtype.base, count, element_shape=t.static_shape if infer_shape else None, infer_shape=infer_shape
            )
            for t in start
        ]
        if initializer is None:
            results = [array.write(first, t) for array, t in zip(results, start, strict=True)]

        def body(i: Tensor, state: list[Any], arrays: list[TensorArray]) -> Any:
            row = nest.pack_sequence_as(elems, [array.read(i) for array in sources])
            value = fn(nest.pack_sequence_as(like, state), row)
            nest.assert_same_structure(like, value)
            leaves = nest.flatten(value)
            arrays = [array.write(i, leaf) for array, leaf in zip(arrays, leaves, strict=True)]
            return (i - 1 if reverse else i + 1), leaves, arrays

        def more(i: Tensor, *_: Any) -> Tensor:
            return i >= 0 if reverse else i < count

        _, _, arrays = while_loop(
            more, body, (count - 1 - i if reverse else i, start, results), parallel_iterations=parallel_iterations,
            back_prop=back_prop, swap_memory=swap_memory, maximum_iterations=count,
        )  # fmt: skip
        return nest.pack_sequence_as(like, _stacked(arrays, known))


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last result of `accumulated = fn(accumulated, row)`, from the first row to the last.

    Args:
        initializer: where to start; default: the first row.

    Raises:
        UsageError: `fn` is no function.
        GraphError: there are no rows.
    """
    return _fold(fn, elems, initializer, name, False, parallel_iterations, back_prop, swap_memory)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """As `foldl`, from the last row to the first.

    Raises:
        UsageError: `fn` is no function.
        GraphError: there are no rows.
    """
    return _fold(fn, elems, initializer, name, True, parallel_iterations, back_prop, swap_memory)


def _fold(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, name: str | None, backwards: bool,
    parallel_iterations: int, back_prop: bool, swap_memory: bool,
) -> Any:  # fmt: skip
    _check(fn)
    with name_scope(name, "foldr" if backwards else "foldl", [elems]), _read_beside():
        arrays, count = _arrays(elems)
        first: Any = count - 1 if backwards and initializer is None else 0
        start = nest.map_structure(_reader(first), arrays) if initializer is None else initializer
        if backwards:
            i = first if initializer is None else count
        else:
            i = constant(1 if initializer is None else 0)

        def body(i: Tensor, state: Any) -> Any:
            place = i - 1 if backwards else i
            following = fn(state, nest.map_structure(_reader(place), arrays))
            return [place if backwards else i + 1, following]

        _, result = while_loop(
            lambda i, _: i > 0 if backwards else i < count, body, [i, start],
            parallel_iterations=parallel_iterations, back_prop=back_prop, swap_memory=swap_memory,
            maximum_iterations=count,
        )  # fmt: skip
        return result


def _check(fn: Any) -> None:
    if not callable(fn):
        raise UsageError(f"{fn!r} is no function of rows")


def _reader(index: Any) -> Callable[[TensorArray], Tensor]:
    return lambda array: array.read(index)


def _device_of(op: Any) -> str:
    return op.device


@contextmanager
def _read_beside() -> Generator[None]:
    """Variables that are made inside are read once, outside of the loop, where they are."""
    scope = get_variable_scope()
    before = scope.caching_device
    if before is None:
        scope.caching_device = _device_of
    try:
        yield
    finally:
        scope.caching_device = before


def _rows(tensors: list[Tensor], zero_is_known: bool = False) -> tuple[Any, Dim]:
    """How many rows there are, as a number where it is known, and what is known."""
    sizes: set[int] = set()
    for tensor in tensors:
        if tensor.static_shape.rank == 0:
            raise GraphError(f"'{tensor.name}' is a scalar; tensors to go over need a first axis")
        length = tensor.static_shape[0] if tensor.static_shape.rank is not None else None
        if length is not None:
            sizes.add(length)
    if len(sizes) > 1:
        raise GraphError(f"tensors to go over have {sorted(sizes)} rows; they must have the same number")
    first = tensors[0].static_shape[0] if tensors[0].static_shape.rank is not None else None
    known = sizes.pop() if sizes else None
    counted = first if zero_is_known or first else None
    return (array_ops.shape(tensors[0])[0] if counted is None else counted), known


def _row_shape(tensor: Tensor) -> Shape:
    return tensor.static_shape.slice(1) if tensor.static_shape.rank is not None else Shape(None)


def _arrays(elems: Any) -> tuple[Any, Any]:
    tensors = [convert_to_tensor(leaf, name="elem") for leaf in nest.flatten(elems)]
    count, _ = _rows(tensors)

    def filled(tensor: Any) -> TensorArray:
        value = convert_to_tensor(tensor, name="elem")
        return TensorArray(value.dtype.base, count).unstack(value)

    return nest.map_structure(filled, nest.pack_sequence_as(elems, tensors)), count


def _stacked(arrays: list[TensorArray], known: Dim) -> list[Tensor]:
    results = [array.stack() for array in arrays]
    for result in results:
        tail = result.static_shape.slice(1) if result.static_shape.rank is not None else Shape(None)
        result.set_shape(Shape([known]).concatenate(tail))
    return results
