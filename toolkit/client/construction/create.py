"""The generic op constructor: checks inputs and attributes against the OpDef and adds the node."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from schemas import attr_value_pb2
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_dtype, as_shape, convert_to_tensor, holds_tensor, tensor_proto
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.errors import GraphError, GraphmillError, OperandTypeError, did_you_mean
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.dtypes import DType
from toolkit.graph.opdefs import ArgDef, AttrDef, OpDef

AttrValue = attr_value_pb2.AttrValue


def create_op(
    op: str,
    inputs: Sequence[TensorLike] | Mapping[str, TensorLike] = (),
    attrs: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Operation:
    """Add an operation to the graph its inputs are in, else to the default graph.

    Args:
        op: the op's name in the registry, or a function's in the graph's library.
        inputs: one value per input of the OpDef, in order or by name; an input that takes several tensors gets
            a list. Values that are no tensors become Const nodes of the type that fits.
        attrs: attributes that do not follow from the inputs; what is left out (or None) takes its default.
        name: default: the op's name.

    Raises:
        GraphError: unknown op, wrong number or types of inputs, a missing, unknown or disallowed attribute.
    """
    given = list(inputs.values()) if isinstance(inputs, Mapping) else list(inputs)
    graph = graph_of(given)
    op_def = graph.core.op_def(op)
    with graph.as_default(), graph.name_scope(name or op) as scope:
        builder = _Builder(op_def, scope[:-1], attrs or {})
        builder.take_inputs(inputs)
        protos = builder.finish_attrs()
        if not op_def.takes_refs:
            return graph.create_node(op_def, builder.tensors, protos, scope)
        with _colocate_with_refs(graph, op_def, builder.groups):
            return graph.create_node(op_def, builder.tensors, protos, scope)


def results(op: Operation) -> Any:
    """What an op's function returns: a tensor, a tuple with one entry (tensor or list) per output, or the op."""
    op_def = op.op_def
    if not op_def.outputs:
        return op
    if op_def.fixed_count("outputs") is not None:
        return op.outputs[0] if len(op.outputs) == 1 else tuple(op.outputs)
    entries: list[Any] = []
    ranges = op_def.arg_ranges(op_def.outputs, op.node.attrs)
    for arg in op_def.outputs:
        tensors = [op.outputs[i] for i in ranges[arg.name]]
        entries.append(tensors if arg.number_attr or arg.type_list_attr else tensors[0])
    return entries[0] if len(entries) == 1 else tuple(entries)


def graph_of(values: Sequence[Any]) -> Graph:
    """The graph of the first tensor, operation or variable among (nested) values, else the default graph.

    Raises:
        GraphError: they are of several graphs.
    """
    default = get_default_graph()
    if default.building_function:
        return default
    found: Graph | None = None
    name = ""
    for value in _flatten(values):
        graph = getattr(value, "graph", None)
        if not isinstance(graph, Graph):
            continue
        if found is None:
            found, name = graph, value.name
        elif graph is not found:
            raise GraphError(f"'{value.name}' and '{name}' are in different graphs")
    return found or default


