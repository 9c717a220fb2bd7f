"""Random networks, training graphs and graphs with branches, loops and variables, valid and fed with any numbers."""

# functions over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import io
import random
from typing import Any

import numpy as np

from tests.compiler.random import random_graphs
from tests.fuzz import feeds
from tests.fuzz.case import Case
from tests.fuzz.network_pieces import PIECES
from toolkit import client as gm
from toolkit.errors import GraphmillError

ops = gm.ops
_INPUTS = {
    "image": (2, 12, 13, 16), "odd": (3, 11, 17, 9), "thin": (1, 8, 8, 3), "rows": (64, 65), "square": (64, 64),
    "small": (5, 7), "steps": (4, 20, 64), "number": (), "vector": (33,),
}  # fmt: skip


def make(rng: random.Random) -> Case | None:
    """A network with its feeds."""
    training = rng.random() < 0.3
    with gm.Graph().as_default() as graph:
        builder, values = _inputs(rng)
        pool = len(builder.pool)
        for _ in range(rng.choice((1, 2, 3, 5, 8, 14))):
            _add(rng, builder)
        made = builder.pool[pool:]
        if not made:
            return None
        fetches = [*made[-2:], *rng.sample(made, min(len(made), 2))]
        with contextlib.suppress(GraphmillError):  # an op without a gradient
            if training:
                fetches = [*_train(rng, made, builder), *fetches[:1]]
        with gm.control_dependencies(builder.effects):
            fetches += [variable.read_value() for variable in builder.variables[: len(builder.effects)]]
        names = list(dict.fromkeys(tensor.name for tensor in fetches))
        meta = _meta_graph(graph, unknown=rng.random() < 0.4)
    if rng.random() < 0.1:  # other than what the graph says, where it says nothing
        name = rng.choice(sorted(values))
        values[name] = feeds.numbers(rng, tuple(size + rng.choice((0, 0, 1)) for size in values[name].shape))
    file = io.BytesIO()
    used = _reached(fetches) & values.keys()
    np.savez_compressed(file, **{name: values[name] for name in sorted(used) if rng.random() > 0.005})
    line = ["run", "model.pb", "--feeds", "feeds.npz", "--init", *(f"--fetch={name}" for name in names)]
    files = {"model.pb": meta, "feeds.npz": file.getvalue()}
    # what a network makes of rounding depends on what it is: kinds of numbers are compared, values where it is short
    exact = len(made) <= 3 and not training and _ordinary(values)
    return Case("networks", f"{len(made)} pieces", files, [line], executors=True, exact=exact, tensorflow=True)


def _reached(fetches: list[Any]) -> set[str]:
    """The names of the operations that fetches need."""
    found: set[str] = set()
    left = [tensor.op for tensor in fetches]
    while left:
        op = left.pop()
        if op.name not in found:
            found.add(op.name)
            left += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return found


def _ordinary(values: dict[str, Any]) -> bool:
    return all(bool(np.isfinite(value).all() and np.abs(value).max(initial=0) < 100) for value in values.values())


def _inputs(rng: random.Random) -> tuple[random_graphs.Builder, dict[str, Any]]:
    builder = random_graphs.Builder(resource=rng.random() < 0.5)
    values: dict[str, Any] = {}
    for name, shape in _INPUTS.items():
        builder.pool.append(gm.placeholder(gm.float32, list(shape), name=name))
        values[name] = feeds.numbers(rng, shape)
    builder.scalars = [gm.placeholder(gm.int32, [], name="count"), gm.placeholder(gm.bool, [], name="flag")]
    values |= {"count": np.int32(rng.randrange(4)), "flag": np.bool_(rng.random() < 0.5)}
    values |= {"number": np.float32(rng.choice((0, 1, -2.5)))} if rng.random() < 0.8 else {}
    for name in ("v", "w"):
        builder.variables.append(
            gm.get_variable(
                name, [64, 64], initializer=gm.initializers.Constant(feeds.numbers(rng, (64, 64)) * 0.1),
                use_resource=builder.resource,
            )
        )  # fmt: skip
    return builder, values


def _add(rng: random.Random, builder: random_graphs.Builder) -> None:
    recent = builder.pool[-4:] if rng.random() < 0.6 else builder.pool
    x, how = rng.choice(recent), rng.randrange(100_000)
    with contextlib.suppress(GraphmillError):  # sizes that do not fit
        if rng.random() < 0.5:
            made = rng.choice(PIECES)(builder, x, how)
            if made is not None and -1 not in _sizes(made):
                builder.pool.append(made)
        else:
            at = builder.pool.index(x) if x in builder.pool else 0
            builder.add((rng.randrange(1000), at, rng.randrange(1000), how))


def _sizes(tensor: Any) -> list[int]:
    sizes = tensor.shape.as_list() if tensor.shape.rank is not None else [None]
    return [-1 if size is None else size for size in sizes]


def _train(rng: random.Random, made: list[Any], builder: random_graphs.Builder) -> list[Any]:
    """A loss over what was made, and one step of an optimizer."""
    x = made[-1]
    shape = _sizes(x)
    if len(shape) == 2 and -1 not in shape:
        weights = gm.get_variable("weights", [shape[1], 6], initializer=gm.initializers.Constant(0.1))
        x = ops.mat_mul(x, weights)
    elif len(shape) == 4 and -1 not in shape:
        filters = gm.get_variable("filters", [3, 3, shape[3], 4], initializer=gm.initializers.Constant(0.05))
        x = ops.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME")
        x = ops.relu(ops.bias_add(x, gm.get_variable("bias", [4], initializer=gm.initializers.Constant(0.1))))
    else:
        x = x * gm.get_variable("scale", [], initializer=gm.initializers.Constant(0.5))
    loss = gm.reduce_mean(gm.square(x), name="loss")
    train: Any = gm.train
    optimizer = rng.choice((
        train.GradientDescent(0.1), train.Momentum(0.1, 0.9), train.Adam(0.01), train.Adagrad(0.1), train.RMSProp(0.01),
        train.Ftrl(0.1), train.Adadelta(0.1),
    ))  # fmt: skip
    step = optimizer.minimize(loss)
    floats = [tensor for tensor in builder.pool[:4] if tensor.dtype == gm.float32]
    gradients = [tensor for tensor in gm.grad(loss, floats) if tensor is not None]
    with gm.control_dependencies([step]):
        after = [variable.read_value() for variable in gm.trainable_variables()]
    return [loss, *gradients, *after]


def _meta_graph(graph: Any, *, unknown: bool) -> bytes:
    """The graph with its variables, its placeholders of any shape if shapes are to be unknown."""
    from toolkit.formats.models.metagraph import to_proto

    gm.variables_initializer(gm.global_variables(), name="init")
    meta = to_proto(gm.to_meta_graph(graph))
    for node in meta.graph_def.node:
        if unknown and node.op == "Placeholder":
            node.attr["shape"].shape.Clear()
            node.attr["shape"].shape.unknown_rank = True
    return meta.SerializeToString(deterministic=True)
