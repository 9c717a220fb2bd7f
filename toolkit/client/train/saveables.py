"""What a saver saves under one name: tensors of a checkpoint, and what gives them back to their owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.structures.nest import flatten
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import SaverError
from toolkit.graph.dtypes import DType

REFERENCE_VARIABLES = frozenset({"Variable", "VariableV2", "AutoReloadVariable"})


class SaveSpec:
    """One tensor of a checkpoint.

    Args:
        tensor: the tensor, or a function that makes it where it is saved.
        slice_spec: which part of a larger tensor it is ("4 2 0,2:0,2"), or "".
        name: its name in the checkpoint.
        dtype, device: the tensor's; needed where it is a function.
    """

    def __init__(self, tensor: Any, slice_spec: str, name: str, dtype: DType | None = None, device: str | None = None):
        self._tensor: Any = tensor
        self.slice_spec = slice_spec
        self.name = name
        if callable(tensor) and (dtype is None or device is None):
            raise SaverError(f"'{name}': what is made when it is saved needs a dtype and a device")
        self.dtype: DType = self._tensor.dtype if dtype is None else dtype
        self.device: str = self._tensor.device if device is None else device

    @property
    def tensor(self) -> Any:
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """What is saved and restored together; a class of its own says in `restore` how it takes its values back.

    Args:
        op: whose state it is.
        specs: its tensors in the checkpoint, all on one device.
        name: what it is called.
    """

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str):
        self.op = op
        self.specs: list[SaveSpec] = list(specs)
        self.name = name

    @property
    def device(self) -> str:
        return self.specs[0].device

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        """Add what puts the tensors back; with shapes, after they have been reshaped to these.

        Raises:
            SaverError: the class does not say how.
        """
        raise SaverError(f"{type(self).__name__} does not say how '{self.name}' is restored")


class VariableSaveable(SaveableObject):
    """A variable, or a part of one: the reference itself, or what is read from a resource.

    Args:
        op: the variable, or the tensor of a reference variable.
    """

    def __init__(self, op: Any, slice_spec: str, name: str):
        self.is_resource = isinstance(op, BaseVariable) and op.is_resource
        tensor: Any = op
        if isinstance(op, BaseVariable):
            tensor = op.handle
            if self.is_resource:
                tensor = op.snapshot if not slice_spec else _read_when_saved(op)
            elif slice_spec:
                tensor = op.snapshot
        super().__init__(op, [SaveSpec(tensor, slice_spec, name, op.dtype, op.device)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = array_ops.reshape(value, restored_shapes[0])
        return assign_restored(self.op, value, reshaped=restored_shapes is not None)


def _read_when_saved(variable: BaseVariable) -> Callable[[], Tensor]:
    def read() -> Tensor:
        graph = variable.graph
        with graph.device(variable.device or None):
            value = variable.read_value()
            with graph.device("/device:CPU:0"):
                return array_ops.identity(value)

    return read


def assign_restored(variable: BaseVariable | Tensor, value: Tensor, reshaped: bool = False) -> Any:
    """Give a variable what was read for it."""
    if isinstance(variable, BaseVariable) and variable.is_resource:
        with variable.graph.device(variable.device or None):
            moved = array_ops.identity(value)
            return ops.assign_variable_op(variable.handle, moved)
    handle = variable.handle if isinstance(variable, BaseVariable) else variable
    return ops.assign(handle, value, validate_shape=not reshaped and variable.static_shape.is_fully_defined)


def saveables(var_list: Iterable[Any] | Mapping[str, Any]) -> list[SaveableObject]:
    """What a saver of variables and other things saves, by name.

    Args:
        var_list: variables, partitioned ones, saveable objects; or a mapping from names in the checkpoint to those.

    Raises:
        TypeError: it is neither, or has something else in it.
        SaverError: two have one name, one has two names, slices that are of no common tensor.
    """
    named = cast("Mapping[str, Any]", var_list) if isinstance(var_list, Mapping) else _by_name(var_list)
    found: list[SaveableObject] = []
    owners: set[int] = set()
    for name in sorted(named, key=_sortable):
        for each in _of(named[name], name):
            if id(each.op) in owners:
                raise SaverError(f"'{each.name}' is in the list under another name already; save each variable once")
            owners.add(id(each.op))
            found.append(each)
    return found


def _sortable(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a name in the checkpoint is a text, not {name!r}")
    return name


def _by_name(var_list: Any) -> dict[str, Any]:
    if not isinstance(var_list, list | tuple | set):
        raise TypeError(f"the variables to save are a list or a dict, not {var_list!r}")
    named: dict[str, Any] = {}
    members = flatten(list(cast("Iterable[Any]", var_list)))
    for member in sorted(members, key=lambda each: str(getattr(each, "name", ""))):
        parts = getattr(member, "parts", None)
        info = getattr(member, "slice_info", None)
        if isinstance(member, SaveableObject) or parts:
            name = member.name
        elif isinstance(member, BaseVariable) and info is not None:
            held = named.setdefault(info.full_name, [])
            if not isinstance(held, list):
                raise SaverError(f"'{info.full_name}' is both a variable and slices of one")
            cast("list[Any]", held).append(member)
            continue
        else:
            name = _variable_of(member).op.name
        if name in named:
            raise SaverError(f"two variables would be saved as '{name}'; give a dict with other names")
        named[name] = member
    return named


def _of(thing: Any, name: str) -> Iterator[SaveableObject]:
    parts = getattr(thing, "parts", None)
    if isinstance(thing, SaveableObject):
        yield thing
    elif parts or isinstance(thing, list | tuple):
        yield from _slices(cast("Sequence[Any]", parts or thing), name)
    else:
        yield VariableSaveable(_variable_of(thing), "", name)


def _slices(parts: Sequence[Any], name: str) -> Iterator[SaveableObject]:
    whole = None
    for part in parts:
        if isinstance(part, SaveableObject):
            yield part
            continue
        info = part.slice_info if isinstance(part, BaseVariable) else None
        if info is None:
            raise SaverError(f"'{name}': {part!r} is no slice of a variable; in a list of a dict, all have to be")
        if whole not in (None, info.full_name):
            raise SaverError(f"'{name}': slices of '{whole}' and of '{info.full_name}' cannot be one tensor")
        whole = info.full_name
        yield VariableSaveable(part, info.spec, name)


def _variable_of(thing: Any) -> Any:
    if isinstance(thing, BaseVariable):
        return thing
    if isinstance(thing, Tensor) and thing.op.type in REFERENCE_VARIABLES:
        return thing
    if isinstance(thing, Operation) and thing.type in REFERENCE_VARIABLES:
        return thing.outputs[0]
    raise TypeError(f"{thing!r} cannot be saved; give variables")
