"""Layers that put the same numbers into another shape or type, or join several tensors."""

from __future__ import annotations

from toolkit.client import layers
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.spec.layers.table import LayerCall, as_named, layer
from toolkit.formats.schema.containers import Key, ListOf
from toolkit.formats.schema.scalars import DTypeName, Integer, Text
from toolkit.formats.settings.tree import dtype_of

_AXIS = Key(Integer(), "counted from the end where negative", default=-1)


@layer("flatten")
def flatten(call: LayerCall) -> Tensor:
    return layers.flatten(call.x, name=call.name)


@layer("reshape", shape=Key(ListOf(Integer(-1)), "the sizes; -1 for the rest", required=True))
def reshape(call: LayerCall) -> Tensor:
    return array_ops.reshape(call.x, call.section["shape"].plain(), name=call.name)


@layer("transpose", perm=Key(ListOf(Integer(0)), "which dimension comes at each place", required=True))
def transpose(call: LayerCall) -> Tensor:
    return array_ops.transpose(call.x, call.section["perm"].plain(), name=call.name)


@layer("squeeze", axis=Key(ListOf(Integer()), "dimensions of size 1 that go; by default all"))
def squeeze(call: LayerCall) -> Tensor:
    found = call.section.get("axis")
    return array_ops.squeeze(call.x, None if found is None else found.plain(), name=call.name)


@layer("expand_dims", axis=Key(Integer(), "where a dimension of size 1 comes", required=True))
def expand_dims(call: LayerCall) -> Tensor:
    return array_ops.expand_dims(call.x, call.section.integer("axis"), name=call.name)


@layer(
    "pad",
    paddings=Key(ListOf(ListOf(Integer(0), (2,))), "[before, after] for each dimension", required=True),
    mode=Key(Text(("constant", "reflect", "symmetric")), "with what", default="constant"),
)
def pad(call: LayerCall) -> Tensor:
    mode = call.section.text("mode", "constant")
    return array_ops.pad(call.x, call.section["paddings"].plain(), mode, name=call.name)


@layer("cast", dtype=Key(DTypeName(), "the type", required=True))
def cast(call: LayerCall) -> Tensor:
    return as_named(math_ops.cast(call.x, dtype_of(call.section["dtype"]), name=call.name), call.name)


@layer("one_hot", depth=Key(Integer(1), "number of classes", required=True))
def one_hot(call: LayerCall) -> Tensor:
    return array_ops.one_hot(call.x, call.section.integer("depth"), name=call.name)


@layer("concat", axis=_AXIS)
def concat(call: LayerCall) -> Tensor:
    return array_ops.concat(call.inputs, call.section.integer("axis", -1), name=call.name)


@layer("stack", axis=Key(Integer(), "where the new dimension comes", default=0))
def stack(call: LayerCall) -> Tensor:
    return array_ops.stack(call.inputs, call.section.integer("axis", 0), name=call.name)


@layer("identity")
def identity(call: LayerCall) -> Tensor:
    return array_ops.identity(call.x, name=call.name)


@layer("stop_gradient")
def stop_gradient(call: LayerCall) -> Tensor:
    return array_ops.stop_gradient(call.x, name=call.name)
