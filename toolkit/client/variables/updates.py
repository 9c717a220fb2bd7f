"""Updates of parts of a variable, as methods of both kinds of variables."""

from __future__ import annotations

from typing import Any, ClassVar

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.graph.dtypes import DType


class PartialUpdates:
    """Rows that are added, subtracted, set and so on; each returns the variable's new value.

    Rows come as IndexedSlices; the `scatter_nd_` methods take indices [..., depth] into the first axes, and updates.
    """

    is_resource: ClassVar[bool]
    handle: Tensor
    dtype: DType

    def _after(self, op: Any) -> Any:
        """What an update returns: the reference that it passes on, or a read behind it."""
        raise NotImplementedError

    def _rows(self, kind: str, delta: IndexedSlices, use_locking: bool, name: str | None) -> Any:
        if not isinstance(delta, IndexedSlices):
            raise TypeError(f"the rows to change come as IndexedSlices, not as {delta!r}")
        if self.is_resource:
            values = convert_to_tensor(delta.values, self.dtype)
            return self._after(ops.function("Resource" + kind)(self.handle, delta.indices, values, name=name))
        return ops.function(kind)(self.handle, delta.indices, delta.values, use_locking=use_locking, name=name)

    def _parts(self, kind: str, indices: TensorLike, updates: TensorLike, name: str | None) -> Any:
        if self.is_resource:
            values = convert_to_tensor(updates, self.dtype)
            return self._after(ops.function("Resource" + kind)(self.handle, indices, values, name=name))
        return ops.function(kind)(self.handle, indices, updates, use_locking=True, name=name)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        return self._rows("ScatterSub", sparse_delta, use_locking, name)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        return self._rows("ScatterAdd", sparse_delta, use_locking, name)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        return self._rows("ScatterMax", sparse_delta, use_locking, name)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        return self._rows("ScatterMin", sparse_delta, use_locking, name)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        return self._rows("ScatterMul", sparse_delta, use_locking, name)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        return self._rows("ScatterDiv", sparse_delta, use_locking, name)

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        return self._rows("ScatterUpdate", sparse_delta, use_locking, name)

    def scatter_nd_sub(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        return self._parts("ScatterNdSub", indices, updates, name)

    def scatter_nd_add(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        return self._parts("ScatterNdAdd", indices, updates, name)

    def scatter_nd_update(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        return self._parts("ScatterNdUpdate", indices, updates, name)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The parts at indices [..., depth] into the first axes."""
        if not self.is_resource:
            return array_ops.gather_nd(self.handle, indices, name=name)
        with name_scope("GatherNd" if name is None else name, None, [self.handle]) as scope:
            value: Tensor = ops.resource_gather_nd(self.handle, indices, dtype=self.dtype, name=scope)
            return array_ops.identity(value)
