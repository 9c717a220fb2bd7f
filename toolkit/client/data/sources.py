"""Datasets of tensors and numbers."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.construction.create import create_op
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.dataset import Dataset, dataset_of, made_of
from toolkit.client.data.leaves import SparseLeaf, TensorLeaf
from toolkit.client.data.seeds import seed_tensors
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


def from_tensors(tensors: Any) -> Dataset:
    """One element."""
    element = structures.normalized(tensors)
    structure = structures.structure_of(element)
    attrs = {
        "Toutput_types": structures.carried_types(structure),
        "output_shapes": structures.carried_shapes(structure),
    }
    return _from_components("TensorDataset", structures.packed(structure, element), structure, attrs)


def from_tensor_slices(tensors: Any, is_files: bool = False) -> Dataset:
    """An element for each row.

    Raises:
        GraphError: a tensor is a scalar, or they have different numbers of rows.
    """
    element = structures.normalized(tensors)
    return slices_of(element, is_files)


def slices_of(element: Any, is_files: bool = False) -> Dataset:
    """An element for each row of a normalized element."""
    whole = structures.structure_of(element)
    flat = structures.leaves(whole)
    if not flat:
        raise GraphError("from_tensor_slices needs at least one tensor")
    for leaf in flat:
        if leaf.shape.rank == 0:
            raise GraphError("from_tensor_slices takes rows apart, and a scalar has none; use from_tensors")
    rows = Shape([None])
    for leaf in flat:
        if leaf.shape.rank is not None:
            if not rows.is_compatible_with(leaf.shape.slice(0, 1)):
                raise GraphError(f"from_tensor_slices needs as many rows of each: {rows[0]} and {leaf.shape[0]}")
            rows = rows.merge(leaf.shape.slice(0, 1))
    structure = structures.mapped(structures.without_first_size, whole)
    values = structures.nest.flatten(element)
    components = [
        leaf.pack_many(value) if isinstance(leaf, SparseLeaf) else leaf.pack(value)
        for leaf, value in zip(flat, values, strict=True)
    ]
    attrs = {
        "Toutput_types": structures.carried_types(structure), "output_shapes": structures.carried_shapes(structure),
        "is_files": is_files,
    }  # fmt: skip
    return _from_components("TensorSliceDataset", components, structure, attrs)


def _from_components(op: str, components: list[Tensor], structure: Any, attrs: dict[str, Any]) -> Dataset:
    return dataset_of(create_op(op, [components], attrs).outputs[0], structure)


def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
    """Elements of indices, values and shape, one for each row of a sparse tensor.

    Raises:
        GraphError: it is no sparse tensor.
    """
    if not isinstance(sparse_tensor, SparseTensor):
        raise GraphError(f"from_sparse_tensor_slices takes a SparseTensor, not {sparse_tensor!r}")
    shape = sparse_tensor.static_shape
    rank = None if shape.rank is None else shape.rank - 1
    structure = (
        TensorLeaf(dtypes.int64, Shape([None, rank])), TensorLeaf(sparse_tensor.dtype.base, Shape([None])),
        TensorLeaf(dtypes.int64, Shape([rank])),
    )  # fmt: skip
    parts = [sparse_tensor.indices, sparse_tensor.values, sparse_tensor.dense_shape]
    return dataset_of(create_op("SparseTensorSliceDataset", parts).outputs[0], structure)


def number_range(*args: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Dataset:
    """Numbers from start (0) to stop (excluded) by step (1).

    Raises:
        ValueError: there are not one to three numbers.
    """
    if not 1 <= len(args) <= 3:
        raise ValueError(f"Dataset.range takes (stop), (start, stop) or (start, stop, step); got {len(args)} numbers")
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    kind = as_dtype(output_type)
    inputs = [_int64(start, "start"), _int64(stop, "stop"), _int64(step, "step")]
    return made_of(None, "RangeDataset", inputs, structure=TensorLeaf(kind, Shape([])))


def random_numbers(seed: Any, rerandomize_each_iteration: bool | None) -> Dataset:
    """Random int64 numbers, without end."""
    inputs = seed_tensors(seed)
    leaf = TensorLeaf(dtypes.int64, Shape([]))
    if not rerandomize_each_iteration:
        return made_of(None, "RandomDataset", inputs, structure=leaf)
    from toolkit.client import ops

    generator = ops.dummy_seed_generator()
    attrs = {"rerandomize_each_iteration": True}
    return made_of(None, "RandomDatasetV2", [*inputs, generator], attrs, leaf)


def _int64(value: Any, name: str) -> Tensor:
    return convert_to_tensor(value, dtypes.int64, name=name)
