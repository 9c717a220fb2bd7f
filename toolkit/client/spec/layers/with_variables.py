"""Layers that make variables: dense, embedding, batch normalization."""

from __future__ import annotations

from typing import Any

from toolkit.client import layers
from toolkit.client.construction.tensor import Tensor
from toolkit.client.nn import nn_ops
from toolkit.client.spec.layers.table import LayerCall, layer
from toolkit.client.spec.values import (
    ACTIVATION,
    INITIALIZER,
    NAME,
    REGULARIZER,
    activation,
    initializer,
    regularizer,
)  # fmt: skip
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.formats.schema.choices import OneOf
from toolkit.formats.schema.containers import Key
from toolkit.formats.schema.scalars import Boolean, Integer, Number, Text
from toolkit.formats.settings.tree import Section
from toolkit.graph import dtypes

#: of layers with a kernel and a bias
WEIGHTS: dict[str, Key] = {
    "use_bias": Key(Boolean(), "add a bias", default=True),
    "kernel_initializer": Key(INITIALIZER, "first value of the kernel"),
    "bias_initializer": Key(INITIALIZER, "first value of the bias"),
    "regularizer": Key(REGULARIZER, "of the kernel, added to the loss"),
    "activation": Key(ACTIVATION, "what is applied at the end"),
}


def weights(section: Section) -> dict[str, Any]:
    """The arguments of a client's layer for the keys of `WEIGHTS`."""
    return {
        "use_bias": section.boolean("use_bias", True),
        "kernel_initializer": initializer(section.get("kernel_initializer")),
        "bias_initializer": initializer(section.get("bias_initializer")),
        "kernel_regularizer": regularizer(section.get("regularizer")),
        "activation": activation(section),
    }


@layer("dense", units=Key(Integer(1), "number of outputs", required=True), **WEIGHTS)
def dense(call: LayerCall) -> Tensor:
    return layers.dense(call.x, call.section.integer("units"), name=call.name, **weights(call.section))


@layer(
    "batch_norm",
    training=Key(
        OneOf(Boolean(), NAME), "whether it normalises by the batch, or the name of what says so", default=False
    ),
    momentum=Key(Number(0, 1), "of the moving averages", default=0.99),
    epsilon=Key(Number(0), "added to the variance", default=0.001),
    center=Key(Boolean(), "add beta", default=True),
    scale=Key(Boolean(), "times gamma", default=True),
    data_format=Key(Text(("NHWC", "NCHW")), "where the channels are", default="NHWC"),
)
def batch_norm(call: LayerCall) -> Tensor:
    section = call.section
    found = section.get("training")
    training: bool | Tensor = False
    if found is not None:
        training = found.value if isinstance(found.value, bool) else call.resolve(found)
    return layers.batch_normalization(
        call.x,
        training,
        section.number("momentum", 0.99),
        section.number("epsilon", 0.001),
        section.boolean("center", True),
        section.boolean("scale", True),
        section.text("data_format", "NHWC"),
        name=call.name,
    )


@layer(
    "layer_norm",
    epsilon=Key(Number(0), "added to the variance", default=1e-6),
    center=Key(Boolean(), "add beta", default=True),
    scale=Key(Boolean(), "times gamma", default=True),
)
def layer_norm(call: LayerCall) -> Tensor:
    section = call.section
    return layers.layer_normalization(
        call.x, section.number("epsilon", 1e-6), section.boolean("center", True), section.boolean("scale", True),
        name=call.name,
    )  # fmt: skip


@layer(
    "attention",
    heads=Key(Integer(1), "how many, each over its share of the units", default=1),
    units=Key(Integer(1), "of queries, keys and values; by default the features of the input"),
    memory=Key(NAME, "what is looked at, [batch, places, features]; by default the input"),
    lengths=Key(NAME, "how many places of each example count"),
    causal=Key(Boolean(), "whether a step sees no later place", default=False),
    kernel_initializer=WEIGHTS["kernel_initializer"],
    regularizer=WEIGHTS["regularizer"],
)
def attention(call: LayerCall) -> Tensor:
    section = call.section
    memory, lengths, units = section.get("memory"), section.get("lengths"), section.get("units")
    return layers.multi_head_attention(
        call.x,
        None if memory is None else call.resolve(memory),
        section.integer("heads", 1),
        None if units is None else units.integer(),
        None if lengths is None else call.resolve(lengths),
        section.boolean("causal", False),
        initializer(section.get("kernel_initializer")),
        regularizer(section.get("regularizer")),
        name=call.name,
    )


@layer(
    "embedding",
    vocabulary=Key(Integer(1), "number of ids", required=True),
    size=Key(Integer(1), "numbers of each", required=True),
    initializer=Key(INITIALIZER, "first value of the table"),
)
def embedding(call: LayerCall) -> Tensor:
    section = call.section
    sizes = [section.integer("vocabulary"), section.integer("size")]
    with variable_scope(call.name):
        table = get_variable("embeddings", sizes, dtypes.float32, initializer(section.get("initializer")))
        return nn_ops.embedding_lookup(table, call.x)
