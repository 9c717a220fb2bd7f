"""Datasets of several elements together, and of their rows."""

from __future__ import annotations

from typing import Any, cast

from toolkit.client import ops
from toolkit.client.construction.convert import as_shape, convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.dataset import Dataset, made_of
from toolkit.client.data.elements import first_size_of, int64
from toolkit.client.data.leaves import DatasetLeaf, SparseLeaf, TensorLeaf
from toolkit.client.structures import nest
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape


def deterministic_text(deterministic: Any) -> str:
    """The attribute for an argument `deterministic`."""
    return "default" if deterministic is None else "true" if deterministic else "false"


def batch(
    source: Dataset, batch_size: Any, drop_remainder: Any, num_parallel_calls: Any, deterministic: Any
) -> Dataset:
    """Elements stacked, `batch_size` at a time."""
    size = int64(batch_size, "batch_size")
    drop = convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
    structure = structures.mapped(structures.first_size(first_size_of(drop_remainder, size)), source.structure)
    if num_parallel_calls is None:
        return made_of(source, "BatchDatasetV2", [size, drop], structure=structure)
    calls = int64(num_parallel_calls, "num_parallel_calls")
    attrs = {"deterministic": deterministic_text(deterministic)}
    return made_of(source, "ParallelBatchDataset", [size, calls, drop], attrs, structure)


def padded_batch(
    source: Dataset, batch_size: Any, padded_shapes: Any, padding_values: Any, drop_remainder: Any
) -> Dataset:
    """Elements stacked, padded to the largest of a batch or to `padded_shapes`.

    Raises:
        GraphError: a shape cannot be padded to another, or is not known and not given.
    """
    size = int64(batch_size, "batch_size")
    flat = structures.leaves(source.structure)
    if any(not isinstance(leaf, TensorLeaf) for leaf in flat):
        raise GraphError("padded_batch takes tensors; sparse tensors and datasets are not padded")
    if padded_shapes is None:
        for leaf in flat:
            if leaf.shape.rank is None:
                raise GraphError("padded_batch needs padded_shapes for elements whose rank is not known")
        wanted: list[Any] = [leaf.shape for leaf in flat]
    else:
        wanted = _like(source.structure, padded_shapes)
    shapes: list[Tensor] = []
    static: list[Shape] = []
    for leaf, given in zip(flat, wanted, strict=True):
        tensor, known = _padded_shape(given, leaf.shape)
        shapes.append(tensor)
        static.append(known)
    values = [None] * len(flat) if padding_values is None else _like_values(source.structure, padding_values)
    with_names = [
        convert_to_tensor(_zero(leaf.dtype) if value is None else value, leaf.dtype, name="padding_value")
        for leaf, value in zip(flat, values, strict=True)
    ]
    drop = convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
    count = first_size_of(drop_remainder, size)
    leaves = [leaf.with_shape(Shape([count]).concatenate(known)) for leaf, known in zip(flat, static, strict=True)]
    structure = nest.pack_sequence_as(source.structure, leaves)
    variant = ops.padded_batch_dataset_v2(
        source.variant, size, shapes, with_names, drop, output_shapes=structures.carried_shapes(structure)
    )
    from toolkit.client.data.dataset import dataset_of

    return dataset_of(variant, structure, source.given_options)


def _like(structure: Any, shapes: Any) -> list[Any]:
    """Shapes in the structure of an element, one for each leaf; one alone is for all of a single leaf."""
    if not nest.is_nested(structure):
        return [shapes]
    if isinstance(structure, tuple):
        parts = cast("tuple[Any, ...]", structure)
        return [leaf for part, given in zip(parts, shapes, strict=True) for leaf in _like(part, given)]
    return [leaf for key in sorted(structure) for leaf in _like(structure[key], shapes[key])]


def _like_values(structure: Any, values: Any) -> list[Any]:
    if nest.is_nested(structure) and not nest.is_nested(values):
        return [values] * len(structures.leaves(structure))
    return _like(structure, values)


def _padded_shape(given: Any, actual: Shape) -> tuple[Tensor, Shape]:
    """A shape to pad to as a tensor (-1: as large as the largest) and as far as it is known."""
    if isinstance(given, Tensor):
        known = given.graph.shapes.constant(given.output)
        static = Shape(None) if known is None else Shape([None if d is None or d < 0 else d for d in known])
        return given, static
    if isinstance(given, list | tuple):
        given = [None if size == -1 else size for size in cast("list[Any]", given)]
    shape = as_shape(given)
    if shape.dims is None:
        raise GraphError("a shape to pad to needs a known rank")
    if actual.rank is not None and actual.rank != shape.rank:
        raise GraphError(f"elements of shape {actual} cannot be padded to {shape}, which has another rank")
    for wanted, size in zip(shape.dims, actual.dims or (), strict=False):
        if wanted is not None and size is not None and size > wanted:
            raise GraphError(f"elements of shape {actual} cannot be padded to {shape}, which is smaller")
    tensor = convert_to_tensor([-1 if size is None else size for size in shape.dims], dtypes.int64)
    return tensor, shape


def _zero(dtype: DType) -> Any:
    if dtype.kind == "s":
        return ""
    return False if dtype.kind == "b" else dtype.numpy.type(0)


def window(source: Dataset, size: Any, shift: Any, stride: Any, drop_remainder: Any) -> Dataset:
    """Datasets of `size` elements each, in the structure of an element."""
    inputs = [
        int64(size, "size"), int64(size if shift is None else shift, "shift"), int64(stride, "stride"),
        convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder"),
    ]  # fmt: skip
    structure = structures.mapped(DatasetLeaf, source.structure)
    return made_of(source, "WindowDataset", inputs, structure=structure)


def unbatch(source: Dataset) -> Dataset:
    """The rows of elements.

    Raises:
        GraphError: something is a scalar.
    """
    if any(leaf.shape.rank == 0 for leaf in structures.leaves(source.structure)):
        raise GraphError("unbatch takes rows apart, and a scalar has none")

    def normalize(*element: Any) -> Any:
        return element[0] if len(element) == 1 else element

    whole = source.map(normalize)
    structure = structures.mapped(structures.without_first_size, source.structure)
    return made_of(whole, "UnbatchDataset", structure=structure)


def sparse_batch(source: Dataset, batch_size: Any, row_shape: Any) -> Dataset:
    """Batches as sparse tensors, of rows of different sizes.

    Raises:
        GraphError: elements are no single tensors.
    """
    if not isinstance(source.structure, TensorLeaf):
        raise GraphError("sparse_batch takes elements of one tensor")
    shape = as_shape(row_shape)
    sizes = convert_to_tensor([-1 if d is None else d for d in shape.dims or ()], dtypes.int64)
    leaf = SparseLeaf(source.structure.dtype, Shape([None]).concatenate(shape))
    return made_of(source, "DenseToSparseBatchDataset", [batch_size, sizes], structure=leaf)
