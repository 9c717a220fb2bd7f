"""Layers that compute with each number, or along one dimension: activations, dropout, sums, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.spec.layers.table import LayerCall, as_named, layer
from toolkit.client.spec.values import ACTIVATION, ACTIVATIONS, NAME
from toolkit.formats.schema.choices import OneOf, one_or_more
from toolkit.formats.schema.containers import Key
from toolkit.formats.schema.scalars import Boolean, Integer, Number
from toolkit.formats.settings.tree import YamlItem

_AXIS = Key(Integer(), "counted from the end where negative", default=-1)


#: a share of numbers that become 0
RATE = OneOf(NAME, Number(0, 0.999999))


def rate_of(call: LayerCall, found: YamlItem) -> Any:
    """A number, or the scalar that a name stands for, such as an input with a default."""
    named = isinstance(found.value, str) and not _is_number(found)
    return call.resolve(found) if named else found.number(0, 0.999999)


@layer(
    "dropout",
    rate=Key(RATE, "share of what becomes 0, or the name of a scalar that says it", required=True),
    seed=Key(Integer(0), "of the random numbers"),
)
def dropout(call: LayerCall) -> Tensor:
    seed = call.section.get("seed")
    rate = rate_of(call, call.section["rate"])
    return as_named(
        nn_ops.dropout(call.x, rate, seed=None if seed is None else seed.integer(), name=call.name), call.name
    )


def _is_number(found: YamlItem) -> bool:
    try:
        float(found.value)
    except ValueError:
        return False
    return True


@layer("activation", function=Key(ACTIVATION, "which", required=True))
def activation_layer(call: LayerCall) -> Tensor:
    function = ACTIVATIONS[call.section["function"].text()]
    return as_named(function(call.x, name=call.name), call.name)


def _register_activations() -> None:
    for name, function in ACTIVATIONS.items():
        if name not in ("softmax", "log_softmax", "leaky_relu"):
            layer(name)(lambda call, function=function: as_named(function(call.x, name=call.name), call.name))


_register_activations()


@layer("leaky_relu", alpha=Key(Number(), "slope below 0", default=0.2))
def leaky_relu(call: LayerCall) -> Tensor:
    return nn_ops.leaky_relu(call.x, call.section.number("alpha", 0.2), name=call.name)


@layer("softmax", axis=_AXIS)
def softmax(call: LayerCall) -> Tensor:
    return nn_ops.softmax(call.x, call.section.integer("axis", -1), name=call.name)


@layer("log_softmax", axis=_AXIS)
def log_softmax(call: LayerCall) -> Tensor:
    return nn_ops.log_softmax(call.x, call.section.integer("axis", -1), name=call.name)


@layer("add")
def add(call: LayerCall) -> Tensor:
    if len(call.inputs) < 2:
        raise call.section.item.error("the layer takes two inputs or more")
    if len(call.inputs) == 2:
        return math_ops.add(*call.inputs, name=call.name)
    return math_ops.add_n(call.inputs, name=call.name)


def _register_binary() -> None:
    functions: dict[str, Callable[..., Tensor]] = {
        "subtract": math_ops.subtract, "multiply": math_ops.multiply, "divide": math_ops.divide,
        "maximum": math_ops.maximum, "minimum": math_ops.minimum, "matmul": math_ops.matmul,
    }  # fmt: skip
    for name, function in functions.items():

        def build(call: LayerCall, function: Callable[..., Tensor] = function) -> Tensor:
            if len(call.inputs) != 2:
                raise call.section.item.error(f"the layer takes two inputs, not {len(call.inputs)}")
            return as_named(function(*call.inputs, name=call.name), call.name)

        layer(name)(build)


_register_binary()


@layer("scale", factor=Key(Number(), "times", default=1.0), offset=Key(Number(), "plus", default=0.0))
def scale(call: LayerCall) -> Tensor:
    """x * factor + offset."""
    factor, offset = call.section.number("factor", 1.0), call.section.number("offset", 0.0)
    if not offset:
        return math_ops.multiply(call.x, factor, name=call.name)
    with get_default_graph().name_scope(call.name) as scope:
        return math_ops.add(math_ops.multiply(call.x, factor), offset, name=scope)


@layer("argmax", axis=_AXIS)
def argmax(call: LayerCall) -> Tensor:
    return math_ops.argmax(call.x, call.section.integer("axis", -1), name=call.name)


def _register_reductions() -> None:
    functions: dict[str, Callable[..., Tensor]] = {
        "reduce_sum": math_ops.reduce_sum, "reduce_mean": math_ops.reduce_mean, "reduce_max": math_ops.reduce_max,
        "reduce_min": math_ops.reduce_min, "reduce_prod": math_ops.reduce_prod,
        "reduce_logsumexp": math_ops.reduce_logsumexp,
    }  # fmt: skip
    axis = Key(one_or_more(Integer()), "the dimensions that go; by default all")
    keep = Key(Boolean(), "keep them with size 1", default=False)
    for name, function in functions.items():

        def build(call: LayerCall, function: Callable[..., Tensor] = function) -> Tensor:
            found = call.section.get("axis")
            kept = call.section.boolean("keepdims", False)
            made = function(call.x, None if found is None else found.plain(), kept, name=call.name)
            return as_named(made, call.name)

        layer(name, axis=axis, keepdims=keep)(build)


_register_reductions()


@layer(
    "clip",
    minimum=Key(Number(), "the least value", required=True),
    maximum=Key(Number(), "the largest value", required=True),
)
def clip(call: LayerCall) -> Tensor:
    section = call.section
    made = clip_ops.clip_by_value(call.x, section.number("minimum"), section.number("maximum"), name=call.name)
    return as_named(made, call.name)


@layer("l2_normalize", axis=_AXIS, epsilon=Key(Number(0), "the least sum of squares", default=1e-12))
def l2_normalize(call: LayerCall) -> Tensor:
    """x / sqrt(max(sum(x ** 2), epsilon))."""
    section = call.section
    with get_default_graph().name_scope(call.name) as scope:
        squares = math_ops.reduce_sum(math_ops.square(call.x), [section.integer("axis", -1)], True)
        factor = math_ops.rsqrt(math_ops.maximum(squares, section.number("epsilon", 1e-12)))
        return math_ops.multiply(call.x, factor, name=scope)