def _flatten(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flatten(value)
        else:
            yield value


@contextmanager
def _colocate_with_refs(graph: Graph, op_def: OpDef, groups: list[list[Tensor]]) -> Generator[None]:
    """Operations stay with the reference variables they change."""
    refs = [tensors[0] for arg, tensors in zip(op_def.inputs, groups, strict=True) if arg.is_ref and tensors]
    with ExitStack() as stack:
        for tensor in refs:
            stack.enter_context(graph.colocate_with(tensor.op))
        yield


@functools.cache
def _type_attr(dtype: DType) -> AttrValue:
    """The message of a type; nodes share it, as nobody changes the messages of attributes."""
    return encode(dtype)


@functools.cache
def _default_attrs(op_def: OpDef) -> dict[str, AttrValue]:
    """The messages of an op's defaults, which nodes share, too."""
    return {
        key: encode(float(definition.default) if definition.type == "float" else definition.default)
        for key, definition in op_def.attrs.items()
        if definition.has_default
    }


class _Builder:
    """One operation while its inputs and attributes are worked out.

    Attributes:
        tensors: the inputs, flat.
        groups: the inputs by argument.
        inferred: attributes that followed from the inputs (or were given and are of that kind).
    """

    def __init__(self, op_def: OpDef, name: str, attrs: Mapping[str, Any]):
        self.op_def = op_def
        self.name = name
        self.given = {key: value for key, value in attrs.items() if value is not None}
        self.tensors: list[Tensor] = []
        self.groups: list[list[Tensor]] = []
        self.inferred: dict[str, Any] = {}
        self.inferred_from: dict[str, str] = {}
        for key in op_def.inferred_attrs & self.given.keys():
            definition = op_def.attrs[key]
            self.inferred[key] = convert_attr(definition, self.given[key], op_def.name, name)
            self.inferred_from[key] = "the attributes given"

    def fail(self, message: str) -> GraphError:
        return GraphError(message, node=self.name)

    # -- inputs ------------------------------------------------------------------------------------------

    def take_inputs(self, inputs: Sequence[TensorLike] | Mapping[str, TensorLike]) -> None:
        names = [arg.name for arg in self.op_def.inputs]
        if isinstance(inputs, Mapping):
            for key in inputs:
                if key not in names:
                    raise self.fail(f"{self.op_def.name} has no input '{key}'{did_you_mean(key, names)}")
            values = [inputs.get(key, ...) for key in names]
        else:
            values = list(inputs)
        if len(values) != len(names) or any(value is ... for value in values):
            count = sum(value is not ... for value in values)
            wanted = ", ".join(names) or "none"
            raise self.fail(f"{self.op_def.name} takes {len(names)} input(s) ({wanted}), got {count}")
        for arg, value in zip(self.op_def.inputs, values, strict=True):
            if arg.number_attr or arg.type_list_attr:
                tensors = self._list_input(arg, value)
            else:
                tensors = [self._single_input(arg, value)]
            self.tensors += tensors
            self.groups.append(tensors)

    def _single_input(self, arg: ArgDef, value: TensorLike) -> Tensor:
        wanted = arg.type or self.inferred.get(arg.type_attr)
        tensor = self._convert(arg, value, wanted, arg.name)
        if arg.is_ref and not tensor.dtype.is_ref:
            raise self.fail(
                f"input '{arg.name}' of {self.op_def.name} must be a reference variable, not '{tensor.name}'"
            )
        if arg.type_attr:
            self._infer(arg.type_attr, tensor.dtype.base, arg)
        return tensor

    def _list_input(self, arg: ArgDef, values: Any) -> list[Tensor]:
        if not isinstance(values, list | tuple):
            raise self.fail(f"input '{arg.name}' of {self.op_def.name} takes a list of tensors, not {values!r}")
        items: list[TensorLike] = list(values)  # type: ignore[arg-type]
        wanted: list[DType | None]
        if arg.number_attr:
            shared = arg.type or self.inferred.get(arg.type_attr)
            if shared is None:
                shared = next((v.dtype.base for v in items if isinstance(v, Tensor)), None)
            wanted = [shared] * len(items)
        else:
            listed: list[DType] | None = self.inferred.get(arg.type_list_attr)
            if listed is not None and len(listed) != len(items):
                raise self.fail(
                    f"input '{arg.name}' of {self.op_def.name} takes {len(listed)} tensors, got {len(items)}"
                )
            wanted = list(listed) if listed is not None else [None] * len(items)
        tensors: list[Tensor] = []
        for i, (value, dtype) in enumerate(zip(items, wanted, strict=True)):
            if dtype is None and arg.number_attr and tensors:
                dtype = tensors[0].dtype.base  # the first of several plain values decides
            tensors.append(self._convert(arg, value, dtype, f"{arg.name}_{i}"))
        if arg.number_attr:
            self._infer(arg.number_attr, len(tensors), arg)
            if arg.type_attr and tensors:
                self._infer(arg.type_attr, tensors[0].dtype.base, arg)
        else:
            self._infer(arg.type_list_attr, [t.dtype.base for t in tensors], arg)
        return tensors

    def _convert(self, arg: ArgDef, value: TensorLike, wanted: DType | None, name: str) -> Tensor:
        preferred: DType | None = None
        allowed: tuple[Any, ...] | None = None
        if wanted is None and arg.type_attr:
            definition = self.op_def.attrs[arg.type_attr]
            preferred = definition.default if definition.has_default else None
            allowed = definition.allowed
        try:
            if isinstance(value, Tensor):
                tensor = value
            elif wanted is None and preferred is not None and allowed:
                tensor = _natural_or_preferred(value, name, preferred, allowed, arg.is_ref)
            else:
                tensor = convert_to_tensor(value, wanted, name, preferred, arg.is_ref)
        except GraphmillError as error:
            raise self.fail(f"input '{arg.name}' of {self.op_def.name}: {error.message}") from None
        if wanted is not None and tensor.dtype.base is not wanted.base:
            source = self.inferred_from.get(arg.type_attr)
            expected = f"{wanted.base} of {source}" if source and not arg.type else f"expected type {wanted.base}"
            raise OperandTypeError(
                f"input '{arg.name}' of {self.op_def.name} has type {tensor.dtype.base} that does not match {expected}",
                node=self.name,
            )
        return tensor

    def _infer(self, attr: str, value: Any, arg: ArgDef) -> None:
        known = self.inferred.get(attr)
        if known is None:
            self.inferred[attr] = value
            self.inferred_from[attr] = f"input '{arg.name}'"
            _check_constraints(self.op_def.attrs[attr], value, self.op_def.name, self.name, f"input '{arg.name}'")
        elif known != value:
            kind = "types" if attr == arg.type_attr or attr == arg.type_list_attr else "tensors"
            raise self.fail(
                f"input '{arg.name}' of {self.op_def.name} has {kind} {_show(value)}, where "
                f"{self.inferred_from[attr]} says {_show(known)}"
            )

    # -- attributes --------------------------------------------------------------------------------------

    def finish_attrs(self) -> dict[str, AttrValue]:
        """The AttrValue of every attribute of the OpDef, defaults included; extra ones start with '_'."""
        op_def = self.op_def
        out: dict[str, AttrValue] = {}
        for key, definition in op_def.attrs.items():
            if key in self.inferred:
                value = self.inferred[key]
                out[key] = _type_attr(value) if isinstance(value, DType) else encode(value)
            elif key in self.given:
                out[key] = encode(convert_attr(definition, self.given[key], op_def.name, self.name))
            elif definition.has_default:
                out[key] = _default_attrs(op_def)[key]
            else:
                raise self.fail(f"{op_def.name} needs the attribute '{key}' ({definition.type})")
        for key, value in self.given.items():
            if key in op_def.attrs:
                continue
            if not key.startswith("_"):
                known = ", ".join(op_def.attrs) or "none"
                raise self.fail(
                    f"{op_def.name} has no attribute '{key}'{did_you_mean(key, op_def.attrs)} (it has: {known})"
                )
            out[key] = encode(value)
        return out


def _natural_or_preferred(
    value: TensorLike, name: str, preferred: DType, allowed: tuple[Any, ...], as_ref: bool
) -> Tensor:
    """The value in its own type when the op allows that, else in the op's default type."""
    if hasattr(value, "to_tensor"):
        return convert_to_tensor(value, None, name, None, as_ref)
    if not holds_tensor(value):
        try:
            natural = tensor_proto(value)
        except GraphmillError:
            natural = None
        if natural is None or all(natural.dtype != dtype.enum for dtype in allowed):
            return convert_to_tensor(value, preferred, name)
    return convert_to_tensor(value, None, name)


def convert_attr(definition: AttrDef, value: Any, op: str, node: str) -> Any:
    """A value given for an attribute as the Python value its type wants (see `toolkit.graph.attrs`).

    Raises:
        GraphError: it is of another kind, not among the allowed values, or below the minimum.
    """
    if isinstance(value, AttrValue):
        return value
    try:
        if definition.type.startswith("list("):
            if not isinstance(value, list | tuple):
                raise _WrongKindError
            inner = definition.type[5:-1]
            converted: Any = [_convert_value(inner, item) for item in value]  # type: ignore[misc]
        else:
            converted = _convert_value(definition.type, value)
    except _WrongKindError:
        raise GraphError(
            f"attribute '{definition.name}' of {op} must be {_KIND_NAMES.get(definition.type, definition.type)}, "
            f"not {value!r}",
            node=node,
        ) from None
    except GraphmillError as error:
        raise GraphError(f"attribute '{definition.name}' of {op}: {error.message}", node=node) from None
    _check_constraints(definition, converted, op, node, f"attribute '{definition.name}'")
    return converted


_KIND_NAMES = {"int": "an int", "float": "a number", "bool": "a bool", "string": "a string", "type": "a data type"}


class _WrongKindError(Exception):
    pass


def _convert_value(kind: str, value: Any) -> Any:
    match kind:
        case "int":
            if isinstance(value, bool) or not isinstance(value, numbers.Integral):
                raise _WrongKindError
            return int(value)
        case "float":
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise _WrongKindError
            return float(value)
        case "bool":
            if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
                raise _WrongKindError
            return bool(value)
        case "string":
            if not isinstance(value, str | bytes):
                raise _WrongKindError
            return value.encode() if isinstance(value, str) else value
        case "type":
            return as_dtype(value).base
        case "shape":
            return as_shape(value)
        case "tensor":
            return tensor_proto(value)
        case "func":
            if isinstance(value, FuncRef):
                return value
            if not isinstance(value, str):
                raise _WrongKindError
            return FuncRef(value)
        case _:
            raise _WrongKindError


def _check_constraints(definition: AttrDef, value: Any, op: str, node: str, what: str) -> None:
    is_list = definition.type.startswith("list(")
    if definition.allowed is not None:
        for item in value if is_list else [value]:
            if item not in definition.allowed:
                allowed = ", ".join(_show(choice) for choice in definition.allowed)
                raise GraphError(
                    f"{what} of {op}: {_show(item)} is not allowed for '{definition.name}'; allowed: {allowed}",
                    node=node,
                )
    if definition.minimum is not None:
        size = len(value) if is_list else value
        if size < definition.minimum:
            unit = " element(s)" if is_list else ""
            raise GraphError(
                f"{what} of {op}: '{definition.name}' must be at least {definition.minimum}{unit}, not {size}",
                node=node,
            )


def _show(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value.decode("utf-8", "replace"))
    if isinstance(value, list):
        return "[" + ", ".join(map(_show, value)) + "]"  # type: ignore[arg-type]
    return str(value)
