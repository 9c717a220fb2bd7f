"""Graphs whose time is the engine's own: one addition, a loop over scalars, 10,000 small elementwise nodes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Workload, tensorflow
from tests.models import builder

ITERATIONS, NODES, ELEMENTS = 1000, 10_000, 32
#: the greatest absolute value an elementwise node may reach before it is squashed
BOUND = 8.0


def _write(folder: Path, graph: Any, inputs: dict[str, str], outputs: dict[str, str]) -> dict[str, Any]:
    import tensorflow as tf

    tf.io.write_graph(graph.as_graph_def(), str(folder), "graph.pb", as_text=False)
    return {"main": "graph.pb", "inputs": inputs, "outputs": outputs}


@builder(_write)
def addition(folder: Path) -> dict[str, Any]:
    """sum = a + b of scalars float32."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        a, b = v1.placeholder(tf.float32, [], name="a"), v1.placeholder(tf.float32, [], name="b")
        total = tf.add(a, b, name="sum")
    return _write(folder, graph, {"a": a.name, "b": b.name}, {"sum": total.name})


@builder(_write)
def scalar_loop(folder: Path, form: str) -> dict[str, Any]:
    """x = 0.999 x + 0.01 a thousand times; form "while-loop" (Enter, Switch, ...) or "functional" (While)."""
    import tensorflow as tf

    v1 = tf.compat.v1
    {"while-loop": v1.disable_control_flow_v2, "functional": v1.enable_control_flow_v2}[form]()
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [], name="x")
        result = v1.while_loop(lambda i, v: i < ITERATIONS, lambda i, v: (i + 1, v * 0.999 + 0.01), [0, x])[1]
        result = tf.identity(result, name="result")
    return _write(folder, graph, {"x": x.name}, {"result": result.name})


@builder(_write)
def elementwise(folder: Path) -> dict[str, Any]:
    """A random graph of 10,000 elementwise nodes over float32[32]; its inputs are "a" and "b"."""
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    random = np.random.default_rng(13)
    # op to the bound of its result, given those of its arguments
    unary = {
        tf.tanh: lambda p: 1.0, tf.sigmoid: lambda p: 1.0, tf.nn.relu: lambda p: p, tf.abs: lambda p: p,
        tf.negative: lambda p: p, tf.nn.softplus: lambda p: p + 1, tf.square: lambda p: p * p,
    }  # fmt: skip
    binary = {
        tf.add: lambda p, q: p + q, tf.subtract: lambda p, q: p + q, tf.multiply: lambda p, q: p * q,
        tf.maximum: max, tf.minimum: max,
    }  # fmt: skip
    with v1.Graph().as_default() as graph:
        a = v1.placeholder(tf.float32, [ELEMENTS], name="a")
        b = v1.placeholder(tf.float32, [ELEMENTS], name="b")
        made: list[tuple[Any, float]] = [(a, 3.0), (b, 3.0)]
        unused: set[int] = set()

        def recent() -> int:
            """One that nothing uses yet, or any of the last 60."""
            waiting = sorted(unused)[:1] if random.random() < 0.7 else []
            return waiting[0] if waiting else int(random.integers(max(0, len(made) - 60), len(made)))

        while len(made) < NODES + 1:
            many = random.random() < 0.6
            picked = [recent()]
            if many:  # the inputs come back all the time, or their trace would be lost after a thousand nodes
                fresh = random.random() < 0.15
                picked.append(int(random.integers(2) if fresh else random.integers(max(0, len(made) - 60), len(made))))
            operations = list(binary if many else unary)
            chosen = operations[int(random.integers(len(operations)))]
            bound = (binary if many else unary)[chosen](*(made[i][1] for i in picked))
            if bound > BOUND:
                chosen, picked, bound = tf.tanh, picked[:1], 1.0
            unused.difference_update(picked)
            unused.add(len(made))
            made.append((chosen(*(made[i][0] for i in picked)), bound))
        result = tf.add_n([made[i][0] for i in sorted(unused | {len(made) - 1})], name="result")
    return _write(folder, graph, {"a": a.name, "b": b.name}, {"result": result.name})


def _scalars(random: Any, *, labels: str) -> dict[str, Any]:
    return {label: random.standard_normal((), dtype="float32") for label in labels}


def _vectors(random: Any) -> dict[str, Any]:
    return {label: random.uniform(-3, 3, ELEMENTS).astype("float32") for label in "ab"}


def workloads() -> list[Workload]:
    """The addition through both calls, the loop in both forms, the large graph."""
    two = partial(_scalars, labels="ab")
    found = [
        Workload("one scalar Add, Session.run", "overhead", addition, two, tensorflow(0.15), repeat=200),
        Workload(
            "one scalar Add, make_callable", "overhead", addition, two, tensorflow(0.5), call="callable", repeat=200
        ),
    ]
    for form in ("while-loop", "functional"):
        name = f"{ITERATIONS} scalar iterations, {form}"
        model = partial(scalar_loop, form)
        found.append(
            Workload(
                name, "overhead", model, partial(_scalars, labels="x"), tensorflow(0.50), work=(3.0 * ITERATIONS, 8)
            )
        )
    name = f"{NODES} elementwise nodes of {ELEMENTS}"
    found.append(Workload(name, "elementwise", elementwise, _vectors, tensorflow(1.00)))
    return found
