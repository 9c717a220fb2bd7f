"""The entries of `nodes`: a table of what they may be, each told by one key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction import create
from toolkit.client.spec import layers
from toolkit.client.spec.builder import FAILED, FollowError, SpecBuilder
from toolkit.client.spec.functions import called_by_ops
from toolkit.client.spec.values import NAME, NAMES, OPERAND, PLACEMENT
from toolkit.client.variables.store import variable_scope
from toolkit.errors import GraphError, did_you_mean
from toolkit.formats.schema.choices import ByKey, ByTag, OneOf
from toolkit.formats.schema.containers import Key, ListOf, MapOf, Record
from toolkit.formats.schema.kinds import Kind
from toolkit.formats.schema.named import Lazy
from toolkit.formats.schema.scalars import Anything, Integer, Text
from toolkit.formats.settings.tree import Section, YamlItem, dtype_of
from toolkit.graph import dtypes, opdefs

Build = Callable[[SpecBuilder, YamlItem, Section, str], None]


@dataclass(frozen=True)
class Entry:
    """An entry: what it may say, and what makes its nodes.

    Attributes:
        kind: a record; PLACEMENT and `name` are not added to it.
        build: (the builder, the entry, its section, the scope around it) to nothing; it declares what it makes.
        meaning: one line for people.
        name: the name of an entry that does not say one.
    """

    kind: Kind
    build: Build
    meaning: str
    name: Callable[[Section], str]


ENTRIES: dict[str, Entry] = {}

#: a list of entries; the kinds of entries may contain it
NODES = Lazy("nodes", lambda: ListOf(_any_entry()), "a list")


def _any_entry() -> Kind:
    return ByKey({key: each.kind for key, each in ENTRIES.items()}, WRITTEN_OUT)


#: entries that stand for others, which `expand` puts in their place
WRITTEN_OUT: dict[str, Kind] = {
    "repeat": Record({
        "repeat": Key(OneOf(Integer(0), ListOf(Anything())), "how often, or a list of values", required=True),
        "as": Key(Text(), "the parameter that counts, or has the value", default="i"),
        "nodes": Key(NODES, "what is repeated", required=True),
    }),
    "include": Record({
        "include": Key(NAME, "a file with nodes and parameters", required=True),
        "set": Key(MapOf(Anything()), "values of its parameters"),
    }),
}  # fmt: skip


def entry(
    key: str, kind: Kind, meaning: str, name: str | Callable[[Section], str] | None = None
) -> Callable[[Build], Build]:
    """Register an entry.

    Args:
        name: of entries without one: a word, what the section says, or by default the key.

    Raises:
        GraphError: the key is taken.
    """
    default: Callable[[Section], str] = name if callable(name) else lambda _: name or key

    def register(build: Build) -> Build:
        if key in ENTRIES:
            raise GraphError(f"two entries have the key '{key}'")
        ENTRIES[key] = Entry(kind, build, meaning, default)
        return build

    return register


def named(keys: Mapping[str, Key], *first: tuple[str, Key]) -> Record:
    """The record of an entry that has a name and a place."""
    return Record(dict(first) | {"name": Key(NAME, "its name; by default that of its kind")} | dict(keys) | PLACEMENT)


def build_nodes(spec: SpecBuilder, nodes: YamlItem, scope: str) -> None:
    """Make the nodes of a list of entries; what is wrong with one is noted, and the next is made."""
    for item in nodes.items():
        if not isinstance(item.value, dict):
            continue  # noted when the document was checked
        section = item.section()
        kinds = [key for key in ENTRIES if key in section]
        if len(kinds) != 1:
            named_so = [
                each.value for each in (section.get("name"),) if each is not None and isinstance(each.value, str)
            ]
            spec.fail([f"{scope}/{each}" if scope else each for each in named_so], last=True)
            continue
        chosen = ENTRIES[kinds[0]]
        found = section.get("name")
        name = found.value if found is not None and isinstance(found.value, str) else chosen.name(section)
        full = f"{scope}/{name}" if scope else name
        if spec.mistakes.has(item):
            spec.fail([full], last=True)
            continue
        with spec.noting(item, [full], lasting=True), ExitStack() as stack:
            spec.place(section, stack, scope)
            chosen.build(spec, item, section, scope)


def full_name(section: Section, key: str, scope: str) -> tuple[str, str]:
    """The name of an entry, and with the scopes of the spec around it."""
    name = section.text("name", ENTRIES[key].name(section))
    return name, f"{scope}/{name}" if scope else name


# -- scope -----------------------------------------------------------------------------------------------------


@entry(
    "scope",
    Record(
        {"scope": Key(NAME, "its name", required=True), "nodes": Key(NODES, "what is in it", required=True)} | PLACEMENT
    ),
    "a name and variable scope around other entries",
    lambda section: section.text("scope"),
)
def _scope(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    name = section["scope"].text()
    with variable_scope(name):
        build_nodes(spec, section["nodes"], f"{scope}/{name}" if scope else name)


# -- layer -----------------------------------------------------------------------------------------------------

_LAYER_KEYS = {
    "name": Key(NAME, "its name; by default that of the layer"),
    "input": Key(NAMES, "what it takes; by default the entry before"),
}


def _layer_kind() -> Kind:
    records = {name: {**_LAYER_KEYS, **kind.keys, **PLACEMENT} for name, kind in layers.LAYERS.items()}
    return ByTag("layer", records)


@entry("layer", Lazy("layer", _layer_kind, "a layer"), "a layer", lambda section: str(section["layer"].value))
def _layer(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    name, full = full_name(section, "layer", scope)
    given = section.get("input")
    if given is not None:
        inputs = [spec.tensor(i, scope) for i in given.texts()]
    elif spec.last is FAILED:
        raise FollowError("")
    elif spec.last is not None:
        inputs: list[Any] = [spec.last]
    else:
        raise item.error("the layer has no input: the spec declares no inputs, and no entry comes before")
    call = layers.LayerCall(section, name, inputs, lambda i: spec.tensor(i, scope))
    result = layers.LAYERS[section["layer"].text()].build(call)
    spec.declare(full, result, item)
    spec.last = result


# -- op --------------------------------------------------------------------------------------------------------


@entry(
    "op",
    named(
        {
            "inputs": Key(OneOf(ListOf(OPERAND), MapOf(OPERAND)), "names, numbers, or {const: VALUE, dtype: TYPE}"),
            "attrs": Key(MapOf(Anything()), "its attributes"),
        },
        ("op", Key(Text(), "any op of the registry", required=True)),
    ),
    "an op of the registry, by its own name",
    lambda section: str(section["op"].value),
)
def _op(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    kind = section["op"].text()
    op_def = opdefs.find(kind)
    if op_def is None:
        raise section["op"].error(f"there is no op '{kind}'{did_you_mean(kind, opdefs.names())}")
    name, full = full_name(section, "op", scope)
    given = section.get("inputs")
    inputs: Any = []
    if given is not None:
        if isinstance(given.value, dict):
            inputs = {key: operand(spec, i, scope) for key, i in given.section([a.name for a in op_def.inputs])}
        else:
            inputs = [operand(spec, i, scope) for i in given.items()]
    attrs: dict[str, Any] = {}
    if (found := section.get("attrs")) is not None:
        custom = [key for key, _ in found.section() if key.startswith("_")]
        for key, value in found.section([*op_def.attrs, *custom]):
            attrs[key] = _attr(spec, op_def, key, value, found)
    if kind == "Const" and "dtype" not in attrs and "value" in attrs:
        attrs["dtype"] = dtypes.from_enum(attrs["value"].dtype)
    op = create.create_op(kind, inputs, attrs, name)
    if op.outputs:
        spec.declare(full, op.outputs[0], item)
        spec.last = op.outputs[0]


def operand(spec: SpecBuilder, item: YamlItem, scope: str) -> Any:
    """A name, a number, nested numbers, a list of names, or {const: VALUE, dtype: TYPE}."""
    if isinstance(item.value, str):
        return spec.find(item, scope)
    if isinstance(item.value, list):
        return [operand(spec, i, scope) for i in item.items()]
    if isinstance(item.value, dict):
        section = item.section(["const", "dtype"], ["const"])
        dtype = dtype_of(section["dtype"]) if "dtype" in section else None
        value = array_ops.tensor_array(section["const"].plain(), dtype)
        return value if dtype is None else array_ops.constant(value, dtype)  # a type that was given stays
    if item.value is None:
        raise item.error("expected a name or a value, found nothing")
    return item.value


def _attr(spec: SpecBuilder, op_def: opdefs.OpDef, key: str, item: YamlItem, attrs: YamlItem) -> Any:
    definition = op_def.attrs.get(key)
    if definition is None:
        return item.plain()
    if definition.type == "tensor":
        from toolkit.client.construction.convert import tensor_proto

        dtype = attrs.section().get("dtype")
        return tensor_proto(item.plain(), None if dtype is None else dtype_of(dtype))
    if definition.type == "float":
        return item.number()
    if definition.type == "list(float)":
        return [i.number() for i in item.items()]
    if definition.type == "func":
        return called_by_ops(spec, item)
    if definition.type == "list(func)":
        return [called_by_ops(spec, i) for i in item.texts()]
    return create.convert_attr(definition, item.plain(), op_def.name, "")
