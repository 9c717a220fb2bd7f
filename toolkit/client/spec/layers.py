"""The layers that a spec may name.

A layer is a function of the entry's section, its input and its name; the table below says which keys it takes.
Layers with variables open a scope of their name; the others make one operation of that name, so that
`layer: softmax, name: probabilities` is the tensor `probabilities:0`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.client import array_ops, initializers, layers, math_ops, nn_ops, ops
from toolkit.client.context import get_default_graph
from toolkit.client.tensor import Tensor
from toolkit.client.variable_store import get_variable, variable_scope
from toolkit.errors import GraphError
from toolkit.formats.tree import Section, YamlItem, dtype_of
from toolkit.graph import dtypes


@dataclass(frozen=True)
class LayerCall:
    """One use of a layer.

    Attributes:
        section: the entry, its keys checked.
        name: the layer's name.
        inputs: the tensors of `input` (or of the entry before), at least one.
        resolve: the tensor that a name in the spec stands for.
    """

    section: Section
    name: str
    inputs: list[Tensor]
    resolve: Callable[[YamlItem], Tensor]

    @property
    def x(self) -> Tensor:
        """The single input.

        Raises:
            SpecError: there are several.
        """
        if len(self.inputs) != 1:
            raise self.section.item.error(f"the layer takes one input, not {len(self.inputs)}")
        return self.inputs[0]


@dataclass(frozen=True)
class Layer:
    """An entry of the table: the function and the keys it takes besides layer, name, input, device, ..."""

    build: Callable[[LayerCall], Tensor]
    keys: tuple[str, ...]


LAYERS: dict[str, Layer] = {}


def layer(name: str, *keys: str) -> Callable[[Callable[[LayerCall], Tensor]], Callable[[LayerCall], Tensor]]:
    """Register a layer.

    Raises:
        GraphError: the name is taken.
    """

    def register(build: Callable[[LayerCall], Tensor]) -> Callable[[LayerCall], Tensor]:
        if name in LAYERS:
            raise GraphError(f"two layers are named '{name}'")
        LAYERS[name] = Layer(build, keys)
        return build

    return register


# -- shared options -------------------------------------------------------------------------------------------


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


def activation(section: Section) -> Callable[[Tensor], Tensor] | None:
    found = section.get("activation")
    return None if found is None else ACTIVATIONS[found.text(ACTIVATIONS)]


def initializer(found: YamlItem | None) -> Any:
    """`zeros`, a number, or {type: random_normal, stddev: 0.1, seed: 1}."""
    if found is None:
        return None
    if isinstance(found.value, int | float) and not isinstance(found.value, bool):
        return initializers.Constant(found.value)
    if isinstance(found.value, str):
        return initializers.BY_NAME[found.text(initializers.BY_NAME)]()
    section = found.section()
    make = initializers.BY_NAME[section["type"].text(initializers.BY_NAME)]
    options = {key: item.plain() for key, item in section if key != "type"}
    try:
        return make(**options)
    except TypeError:
        import inspect

        section.check(["type", *inspect.signature(make).parameters])
        raise found.error("these options do not fit the initializer") from None


def regularizer(found: YamlItem | None) -> layers.Regularizer | None:
    """{l1: 0.001, l2: 0.001}."""
    if found is None:
        return None
    section = found.section(["l1", "l2"])
    l1, l2 = section.number("l1", 0.0, minimum=0), section.number("l2", 0.0, minimum=0)
    if not l1 and not l2:
        raise found.error("expected l1 or l2 above 0")
    return layers.l1_l2_regularizer(l1, l2)


def padding(section: Section, default: str = "same") -> Any:
    """same, valid, or [[before, after], ...] for each dimension."""
    found = section.get("padding")
    if found is None:
        return default.upper()
    if isinstance(found.value, list):
        return [[size.integer(0) for size in pair.items()] for pair in found.items()]
    return found.text(["same", "valid", "SAME", "VALID"]).upper()


def data_format(section: Section) -> str:
    return section.text("data_format", "NHWC", ["NHWC", "NCHW"])


def window(section: Section, key: str, default: int | None = None) -> Any:
    found = section.get(key)
    if found is None and default is not None:
        return default
    sizes = section[key].integers(1)
    if isinstance(sizes, list) and len(sizes) != 2:
        raise section[key].error(f"expected one number or two (height, width), found {len(sizes)}")
    return sizes


def as_named(tensor: Tensor, name: str) -> Tensor:
    """The tensor under the layer's own name: an Identity, when the layer made several nodes."""
    return tensor if tensor.op.name == full_name(name) else array_ops.identity(tensor, name=name)


