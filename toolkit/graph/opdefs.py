"""The OpDef registry: what every op's inputs, outputs and attributes are.

The data (`schemas/ops.pb.xz`) holds the signature of every op TensorFlow registers; plugins add theirs with
`register`. Nothing is decoded until an op is asked for.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schemas import op_def_pb2, unpacked
from toolkit.errors import GraphError, GraphmillError, did_you_mean
from toolkit.forks import free_in_children
from toolkit.graph import attrs as attr_codec
from toolkit.graph import plugins
from toolkit.graph.dtypes import DType, from_enum

#: the attribute of a node that says which plugin its op comes from
PLUGIN = "_plugin"
#: op -> the plugin that has defined it, as files call it (`plugins.importing_name`)
OF_PLUGINS: dict[str, str] = {}
#: op -> the plugin that it comes from, as a file said
_told: dict[str, str] = {}
#: names of plugins in files are not longer
_LONGEST = 200
#: tensors of one argument (`values` of ConcatV2) that a node may have where a number in the file says how many
MOST_TENSORS = 1 << 17


@dataclass(frozen=True, slots=True)
class ArgDef:
    """One input or output of an op: a single tensor, `N` tensors of one type, or a list of types."""

    name: str
    type: DType | None  # a fixed type
    type_attr: str  # or the attribute that holds it
    number_attr: str  # set: a sequence of that many tensors
    type_list_attr: str  # set: one tensor per type in that list
    is_ref: bool


@dataclass(frozen=True, slots=True)
class AttrDef:
    """One attribute of an op. `default` is None when the attribute is required."""

    name: str
    type: str  # "int", "type", "list(shape)", ...
    default: Any
    has_default: bool
    allowed: tuple[Any, ...] | None
    minimum: int | None


class OpDef:
    """The signature of one op (OpDef in op_def.proto)."""

    __slots__ = (
        "_counts", "allows_uninitialized_input", "attrs", "deprecated_at", "deprecation", "inferred_attrs",
        "inputs", "is_aggregate", "is_commutative", "is_stateful", "name", "outputs", "takes_refs",
    )  # fmt: skip

    def __init__(self, proto: op_def_pb2.OpDef):
        self.name: str = proto.name
        self.inputs = tuple(map(_arg, proto.input_arg))
        self.outputs = tuple(map(_arg, proto.output_arg))
        self._counts = {"inputs": _fixed_count(self.inputs), "outputs": _fixed_count(self.outputs)}
        self.takes_refs: bool = any(arg.is_ref for arg in self.inputs)
        self.attrs: dict[str, AttrDef] = {a.name: _attr(a) for a in proto.attr}
        self.is_stateful: bool = proto.is_stateful
        self.is_commutative: bool = proto.is_commutative
        self.is_aggregate: bool = proto.is_aggregate
        self.allows_uninitialized_input: bool = proto.allows_uninitialized_input
        self.deprecated_at: int = proto.deprecation.version  # 0: not deprecated
        self.deprecation: str = proto.deprecation.explanation
        #: attributes that follow from the inputs' types and counts
        self.inferred_attrs = frozenset(
            name for arg in self.inputs for name in (arg.type_attr, arg.number_attr, arg.type_list_attr) if name
        )

    def __repr__(self) -> str:
        return f"<OpDef {self.name}>"

    def expand(self, args: Iterable[ArgDef], attrs: Mapping[str, Any], node: str = "") -> list[DType]:
        """The types of `args`, one per tensor, given a node's attributes; reference types where args are refs.

        Raises:
            GraphError: an attribute that decides a type or a count is missing, or of another kind.
        """
        types: list[DType] = []
        for arg in args:
            if arg.type_list_attr:
                found: list[DType] = self.attr_value(attrs, arg.type_list_attr, node)
                if not isinstance(found, list) or not all(isinstance(dtype, DType) for dtype in found):
                    what = f"attribute '{arg.type_list_attr}' of {self.name} is not a list of types"
                    raise GraphError(what, node=node or None)
            else:
                dtype = arg.type or self.attr_value(attrs, arg.type_attr, node)
                if not isinstance(dtype, DType):
                    raise GraphError(f"attribute '{arg.type_attr}' of {self.name} is not a type", node=node or None)
                if not arg.number_attr:
                    types.append(dtype.ref if arg.is_ref else dtype)
                    continue
                count = self.attr_value(attrs, arg.number_attr, node)
                if not isinstance(count, int):
                    raise GraphError(f"attribute '{arg.number_attr}' of {self.name} is not a number", node=node or None)
                if not 0 <= count <= MOST_TENSORS:
                    raise GraphError(
                        f"attribute '{arg.number_attr}' of {self.name} is {count}; a node has between 0 and "
                        f"{MOST_TENSORS} tensors of one argument",
                        node=node or None,
                    )
                found = [dtype] * count
            types += [t.ref for t in found] if arg.is_ref else found
        return types

    def attr_value(self, attrs: Mapping[str, Any], name: str, node: str = "") -> Any:
        """A node's attribute, or the op's default.

        Raises:
            GraphError: it is neither given nor has a default.
        """
        try:
            return attrs[name]
        except KeyError:
            definition = self.attrs.get(name)
            if definition is not None and definition.has_default:
                return definition.default
            raise GraphError(f"{self.name} needs the attribute '{name}'", node=node or None) from None
        except GraphmillError as error:  # its value is none
            raise GraphError(f"attribute '{name}' of {self.name}: {error.message}", node=node or None) from None

    def fixed_count(self, side: str) -> int | None:
        """How many tensors the "inputs" or "outputs" are, or None when attributes of a node decide that."""
        return self._counts[side]

    def arg_ranges(self, args: Iterable[ArgDef], attrs: Mapping[str, Any]) -> dict[str, range]:
        """Which flat positions each named argument takes: {"components": range(1, 4), ...}."""
        ranges: dict[str, range] = {}
        start = 0
        for arg in args:
            count = len(self.expand((arg,), attrs))
            ranges[arg.name] = range(start, start + count)
            start += count
        return ranges


def _fixed_count(args: tuple[ArgDef, ...]) -> int | None:
    return None if any(arg.number_attr or arg.type_list_attr for arg in args) else len(args)


def _arg(proto: op_def_pb2.OpDef.ArgDef) -> ArgDef:
    fixed = from_enum(proto.type) if proto.type else None
    return ArgDef(proto.name, fixed, proto.type_attr, proto.number_attr, proto.type_list_attr, proto.is_ref)


def _attr(proto: op_def_pb2.OpDef.AttrDef) -> AttrDef:
    has_default = proto.HasField("default_value")
    allowed = tuple(attr_codec.decode(proto.allowed_values)) if proto.HasField("allowed_values") else None
    return AttrDef(
        proto.name,
        proto.type,
        attr_codec.decode(proto.default_value) if has_default else None,
        has_default,
        allowed,
        proto.minimum if proto.has_minimum else None,
    )


class _Registry:
    """Name to OpDef, decoded on first use."""

    def __init__(self) -> None:
        self._protos: dict[str, op_def_pb2.OpDef] | None = None
        self._added: dict[str, op_def_pb2.OpDef] = {}
        self.origins: dict[str, str] = {}
        self._ready: dict[str, OpDef] = {}
        self._lock = threading.Lock()
        free_in_children(self, "_lock")  # a fork does not wait until all are decoded

    def protos(self) -> dict[str, op_def_pb2.OpDef]:
        if self._protos is None:
            with self._lock:
                if self._protos is None:
                    ops = op_def_pb2.OpList.FromString(unpacked("ops.pb.xz"))
                    self._protos = {op.name: op for op in ops.op} | self._added
        return self._protos

    def find(self, name: str) -> OpDef | None:
        ready = self._ready.get(name)
        if ready is None:
            proto = self.protos().get(name)
            if proto is None and plugins.load_installed():
                proto = self.protos().get(name)
            if proto is None:
                return None
            ready = self._ready.setdefault(name, OpDef(proto))
        return ready

    def register(self, proto: op_def_pb2.OpDef) -> None:
        if proto.name in self.protos():
            by = self.origins.get(proto.name)
            raise GraphError(f"the op '{proto.name}' exists already{f', from the plugin {by}' if by else ''}")
        self._added[proto.name] = proto
        self.protos()[proto.name] = proto
        by = plugins.importing()
        if by is not None:
            self.origins[proto.name] = by
            OF_PLUGINS[proto.name] = plugins.importing_name() or by


_registry = _Registry()


def find(name: str) -> OpDef | None:
    """The OpDef of an op, or None when it is unknown."""
    return _registry.find(name)


def is_known(name: str) -> bool:
    """Whether there is an op of that name, without looking for plugins that might bring it."""
    return name in _registry.protos()


def get(name: str) -> OpDef:
    """The OpDef of an op.

    Raises:
        GraphError: there is none of that name; close names are suggested.
    """
    found = _registry.find(name)
    if found is None:
        raise GraphError(unknown_op(name))
    return found


def unknown_op(name: str, others: Iterable[str] = ()) -> str:
    """What to say about an op that nobody knows; `others` are names that would do besides the ops'."""
    if name in _told:
        said = f"unknown op '{name}', which comes from the plugin '{_told[name]}', as the file says; "
        return said + (f"add --plugin FOLDER/{_told[name]}" if _told[name].endswith(".py") else "install its package")
    hint = did_you_mean(name, (*_registry.protos(), *others)).removesuffix("?")
    return f"unknown op '{name}'{hint}{'? If not, ' if hint else '; '}{plugins.CUSTOM_OP_HINT}"


