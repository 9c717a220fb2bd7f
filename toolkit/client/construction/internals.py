"""Attributes that TensorFlow calls private and programs of 1.x read all the same, under TensorFlow's names."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.elements import GraphElement
from toolkit.graph.attrs import decode

_NEEDED = object()


class Also:
    """Another name of an attribute, to be read and set.

    Args:
        name: what it is called here.
        unset: what is read before there is one; without it, that is an AttributeError as for any attribute.
    """

    def __init__(self, name: str, unset: Any = _NEEDED):
        self._here = name
        self._unset = unset

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if self._unset is _NEEDED:
            return getattr(instance, self._here)
        return getattr(instance, self._here, self._unset)

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(instance, self._here, value)


class OperationInternals(GraphElement):
    """Of operations."""

    __slots__ = ()

    _inputs: Any = Also("inputs")
    _outputs: Any = Also("outputs")
    _control_inputs: Any = Also("control_inputs")
    _graph: Any = Also("graph")
    _node_def: Any = Also("node_def")
    _op_def: Any = Also("op_def")

    graph: Any
    node: Any

    @property
    def _id(self) -> int:
        """Its number in its graph, from 1."""
        return self.node.id + 1

    _id_value = _id

    @property
    def _original_op(self) -> None:
        """What it was made in the place of, which nothing here keeps; programs set it to None."""

    @_original_op.setter
    def _original_op(self, op: Any) -> None:
        pass

    def _set_attr(self, attr_name: str, attr_value: Any) -> None:
        """Set an attribute, by an AttrValue message."""
        self.node.attrs[attr_name] = decode(attr_value)

    def _set_device(self, device: Any) -> None:
        self.node.device = device if isinstance(device, str) else device.to_string()

    def _add_control_input(self, op: Any) -> None:
        self.add_control_inputs([op])

    def _add_control_inputs(self, ops: Any) -> None:
        self.add_control_inputs(ops)

    def _remove_all_control_inputs(self) -> None:
        self.remove_all_control_inputs()

    def _update_input(self, index: int, tensor: Any) -> None:
        self.update_input(index, tensor)

    def add_control_inputs(self, ops: Any) -> None:
        raise NotImplementedError

    def remove_all_control_inputs(self) -> None:
        raise NotImplementedError

    def update_input(self, index: int, tensor: Any) -> None:
        raise NotImplementedError


class TensorInternals(GraphElement):
    """Of tensors."""

    __slots__ = ()

    _op: Any = Also("op")
    _value_index: Any = Also("index")
    _shape: Any = Also("shape")

    def _rank(self) -> int | None:
        return self._static().rank

    def _shape_tuple(self) -> tuple[int | None, ...] | None:
        shape = self._static()
        return None if shape.dims is None else tuple(shape.dims)

    def _shape_as_list(self) -> list[int | None] | None:
        shape = self._static()
        return None if shape.dims is None else list(shape.dims)

    def _static(self) -> Any:
        found: Any = self
        return found.static_shape


class VariableInternals(GraphElement):
    """Of reference and resource variables."""

    _snapshot: Any = Also("snapshot")
    _initializer_op: Any = Also("initializer")
    _initial_value: Any = Also("initial_value")
    _trainable: Any = Also("trainable")
    _save_slice_info: Any = Also("slice_info")
    _constraint: Any = Also("constraint")