def full_name(name: str) -> str:
    scope = get_default_graph().get_name_scope()
    return f"{scope}/{name}" if scope else name


# -- layers with variables --------------------------------------------------------------------------------------

_WEIGHTS = ("use_bias", "kernel_initializer", "bias_initializer", "regularizer", "activation")
_CONV = ("kernel", "strides", "padding", "dilation", "data_format")


def _weights(section: Section) -> dict[str, Any]:
    return {
        "use_bias": section.boolean("use_bias", True),
        "kernel_initializer": initializer(section.get("kernel_initializer")),
        "bias_initializer": initializer(section.get("bias_initializer")),
        "kernel_regularizer": regularizer(section.get("regularizer")),
        "activation": activation(section),
    }


def _conv(section: Section) -> dict[str, Any]:
    return {
        "kernel_size": window(section, "kernel"),
        "strides": window(section, "strides", 1),
        "padding": padding(section),
        "dilation_rate": window(section, "dilation", 1),
        "data_format": data_format(section),
    }


@layer("dense", "units", *_WEIGHTS)
def dense(call: LayerCall) -> Tensor:
    return layers.dense(call.x, call.section.integer("units", minimum=1), name=call.name, **_weights(call.section))


@layer("conv2d", "filters", *_CONV, *_WEIGHTS)
def conv2d(call: LayerCall) -> Tensor:
    filters = call.section.integer("filters", minimum=1)
    return layers.conv2d(call.x, filters, name=call.name, **_conv(call.section), **_weights(call.section))


@layer("depthwise_conv2d", "multiplier", *_CONV, *_WEIGHTS)
def depthwise_conv2d(call: LayerCall) -> Tensor:
    multiplier = call.section.integer("multiplier", 1, minimum=1)
    return layers.depthwise_conv2d(
        call.x, depth_multiplier=multiplier, name=call.name, **_conv(call.section), **_weights(call.section)
    )


@layer("batch_norm", "training", "momentum", "epsilon", "center", "scale", "data_format")
def batch_norm(call: LayerCall) -> Tensor:
    section = call.section
    found = section.get("training")
    training: bool | Tensor = False
    if found is not None:
        training = found.value if isinstance(found.value, bool) else call.resolve(found)
    return layers.batch_normalization(
        call.x,
        training,
        section.number("momentum", 0.99, minimum=0, maximum=1),
        section.number("epsilon", 0.001, minimum=0),
        section.boolean("center", True),
        section.boolean("scale", True),
        data_format(section),
        name=call.name,
    )


@layer("embedding", "vocabulary", "size", "initializer")
def embedding(call: LayerCall) -> Tensor:
    section = call.section
    sizes = [section.integer("vocabulary", minimum=1), section.integer("size", minimum=1)]
    with variable_scope(call.name):
        table = get_variable("embeddings", sizes, dtypes.float32, initializer(section.get("initializer")))
        return nn_ops.embedding_lookup(table, call.x)


# -- layers without variables -------------------------------------------------------------------------------------


@layer("max_pool", "size", "strides", "padding", "data_format")
def max_pool(call: LayerCall) -> Tensor:
    return _pool(nn_ops.max_pool, call)


@layer("avg_pool", "size", "strides", "padding", "data_format")
def avg_pool(call: LayerCall) -> Tensor:
    return _pool(nn_ops.avg_pool, call)


def _pool(pool: Callable[..., Tensor], call: LayerCall) -> Tensor:
    section = call.section
    size = window(section, "size", 2)
    strides = window(section, "strides") if "strides" in section else size
    return pool(call.x, size, strides, padding(section, "valid"), data_format(section), name=call.name)


@layer("global_avg_pool", "data_format")
def global_avg_pool(call: LayerCall) -> Tensor:
    axes = [1, 2] if data_format(call.section) == "NHWC" else [2, 3]
    return math_ops.reduce_mean(call.x, axes, name=call.name)


@layer("flatten")
def flatten(call: LayerCall) -> Tensor:
    return layers.flatten(call.x, name=call.name)


@layer("reshape", "shape")
def reshape(call: LayerCall) -> Tensor:
    sizes = [item.integer(-1) for item in call.section["shape"].items()]
    return array_ops.reshape(call.x, sizes, name=call.name)


@layer("transpose", "perm")
def transpose(call: LayerCall) -> Tensor:
    return array_ops.transpose(call.x, [item.integer(0) for item in call.section["perm"].items()], name=call.name)


