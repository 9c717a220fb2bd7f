"""Lookup table ops: V1 (string handles) and V2 (resource handles)."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.shape import SCALAR, Shape
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import ResourceHandle, lookup, resource_name, string_handle
from toolkit.kernels.resources.tables import LINE_NUMBER, WHOLE_LINE, LookupTable, pairs_from_file, rows_of
from toolkit.kernels.types import Array


def _table_kernel(op: KernelNode, make: Callable[..., LookupTable]) -> Compute:
    """The table of the node, made when it first runs in a session; `make` takes the op's inputs."""
    container, name = resource_name(op)
    types = (op.attr("key_dtype"), op.attr("value_dtype"))

    if op.op.startswith("Anonymous"):
        return lambda step, *inputs: ResourceHandle(container, op.name, "LookupTable", owned=make(*inputs))
    if op.node.output_types[0].is_ref:
        handle: Any = string_handle(container, name)
    else:
        handle = ResourceHandle(container, name, "LookupTable")

    def compute(step: StepContext, *inputs: Any) -> Any:
        table = step.resources.get_or_create(container, name, LookupTable, lambda: make(*inputs))
        table.check_types(*types)
        return handle

    return compute


@kernel("HashTable", "HashTableV2", "AnonymousHashTable", kind=Kind.STATEFUL)
def hash_table(op: KernelNode) -> Compute:
    key, value = op.attr("key_dtype"), op.attr("value_dtype")
    return _table_kernel(op, lambda: LookupTable(key, value, fixed=True))


@kernel("MutableHashTable", "MutableHashTableV2", "AnonymousMutableHashTable", kind=Kind.STATEFUL)
def mutable_hash_table(op: KernelNode) -> Compute:
    key, value = op.attr("key_dtype"), op.attr("value_dtype")
    return _table_kernel(op, lambda: LookupTable(key, value))


@kernel(
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "AnonymousMutableHashTableOfTensors", kind=Kind.STATEFUL
)
def mutable_hash_table_of_tensors(op: KernelNode) -> Compute:
    key, value, shape = op.attr("key_dtype"), op.attr("value_dtype"), op.attr("value_shape")
    require(
        shape.rank == 1 and shape.is_fully_defined,
        f"Default value must be a vector, got shape {shape}",
    )
    return _table_kernel(op, lambda: LookupTable(key, value, value_shape=shape))


@kernel("MutableDenseHashTable", "MutableDenseHashTableV2", "AnonymousMutableDenseHashTable", kind=Kind.STATEFUL)
def mutable_dense_hash_table(op: KernelNode) -> Compute:
    """A table with keys that stand for empty and deleted buckets; keys may be vectors."""
    key, value, shape = op.attr("key_dtype"), op.attr("value_dtype"), op.attr("value_shape")

    def make(*forbidden: Array) -> LookupTable:
        key_shape = forbidden[0].shape
        if len(forbidden) == 2:
            require(
                forbidden[1].shape == key_shape,
                f"Empty and deleted keys must have same shape, got shapes: {shape_text(key_shape)} and "
                f"{shape_text(forbidden[1])}",
            )
            require(not np.array_equal(*forbidden), "Empty and deleted keys cannot be equal")
        keys: list[Any] = [k if key_shape else k.item() for k in forbidden]
        shaped = Shape(key_shape) if key_shape else SCALAR
        return LookupTable(key, value, value_shape=shape, key_shape=shaped, forbidden=keys)

    return _table_kernel(op, make)


def _table(step: StepContext, handle: Any) -> LookupTable:
    return lookup(step, handle, LookupTable)


@kernel("LookupTableFind", "LookupTableFindV2", kind=Kind.STATEFUL)
def lookup_table_find(op: KernelNode) -> Compute:
    key, value = op.attr("Tin"), op.attr("Tout")

    def compute(step: StepContext, handle: Any, keys: Array, default: Array) -> Array:
        table = _table(step, handle)
        table.check_types(key, value)
        return table.find(keys, np.asarray(default))

    return compute


def _change(op: KernelNode, change: Callable[[LookupTable, Array, Array], None]) -> Compute:
    key, value = op.attr("Tin"), op.attr("Tout")

    def compute(step: StepContext, handle: Any, keys: Array, values: Array) -> None:
        table = _table(step, handle)
        table.check_types(key, value)
        change(table, keys, values)

    return compute


@kernel("LookupTableInsert", "LookupTableInsertV2", kind=Kind.STATEFUL)
def lookup_table_insert(op: KernelNode) -> Compute:
    return _change(op, LookupTable.insert)


@kernel("LookupTableImport", "LookupTableImportV2", kind=Kind.STATEFUL)
def lookup_table_import(op: KernelNode) -> Compute:
    return _change(op, LookupTable.replace)


@kernel("LookupTableRemoveV2", kind=Kind.STATEFUL)
def lookup_table_remove(op: KernelNode) -> Compute:
    key = op.attr("Tin")

    def compute(step: StepContext, handle: Any, keys: Array) -> None:
        table = _table(step, handle)
        table.check_types(key)
        table.remove(keys)

    return compute


@kernel("LookupTableSize", "LookupTableSizeV2", kind=Kind.STATEFUL)
def lookup_table_size(op: KernelNode) -> Compute:
    return lambda step, handle: np.array(_table(step, handle).size, np.int64)


@kernel("LookupTableExport", "LookupTableExportV2", kind=Kind.STATEFUL)
def lookup_table_export(op: KernelNode) -> Compute:
    return lambda step, handle: _table(step, handle).export()


@kernel("InitializeTable", "InitializeTableV2", kind=Kind.STATEFUL)
def initialize_table(op: KernelNode) -> Compute:
    key, value = op.attr("Tkey"), op.attr("Tval")

    def compute(step: StepContext, handle: Any, keys: Array, values: Array) -> None:
        table = _table(step, handle)
        table.check_types(key, value)
        require(keys.ndim == 1, f"Keys must be a vector, but received shape {shape_text(keys)}")
        require(values.ndim == 1, f"Values must be a vector, but received shape {shape_text(values)}")
        require(
            len(keys) == len(values),
            f"Keys and values must have the same size {len(keys)} vs {len(values)}",
        )
        table.initialize(zip(keys.tolist(), rows_of(values, 0, value), strict=True))

    return compute


@kernel("InitializeTableFromTextFile", "InitializeTableFromTextFileV2", kind=Kind.STATEFUL)
def initialize_table_from_text_file(op: KernelNode) -> Compute:
    key_index, value_index = op.attr("key_index"), op.attr("value_index")
    size, delimiter, offset = op.attr("vocab_size"), op.text("delimiter"), op.attr("offset")
    files = op.files
    if len(delimiter) != 1:
        raise InvalidArgumentError("delimiter should be only 1 char", node=op.name)

    def compute(step: StepContext, handle: Any, filename: Array) -> None:
        table = _table(step, handle)
        require_scalar(filename, "filename")
        path = filename.item().decode()
        require(path, "filename cannot be empty.")
        for what, index, dtype in (("Key", key_index, table.key), ("Value", value_index, table.value)):
            require(
                index != LINE_NUMBER or dtype.name == "int64",
                f"{what} index for line number requires {what.lower()} dtype of int64, got {dtype}",
            )
            require(
                index != WHOLE_LINE or dtype.kind in "sifu",
                f"{what} index for whole line requires {what.lower()} dtype of string or numbers, got {dtype}",
            )
        table.initialize(pairs_from_file(files, path, table, key_index, value_index, delimiter, size, offset))

    return compute
