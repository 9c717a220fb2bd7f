"""What a plugin imports: the registrations that our own families use, in one place.

    from toolkit.kernels.plugins import define_op, gradient, kernel, shape_function

    define_op("Swishy", ["x: T", "beta: T"], ["y: T"], ["T: {float, double}"])

    @simple("Swishy")
    def swishy(x, beta):
        return x / (1 + np.exp(-beta * x))

Each op is defined before anything is registered for it. Ops may also be given as an OpDef in protobuf's text format
(`define_ops_from_text`), such as TensorFlow's `tf.load_op_library(...).OP_LIST` prints.

| registration | says |
|---|---|
| `define_op(name, inputs, outputs, attrs, ...)` | the signature, as REGISTER_OP writes it (`toolkit.graph.opspec`) |
| `@kernel(op, types=..., device=..., kind=...)` | a factory of kernels, one for a node (`toolkit.kernels.registry`) |
| `@simple(op, ...)` | a kernel that needs no attributes: the function itself |
| `@shape_function(op)` | the output shapes of a node (`toolkit.graph.shapes.registry`) |
| `@gradient(op)`, `no_gradient(op)` | the nodes of its derivative (`toolkit.client.gradients.registry`) |
| `register_device(DeviceType(...))` | a device type and its memory (`toolkit.kernels.device_types`) |

Programs load plugins with `load(FILE)`, commands with `--plugin FILE`, installed packages by an entry point of the
group `graphmill.plugins`.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf import text_format

from schemas import op_def_pb2
from toolkit.client.gradients.registry import gradient, no_gradient
from toolkit.errors import GraphError
from toolkit.graph import opdefs, opspec
from toolkit.graph.opdefs import OpDef
from toolkit.graph.plugins import load, loaded
from toolkit.graph.shapes.registry import ShapeContext, shape_function
from toolkit.kernels.device_memory import DeviceArray, MemoryStatistics
from toolkit.kernels.device_types import DeviceType
from toolkit.kernels.device_types import register as register_device
from toolkit.kernels.registry import KernelNode, Kind, kernel, simple

__all__ = [
    "DeviceArray", "DeviceType", "KernelNode", "Kind", "MemoryStatistics", "ShapeContext", "define_op",
    "define_ops_from_text", "gradient", "kernel", "load", "loaded", "no_gradient", "register_device",
    "shape_function", "simple",
]  # fmt: skip


def define_op(
    name: str,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    attrs: Sequence[str] = (),
    *,
    stateful: bool = False,
    commutative: bool = False,
    aggregate: bool = False,
    allows_uninitialized_input: bool = False,
) -> OpDef:
    """Add an op.

    Args:
        inputs, outputs: such as "x: T", "n: int32", "values: N * T", "rest: Tlist" (see `toolkit.graph.opspec`).
        attrs: such as "T: {float, double}", "mode: string = 'linear'", "N: int >= 1".
        stateful: it must not be folded, shared or dropped for being without effect.

    Raises:
        GraphError: the text of one of them cannot be read, or the op exists already.
    """
    proto = opspec.op_def(
        name, inputs, outputs, attrs, stateful=stateful, commutative=commutative, aggregate=aggregate,
        allows_uninitialized_input=allows_uninitialized_input,
    )  # fmt: skip
    opdefs.register(proto)
    return opdefs.get(name)


def define_ops_from_text(text: str) -> list[OpDef]:
    """Add the ops of one OpDef, or of an OpList (`op { ... } op { ... }`), in protobuf's text format.

    Raises:
        GraphError: the text cannot be read, an OpDef contradicts itself, or an op exists already.
    """
    ops = op_def_pb2.OpList()
    try:
        text_format.Parse(text, ops)
        protos = list(ops.op)
    except text_format.ParseError:
        protos = [opspec.from_text(text)]
    if not protos:
        raise GraphError("no OpDef in the text; it must read 'name: \"MyOp\" input_arg { ... }' or 'op { ... }'")
    for proto in protos:
        opspec.check(proto)
        opdefs.register(proto)
    return [opdefs.get(proto.name) for proto in protos]