@layer("dropout", "rate", "seed")
def dropout(call: LayerCall) -> Tensor:
    """`rate` is a number, or the name of a scalar such as an input with a default."""
    found = call.section["rate"]
    seed = call.section.get("seed")
    named = isinstance(found.value, str) and not _numeric(found)
    rate: Any = call.resolve(found) if named else found.number(0, 0.999999)
    return as_named(
        nn_ops.dropout(call.x, rate, seed=None if seed is None else seed.integer(0), name=call.name), call.name
    )


def _numeric(found: YamlItem) -> bool:
    try:
        float(found.value)
    except ValueError:
        return False
    return True


@layer("activation", "function")
def activation_layer(call: LayerCall) -> Tensor:
    function = ACTIVATIONS[call.section["function"].text(ACTIVATIONS)]
    return as_named(function(call.x, name=call.name), call.name)


def _register_activations() -> None:
    for name, function in ACTIVATIONS.items():
        if name in ("softmax", "log_softmax", "leaky_relu"):
            continue
        layer(name)(lambda call, function=function: as_named(function(call.x, name=call.name), call.name))


_register_activations()


@layer("leaky_relu", "alpha")
def leaky_relu(call: LayerCall) -> Tensor:
    return nn_ops.leaky_relu(call.x, call.section.number("alpha", 0.2), name=call.name)


@layer("softmax", "axis")
def softmax(call: LayerCall) -> Tensor:
    return nn_ops.softmax(call.x, call.section.integer("axis", -1), name=call.name)


@layer("log_softmax", "axis")
def log_softmax(call: LayerCall) -> Tensor:
    return nn_ops.log_softmax(call.x, call.section.integer("axis", -1), name=call.name)


@layer("add")
def add(call: LayerCall) -> Tensor:
    if len(call.inputs) < 2:
        raise call.section.item.error("the layer takes two inputs or more")
    if len(call.inputs) == 2:
        return math_ops.add(*call.inputs, name=call.name)
    return math_ops.add_n(call.inputs, name=call.name)


@layer("multiply")
def multiply(call: LayerCall) -> Tensor:
    if len(call.inputs) != 2:
        raise call.section.item.error(f"the layer takes two inputs, not {len(call.inputs)}")
    return math_ops.multiply(*call.inputs, name=call.name)


@layer("concat", "axis")
def concat(call: LayerCall) -> Tensor:
    return array_ops.concat(call.inputs, call.section.integer("axis", -1), name=call.name)


@layer("pad", "paddings", "mode")
def pad(call: LayerCall) -> Tensor:
    pairs = [[size.integer(0) for size in pair.items()] for pair in call.section["paddings"].items()]
    mode = call.section.text("mode", "constant", ["constant", "reflect", "symmetric"])
    return array_ops.pad(call.x, pairs, mode, name=call.name)


@layer("lrn", "depth_radius", "bias", "alpha", "beta")
def lrn(call: LayerCall) -> Tensor:
    section = call.section
    return nn_ops.local_response_normalization(
        call.x, section.integer("depth_radius", 5, 0), section.number("bias", 1.0), section.number("alpha", 1.0),
        section.number("beta", 0.5), name=call.name,
    )  # fmt: skip


@layer("scale", "factor", "offset")
def scale(call: LayerCall) -> Tensor:
    """x * factor + offset."""
    factor, offset = call.section.number("factor", 1.0), call.section.number("offset", 0.0)
    if not offset:
        return math_ops.multiply(call.x, factor, name=call.name)
    with get_default_graph().name_scope(call.name) as scope:
        return math_ops.add(math_ops.multiply(call.x, factor), offset, name=scope)


@layer("cast", "dtype")
def cast(call: LayerCall) -> Tensor:
    return as_named(math_ops.cast(call.x, dtype_of(call.section["dtype"]), name=call.name), call.name)


@layer("one_hot", "depth")
def one_hot(call: LayerCall) -> Tensor:
    return array_ops.one_hot(call.x, call.section.integer("depth", minimum=1), name=call.name)


@layer("argmax", "axis")
def argmax(call: LayerCall) -> Tensor:
    return math_ops.argmax(call.x, call.section.integer("axis", -1), name=call.name)


@layer("identity")
def identity(call: LayerCall) -> Tensor:
    return array_ops.identity(call.x, name=call.name)


@layer("stop_gradient")
def stop_gradient(call: LayerCall) -> Tensor:
    return ops.stop_gradient(call.x, name=call.name)
