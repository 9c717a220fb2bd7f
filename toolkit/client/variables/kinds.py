"""Reference and resource variables, as programs hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.internals import Also
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.variables.base import BaseVariable, check_type
from toolkit.errors import GraphError
from toolkit.graph.dtypes import DType

if TYPE_CHECKING:
    pass


class RefVariable(BaseVariable):
    """A VariableV2 node; its tensor carries the reference."""

    _variable: Any = Also("handle")

    def _ref(self) -> Tensor:
        return self.handle

    def _as_graph_element(self) -> Tensor:
        return self.handle

    def value(self) -> Tensor:
        return self.snapshot

    def read_value(self) -> Tensor:
        return array_ops.identity(self.handle, name="read")

    def to_tensor(self, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Tensor:
        check_type(self, dtype)
        return self.handle if as_ref else self.snapshot

    def is_initialized(self, name: str | None = None) -> Tensor:
        return ops.is_variable_initialized(self.handle, name=name)

    def assign(self, value: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Set it; returns the reference, which passes the new value on."""
        return ops.assign(self.handle, value, use_locking=use_locking, name=name)

    def assign_add(self, delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        return ops.assign_add(self.handle, delta, use_locking=use_locking, name=name)

    def assign_sub(self, delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        return ops.assign_sub(self.handle, delta, use_locking=use_locking, name=name)

    def scatter(self, kind: str, delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Tensor:
        """`kind` is the op: ScatterAdd, ScatterSub, ScatterUpdate, ScatterMul, ScatterDiv, ScatterMin, ScatterMax."""
        return ops.function(kind)(self.handle, delta.indices, delta.values, use_locking=use_locking, name=name)

    def count_up_to(self, limit: int) -> Tensor:
        return ops.count_up_to(self.handle, limit=limit)

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        return array_ops.gather(self.snapshot, indices, name=name)

    def set_shape(self, shape: Any) -> None:
        self.handle.set_shape(shape)
        self.snapshot.set_shape(shape)


class ResourceVariable(BaseVariable):
    """A VarHandleOp node; ops take its resource handle."""

    _handle: Any = Also("handle")

    def _as_graph_element(self) -> Tensor:
        return self.snapshot

    is_resource = True

    def value(self) -> Tensor:
        with self.graph.colocate_with(None, ignore_existing=True):
            return self._read()

    def _read(self) -> Tensor:
        tensor: Tensor = ops.read_variable_op(self.handle, dtype=self.dtype)
        if self.static_shape.rank is not None and tensor.static_shape.rank is None:
            tensor.set_shape(self.static_shape)
        return tensor

    def read_value(self) -> Tensor:
        with name_scope("Read", None, [self.handle]):
            value = self._read()
        return array_ops.identity(value)

    def to_tensor(self, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Tensor:
        check_type(self, dtype)
        if as_ref:
            raise GraphError(f"'{self.name}' is a resource variable and has no reference")
        return self.value()

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Rows, by ResourceGather."""
        with name_scope("Gather" if name is None else name, None, [self.handle]) as scope:
            value: Tensor = ops.resource_gather(self.handle, indices, dtype=self.dtype, name=scope)
            return array_ops.identity(value)

    def is_initialized(self, name: str | None = None) -> Tensor:
        return ops.var_is_initialized_op(self.handle, name=name)

    def _after(self, op: Operation) -> Any:
        return self._updated(op, True)

    def _updated(self, op: Operation, read: bool) -> Any:
        if not read:
            return op
        with self.graph.control_dependencies([op]):
            return self._read()

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Set it; returns a read of the new value, or the operation without `read_value`."""
        value = convert_to_tensor(value, self.dtype)
        if not self.static_shape.is_compatible_with(value.static_shape):
            raise GraphError(
                f"cannot assign a value of shape {value.static_shape} to '{self.name}' of shape {self.static_shape}"
            )
        return self._updated(ops.assign_variable_op(self.handle, value, name=name), read_value)

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        op = ops.assign_add_variable_op(self.handle, convert_to_tensor(delta, self.dtype), name=name)
        return self._updated(op, read_value)

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        op = ops.assign_sub_variable_op(self.handle, convert_to_tensor(delta, self.dtype), name=name)
        return self._updated(op, read_value)

    def scatter(self, kind: str, delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Operation:
        """`kind` as for reference variables; runs the op's resource form."""
        return ops.function("Resource" + kind)(self.handle, delta.indices, delta.values, name=name)

    def count_up_to(self, limit: int) -> Tensor:
        return ops.resource_count_up_to(self.handle, limit=limit, T=self.dtype)