def require_for(name: str, what: str) -> OpDef:
    """The OpDef of an op that a plugin registers something for.

    Raises:
        GraphError: there is no such op.
    """
    found = _registry.find(name)
    if found is None:
        hint = did_you_mean(name, _registry.protos())
        raise GraphError(f"{what} for the unknown op '{name}'{hint or '; define the op first'}")
    return found


def origin(name: str) -> str | None:
    """The plugin that an op's definition comes from; None for our own."""
    return _registry.origins.get(name)


def names() -> Iterator[str]:
    """The names of all known ops."""
    return iter(_registry.protos())


def count() -> int:
    """How many ops are known."""
    return len(_registry.protos())


def proto(name: str) -> op_def_pb2.OpDef:
    """The OpDef message of a known op; do not change it."""
    get(name)
    return _registry.protos()[name]


def register(definition: op_def_pb2.OpDef) -> None:
    """Add an op (plugins do).

    Raises:
        GraphError: the name is taken.
    """
    _registry.register(definition)


def hear(definitions: Mapping[str, Any]) -> None:
    """Read in a file's NodeDefs, one for each op, which plugins their ops come from.

    Where the user named folders of plugins for that, those of ops that nobody knows are imported.

    Raises:
        GraphmillError: such a plugin failed while it was imported.
    """
    for op, definition in definitions.items():
        if PLUGIN not in definition.attr:
            continue
        name = definition.attr[PLUGIN].s.decode(errors="replace")
        if not 0 < len(name) <= _LONGEST:
            continue
        _told[op] = name
        if not is_known(op) and plugins.folders():
            plugins.bring(name)


@functools.cache
def from_signature(serialized: bytes) -> OpDef:
    """The OpDef of a function's signature, from its serialized message."""
    return OpDef(op_def_pb2.OpDef.FromString(serialized))
