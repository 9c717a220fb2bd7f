"""Random training steps: losses with branches, loops and slices over variables, their gradients, an optimizer."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit import client as gm
from toolkit.graph.frames import assign_frames
from toolkit.graph.query import reachable

SIZE = 3
_OPTIMIZERS = (
    lambda: gm.train.GradientDescent(0.1),
    lambda: gm.train.Momentum(0.1, 0.9),
    lambda: gm.train.Momentum(0.1, 0.9, use_nesterov=True),
    lambda: gm.train.Adam(0.05),
    lambda: gm.train.RMSProp(0.05, momentum=0.5),
    lambda: gm.train.Adagrad(0.1),
    lambda: gm.train.Ftrl(0.1),
)


@dataclass
class Training:
    """A graph whose operation `train` changes its variables.

    Attributes:
        graph: with `init`, `train` and `loss`.
        fetches: the variables, read.
        feeds: for each of some steps.
    """

    graph: Any
    fetches: list[str]
    feeds: list[dict[str, Any]]


class _Maker:
    def __init__(self, rng: random.Random, resource: bool):
        self.rng = rng
        self.resource = rng.random() < 0.5 or resource
        self.variables: list[Any] = []

    def variable(self) -> Any:
        """One of the variables, often a new one."""
        if self.variables and self.rng.random() < 0.6:
            return self.rng.choice(self.variables)
        start = np.random.default_rng(self.rng.randrange(1 << 30)).normal(size=SIZE).astype(np.float32)
        with gm.init_scope():
            made = gm.Variable(start, name=f"v{len(self.variables)}", use_resource=self.resource)
        self.variables.append(made)
        return made

    def value(self, x: Any, depth: int) -> Any:
        """A vector of numbers between -1 and 1 or so."""
        kind = self.rng.randrange(10) if depth else self.rng.randrange(3)
        match kind:
            case 0:
                return self.variable() * x
            case 1:
                return gm.tanh(self.variable().to_tensor())
            case 2:
                return x * self.rng.choice([0.5, -1.0])
            case 3 | 4:
                return self.cond(x, depth)
            case 5:
                return self.loop(x, depth)
            case 6:
                table = self.variable()
                picked = gm.gather(table, [self.rng.randrange(SIZE) for _ in range(SIZE)])
                return gm.tanh(picked + self.value(x, depth - 1))
            case 7:
                return gm.sigmoid(self.value(x, depth - 1)) * self.value(x, depth - 1)
            case 8:
                return gm.tanh(self.value(x, depth - 1) - self.value(x, depth - 1))
            case _:
                return gm.stop_gradient(self.value(x, depth - 1)) + self.value(x, depth - 1)

    def cond(self, x: Any, depth: int) -> Any:
        limit = self.rng.choice([-9.0, -0.3, 0.3, 9.0])
        through = self.value(x, depth - 1)  # what a branch may only pass on
        predicate = gm.reduce_sum(x) > limit

        def branch() -> Any:
            kind = self.rng.randrange(4)
            if kind == 0:
                return gm.identity(through)
            if kind == 1:
                return through * self.rng.choice([0.5, 2.0])
            return through * self.value(x, depth - 1) if kind == 2 else self.value(x, depth - 1)

        return gm.cond(predicate, branch, branch)

    def loop(self, x: Any, depth: int) -> Any:
        times = self.rng.choice([0, 1, 3])
        outer = self.value(x, depth - 1)

        def body(i: Any, state: Any) -> Any:
            return i + 1, gm.tanh(
                state * self.variable().to_tensor() + self.rng.choice([outer, self.value(x, depth - 1)])
            )

        return gm.while_loop(lambda i, _: i < times, body, [gm.constant(0), self.value(x, depth - 1)])[1]


def training(seed: int, ordered: bool = False) -> Training:
    """One of endlessly many.

    Args:
        ordered: nothing is updated before all that reads it has, which TensorFlow does not see to: the gradient of
            a branch that was not taken is there at once, and references are read when their reader asks.
    """
    rng = random.Random(seed)
    graph = gm.Graph()
    maker = _Maker(rng, ordered)
    with graph.as_default():
        x = gm.placeholder(gm.float32, [SIZE], name="x")
        loss = gm.reduce_sum(gm.square(maker.value(x, 3) + maker.variable().to_tensor()), name="loss")
        optimizer = rng.choice(_OPTIMIZERS)()
        pairs = optimizer.compute_gradients(loss)
        with_gradients = [(grad, v) for grad, v in pairs if grad is not None]
        clipping = rng.randrange(3)
        if clipping == 1:
            clipped, _ = gm.clip_by_global_norm([grad for grad, _ in with_gradients], 1.0)
            with_gradients = [(grad, v) for grad, (_, v) in zip(clipped, with_gradients, strict=True)]
        if ordered:
            settled = gm.tuple_([grad for grad, _ in with_gradients], control_inputs=[loss.op])
            with_gradients = [(grad, v) for grad, (_, v) in zip(settled, with_gradients, strict=True)]
        step = gm.train.get_or_create_global_step()
        optimizer.apply_gradients(with_gradients, step, name="train")
        for variable in gm.global_variables():
            gm.identity(variable.to_tensor(), name=f"final/{variable.op.name}")
        gm.global_variables_initializer()
        fetches = [f"final/{variable.op.name}:0" for variable in gm.global_variables()]
    data = np.random.default_rng(seed)
    return Training(graph, fetches, [{"x:0": data.normal(size=SIZE).astype(np.float32)} for _ in range(3)])


def add_control_edges(made: Training, seed: int) -> None:
    """Let nodes wait for others by chance, most often for a Switch or a Merge: what waits for what is not run is not
    run either. Nodes of loops, and what initialises, stay as they are."""
    rng = random.Random(seed)
    graph = made.graph.core
    order = graph.topological_order()
    frames, (outermost, *_) = assign_frames(graph, order)
    read = [graph.node(fetch.removesuffix(":0")) for fetch in made.fetches]
    apart = {graph.node("init").id}.union(*(reachable(node, None) for node in [graph.node("init"), *read]))
    flat = [
        (place, node)
        for place, node in enumerate(order)
        if frames[node.id] is outermost and node.op != "Enter" and node.id not in apart and "final" not in node.name
    ]
    deciding = [pair for pair in flat if pair[1].op in ("Switch", "Merge")] or flat
    for _ in range(rng.randrange(1, 4)):
        place, source = rng.choice(deciding if rng.random() < 0.6 else flat)
        later = [node for at, node in flat if at > place and source not in node.control_inputs]
        if later:
            node = rng.choice(later)
            node.control_inputs = [*node.control_inputs, source]
