"""What one element of a dataset is: tuples, named tuples and mappings of tensors, sparse tensors and datasets.

A list is no structure here: it becomes a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data.leaves import DatasetLeaf, Leaf, SparseLeaf, TensorLeaf
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.structures import nest
from toolkit.client.structures.values import SparseTensorValue
from toolkit.errors import UsageError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import UNKNOWN, Shape


def normalized(element: Any, scope: str = "normalize_element") -> Any:
    """An element with tensors in place of values."""
    with name_scope(scope):
        count = [-1]

        def converted(value: Any) -> Any:
            if isinstance(value, Mapping) or (isinstance(value, tuple) and not isinstance(value, SparseTensorValue)):
                mapping = cast("Mapping[Any, Any]", value)
                keys = sorted(mapping) if isinstance(value, Mapping) else []
                leaves = {key: converted(mapping[key]) for key in keys}
                if isinstance(value, Mapping):
                    return _same_mapping(value, leaves)
                items = [converted(item) for item in value]  # type: ignore[misc]
                return type(value)(*items) if hasattr(value, "_fields") else tuple(items)  # type: ignore[call-arg]
            count[0] += 1
            if isinstance(value, SparseTensorValue):
                return SparseTensor.from_value(value)
            if isinstance(value, SparseTensor) or hasattr(value, "variant"):
                return value
            return convert_to_tensor(value, name=f"component_{count[0]}")

        return converted(element)


def _same_mapping(like: Any, items: dict[Any, Any]) -> Any:
    ordered = {key: items[key] for key in like}
    return ordered if type(like) is dict else type(like)(ordered)


def structure_of(element: Any) -> Any:
    """The leaves of a normalized element, in its structure."""
    return nest.map_structure(leaf_of, element)


def leaf_of(value: Any) -> Leaf:
    """What a tensor, sparse tensor or dataset is as a place of an element."""
    if isinstance(value, SparseTensor):
        return SparseLeaf(value.dtype.base, value.static_shape)
    if hasattr(value, "variant"):
        return DatasetLeaf(value.structure)
    return TensorLeaf(value.dtype.base, value.static_shape)


def leaves(structure: Any) -> list[Leaf]:
    return nest.flatten(structure)


def packed(structure: Any, element: Any) -> list[Tensor]:
    """The tensors that carry an element."""
    return [leaf.pack(value) for leaf, value in zip(leaves(structure), nest.flatten(element), strict=True)]


def unpacked(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """The element that tensors carry."""
    values = [leaf.unpack(tensor) for leaf, tensor in zip(leaves(structure), tensors, strict=True)]
    return nest.pack_sequence_as(structure, values)


def carried_types(structure: Any) -> list[DType]:
    return [leaf.carried for leaf in leaves(structure)]


def carried_shapes(structure: Any) -> list[Shape]:
    return [leaf.carried_shape for leaf in leaves(structure)]


def attributes(structure: Any) -> dict[str, Any]:
    """The attributes by which a dataset's op says what its elements are."""
    return {"output_types": carried_types(structure), "output_shapes": carried_shapes(structure)}


def mapped(change: Callable[[Leaf], Leaf], structure: Any) -> Any:
    return nest.map_structure(change, structure)


def first_size(size: int | None) -> Callable[[Leaf], Leaf]:
    """Puts a size before a leaf's."""
    return lambda leaf: leaf.with_shape(Shape([size]).concatenate(leaf.shape))


def without_first_size(leaf: Leaf) -> Leaf:
    """What the rows of a leaf are."""
    return leaf.with_shape(leaf.shape.slice(1) if leaf.shape.rank is not None else UNKNOWN)


def shown_shapes(structure: Any) -> Any:
    """Shapes as a program sees them, in an element's structure."""
    graph = get_default_graph()

    def shown(leaf: Leaf) -> Any:
        return graph.present_shape(leaf.shape)

    return nest.map_structure(shown, structure)


def shown_types(structure: Any) -> Any:
    """Types, in an element's structure."""

    def shown(leaf: Leaf) -> DType:
        return leaf.dtype

    return nest.map_structure(shown, structure)


def shown_classes(structure: Any) -> Any:
    """Classes of values, in an element's structure."""

    def shown(leaf: Leaf) -> type[Any]:
        return leaf.value_class

    return nest.map_structure(shown, structure)


def structure_from(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """The leaves that types, shapes and classes, each in the element's structure, describe.

    Raises:
        UsageError: the structures are not alike.
    """
    flat_types = [as_dtype(leaf) for leaf in nest.flatten(_tuples(types))]
    like = _tuples(types)
    flat_shapes = [UNKNOWN] * len(flat_types) if shapes is None else _flat_shapes(like, shapes)
    flat_classes: list[Any] = [Tensor] * len(flat_types) if classes is None else nest.flatten(_tuples(classes))
    if not len(flat_types) == len(flat_shapes) == len(flat_classes):
        raise UsageError(
            f"{len(flat_types)} types are given with {len(flat_shapes)} shapes and {len(flat_classes)} classes; "
            "all three must have the same structure"
        )
    made = [
        SparseLeaf(dtype, shape) if kind is SparseTensor else TensorLeaf(dtype, shape)
        for dtype, shape, kind in zip(flat_types, flat_shapes, flat_classes, strict=True)
    ]
    return nest.pack_sequence_as(like, made)


def _tuples(structure: Any) -> Any:
    """A list where a structure is expected is a tuple."""
    if isinstance(structure, list):
        return tuple(_tuples(item) for item in cast("list[Any]", structure))
    if isinstance(structure, tuple) and not hasattr(cast("Any", structure), "_fields"):
        return tuple(_tuples(item) for item in cast("tuple[Any, ...]", structure))
    if isinstance(structure, Mapping):
        return {key: _tuples(item) for key, item in cast("Mapping[Any, Any]", structure).items()}
    return cast("Any", structure)


def _flat_shapes(like: Any, shapes: Any) -> list[Shape]:
    """Shapes in the structure of `like`, whose leaves are shapes: lists of sizes at these places are no structure."""
    if isinstance(like, Mapping):
        mapping = cast("Mapping[Any, Any]", like)
        if not isinstance(shapes, Mapping) or set(cast("Mapping[Any, Any]", shapes)) != set(mapping):
            raise UsageError(f"shapes must be a mapping with the keys {', '.join(map(str, sorted(mapping)))}")
        return [shape for key in sorted(mapping) for shape in _flat_shapes(mapping[key], shapes[key])]
    if isinstance(like, tuple):
        items = cast("tuple[Any, ...]", like)
        if not isinstance(shapes, list | tuple):
            raise UsageError(f"shapes must be a tuple of {len(items)}, not {shapes!r}")
        given = cast("list[Any]", shapes)
        if len(given) != len(items):
            raise UsageError(f"shapes must be a tuple of {len(items)}, not of {len(given)}")
        return [shape for item, part in zip(items, given, strict=True) for shape in _flat_shapes(item, part)]
    return [as_shape(shapes)]
