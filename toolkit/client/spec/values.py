"""Kinds of values that several sections of a spec take, and what they stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from toolkit.client import layers
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.variables import initializers
from toolkit.client.variables.store import Regularizer
from toolkit.formats.schema.choices import ByTag, OneOf, one_or_more
from toolkit.formats.schema.containers import Key, ListOf, Record
from toolkit.formats.schema.kinds import Kind
from toolkit.formats.schema.named import Named
from toolkit.formats.schema.scalars import Anything, Boolean, DeviceName, Integer, Number, Text
from toolkit.formats.settings.tree import Section, YamlItem

NAME = Text(noun="a name")
NAMES = Named("names", one_or_more(NAME))
SHAPE = ListOf(Integer(0), optional=True)
#: one size, or one for each dimension
SIZES = one_or_more(Integer(1))
SIZE_PAIR = OneOf(Integer(1), ListOf(Integer(1), (2,)))
#: a name, a number, nested lists of them, or {const: VALUE, dtype: TYPE}
OPERAND = Anything()

#: where an entry stands: the keys of everything that makes nodes
PLACEMENT: dict[str, Key] = {
    "device": Key(DeviceName(), "where its nodes run: /job:worker/device:CPU:0"),
    "control_inputs": Key(NAMES, "what runs before its nodes do"),
    "colocate_with": Key(NAME, "what its nodes share a device with"),
}

ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "relu": nn_ops.relu,
    "relu6": nn_ops.relu6,
    "leaky_relu": nn_ops.leaky_relu,
    "elu": nn_ops.elu,
    "selu": nn_ops.selu,
    "sigmoid": math_ops.sigmoid,
    "tanh": math_ops.tanh,
    "softplus": nn_ops.softplus,
    "softsign": nn_ops.softsign,
    "swish": nn_ops.swish,
    "softmax": nn_ops.softmax,
    "log_softmax": nn_ops.log_softmax,
}
ACTIVATION = Named("activation", Text(tuple(ACTIVATIONS)))


def activation(section: Section, key: str = "activation") -> Callable[[Tensor], Tensor] | None:
    """The function that a key names."""
    found = section.get(key)
    return None if found is None else ACTIVATIONS[found.text(ACTIVATIONS)]


def option(parameter: inspect.Parameter) -> Kind:
    """The kind of an option, from the default and annotation of the parameter that takes it."""
    text = str(parameter.annotation)
    if isinstance(parameter.default, bool) or text == "bool":
        return Boolean()
    if "Sequence" in text:
        return ListOf(Text() if "str" in text else Number())
    if text.startswith("int"):
        return Integer()
    if isinstance(parameter.default, str) or text == "str":
        return Text()
    if text == "Any":
        return Anything()
    return Number()


def options(make: Callable[..., Any], leave: tuple[str, ...] = ()) -> dict[str, Key]:
    """A key for every parameter of a function or class but those that the reader gives itself."""
    found: dict[str, Key] = {}
    for name, parameter in inspect.signature(make).parameters.items():
        if name not in leave:
            is_required = parameter.default is inspect.Parameter.empty
            default = (
                None
                if is_required or not isinstance(parameter.default, bool | int | float | str)
                else parameter.default
            )
            found[name] = Key(option(parameter), required=is_required, default=default)
    return found


def given(section: Section, keys: Mapping[str, Key], leave: tuple[str, ...] = ()) -> dict[str, Any]:
    """The values of the keys that a section has, as their kinds read them."""
    values: dict[str, Any] = {}
    for name, key in keys.items():
        item = section.get(name)
        if item is not None and name not in leave:
            values[name] = item.number() if isinstance(key.kind, Number) else item.plain()
            if isinstance(key.kind, ListOf) and isinstance(key.kind.kind, Number):
                values[name] = [each.number() for each in item.items()]
    return values


#: initializers by name, with their options
INITIALIZERS: dict[str, dict[str, Key]] = {
    name: options(make, ("fan_shape",)) for name, make in initializers.BY_NAME.items()
}
INITIALIZER = Named(
    "initializer",
    OneOf(ByTag("type", INITIALIZERS, plain=True, noun="an initializer: a name, a number or {type: ...}"), Number()),
)


def initializer(found: YamlItem | None) -> Any:
    """`zeros`, a number, or {type: random_normal, stddev: 0.1, seed: 1}."""
    if found is None:
        return None
    if isinstance(found.value, int | float):
        return initializers.Constant(found.value)
    if isinstance(found.value, str):
        return initializers.BY_NAME[found.value]()
    section = found.section()
    name = section["type"].text()
    return initializers.BY_NAME[name](**given(section, INITIALIZERS[name]))


REGULARIZER = Named(
    "regularizer",
    Record(
        {"l1": Key(Number(0), "times the sum of magnitudes"), "l2": Key(Number(0), "times half the sum of squares")}
    ),
)


def regularizer(found: YamlItem | None) -> Regularizer | None:
    """{l1: 0.001, l2: 0.001}."""
    if found is None:
        return None
    section = found.section()
    l1, l2 = section.number("l1", 0.0), section.number("l2", 0.0)
    if not l1 and not l2:
        raise found.error("expected l1 or l2 above 0")
    return layers.l1_l2_regularizer(l1, l2)
