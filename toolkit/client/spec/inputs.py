"""The sections `inputs` and `variables`."""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.spec.builder import SpecBuilder
from toolkit.client.spec.values import (
    INITIALIZER,
    NAMES,
    PLACEMENT,
    REGULARIZER,
    SHAPE,
    initializer,
    options,
    regularizer,
)  # fmt: skip
from toolkit.client.spec.values import given as given_options
from toolkit.client.variables import initializers, partition
from toolkit.client.variables.store import get_variable
from toolkit.formats.schema.choices import ByTag
from toolkit.formats.schema.containers import Key, ListOf, MapOf, Record
from toolkit.formats.schema.scalars import Anything, Boolean, DTypeName, Integer
from toolkit.formats.settings.tree import Section, YamlItem, dtype_of
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

#: the keys of an input
INPUT: dict[str, Key] = {
    "dtype": Key(DTypeName(), "its type", default="float32"),
    "shape": Key(SHAPE, "its sizes, null for those that are not known; by default nothing is known"),
    "default": Key(Anything(), "what holds when nothing is fed"),
    "device": PLACEMENT["device"],
}
INPUTS = MapOf(Record(INPUT))


def build_inputs(spec: SpecBuilder, found: YamlItem) -> None:
    """Make placeholders; the first is what the first layer takes."""
    for name, item in found.section():
        if spec.mistakes.has(item):
            spec.fail([name], last=spec.last is None)
            continue
        is_first = spec.last is None
        with spec.making(item, [name], lasting=is_first) as section:
            tensor = _input(name, section)
            spec.declare(name, tensor, item)
            if is_first:
                spec.last = tensor


def _input(name: str, section: Section) -> Any:
    shape = section.get("shape")
    sizes = None if shape is None else shape.sizes()
    dtype = type_of(section)
    default = section.get("default")
    if default is None:
        return array_ops.placeholder(dtype, sizes, name)
    value = array_ops.constant(default.plain(), dtype, name=f"{name}/input")
    return array_ops.placeholder_with_default(value, value.static_shape if sizes is None else sizes, name)


def type_of(section: Section) -> DType:
    """The type that the key `dtype` says, or float32."""
    return dtype_of(section["dtype"]) if section.get("dtype") is not None else dtypes.float32


_PARTITIONERS = {
    "fixed_size": partition.fixed_size_partitioner,
    "min_max": partition.min_max_variable_partitioner,
    "axis_size": partition.variable_axis_size_partitioner,
}
_PARTITIONER_KEYS = {name: options(make) for name, make in _PARTITIONERS.items()}
PARTITIONER = ByTag("type", _PARTITIONER_KEYS, noun="{type: fixed_size, num_shards: 4}")


def partitioner(found: YamlItem | None) -> Any:
    """{type: fixed_size, num_shards: 4, axis: 0}: how a variable is cut into parts."""
    if found is None:
        return None
    section = found.section()
    kind = section["type"].text()
    return _PARTITIONERS[kind](**given_options(section, _PARTITIONER_KEYS[kind]))


#: the keys of a variable
VARIABLE: dict[str, Key] = {
    "shape": Key(ListOf(Integer(0)), "its sizes"),
    "dtype": Key(DTypeName(), "its type", default="float32"),
    "initializer": Key(INITIALIZER, "its first value: a name, a number or {type: ...}"),
    "value": Key(Anything(), "its first value, written out"),
    "trainable": Key(Boolean(), "whether optimizers change it", default=True),
    "regularizer": Key(REGULARIZER, "added to the loss"),
    "collections": Key(NAMES, "that it is in, in place of the usual ones"),
    "resource": Key(Boolean(), "a resource variable instead of a reference"),
    "partitioner": Key(PARTITIONER, "how it is cut into parts, which may be on several devices"),
} | PLACEMENT
VARIABLES = MapOf(Record(VARIABLE))


def build_variables(spec: SpecBuilder, found: YamlItem) -> None:
    """Make variables."""
    for name, item in spec.sound(found):
        with spec.making(item, [name]) as section:
            spec.declare(name, _variable(name, item, section), item)


def _variable(name: str, item: YamlItem, section: Section) -> Any:
    dtype = type_of(section)
    value, shape = section.get("value"), section.get("shape")
    initial: Any = initializer(section.get("initializer"))
    if value is not None:
        if initial is not None:
            raise item.error("give either initializer or value, not both")
        plain = array_ops.tensor_array(value.plain(), dtype)
        initial, sizes = initializers.Constant(plain), list(plain.shape)
    elif shape is not None:
        sizes = shape.plain()
    else:
        raise item.error("a variable needs shape (with initializer) or value")
    groups = section.get("collections")
    resource = section.get("resource")
    return get_variable(
        name, sizes, dtype, initial,
        regularizer=regularizer(section.get("regularizer")),
        trainable=section.boolean("trainable", True),
        collections=None if groups is None else [group.text() for group in groups.texts()],
        partitioner=partitioner(section.get("partitioner")),
        use_resource=None if resource is None else resource.boolean(),
    )  # fmt: skip
