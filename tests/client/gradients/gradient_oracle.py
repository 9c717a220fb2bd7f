"""Gradients against TensorFlow's own: one graph, extended by us and by TensorFlow, run by TensorFlow and by us."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from tests import perturbation
from toolkit import Session
from toolkit import client as gm
from toolkit.client.construction.tensor import IndexedSlices, Tensor

Build = Callable[[], tuple[list[Tensor], list[Tensor]]]


def compare(
    tf: ModuleType,
    build: Build,
    feeds: Mapping[str, Any],
    *,
    run_ours: bool = True,
) -> list[Any]:
    """Run dy/dx made by us and by TensorFlow on one imported graph; returns ours.

    Both gradients are run by TensorFlow, so that only the graphs can differ; `run_ours` runs ours here as well, to
    see that all of its ops have kernels.
    """
    graph = gm.Graph()
    with graph.as_default():
        ys, xs = build()
        # TensorFlow takes imported names for its own otherwise: frames, and sources of TensorArrays
        ours = [as_tensor(g) for g in gm.grad(ys, xs, name="ours")]
        names = [None if g is None else g.name for g in ours]
    v1 = tf.compat.v1
    theirs = tf.Graph()
    with theirs.as_default():
        tf.import_graph_def(v1.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        wanted = v1.gradients(
            [theirs.get_tensor_by_name(y.name) for y in ys], [theirs.get_tensor_by_name(x.name) for x in xs]
        )
        wanted = [None if w is None else tf.convert_to_tensor(w) for w in wanted]
        assert [n is None for n in names] == [w is None for w in wanted]
        present = [n for n in names if n is not None]
        fed = {f"{name}:0": value for name, value in feeds.items()}
        with v1.Session() as session:
            found, expected = session.run([present, [w for w in wanted if w is not None]], fed)
    here = [Session(graph).run(present, fed)] if run_ours and present else []
    perturbation.assert_close(graph, present, fed, [found, *here, expected])
    return found


def as_tensor(grad: Any) -> Tensor | None:
    return grad.to_tensor() if isinstance(grad, IndexedSlices) else grad


def numeric(build: Build, feeds: Mapping[str, Any], step: float = 1e-6) -> tuple[list[Any], list[Any]]:
    """Our gradients of the sum of the ys and central differences, both run here.

    For complex x, as TensorFlow has it: dL/dRe(x) + i dL/dIm(x).
    """
    graph = gm.Graph()
    with graph.as_default():
        ys, xs = build()
        loss = gm.add_n([gm.reduce_sum(y) for y in ys])
        ours = [as_tensor(g) for g in gm.grad(loss, xs)]
    session = Session(graph)
    values = {name: np.array(value) for name, value in feeds.items()}
    fed = {f"{name}:0": value for name, value in values.items()}
    found = session.run(ours, fed)
    wanted: list[Any] = []
    for x in xs:
        value = values[x.name.removesuffix(":0")]
        slopes = np.zeros_like(value)
        turns = [1, 1j] if value.dtype.kind == "c" else [1]
        for place in np.ndindex(value.shape):
            original = value[place]
            for turn in turns:
                ends = []
                for sign in (1, -1):
                    value[place] = original + sign * step * turn
                    ends.append(float(session.run(loss, fed)))
                slopes[place] += (ends[0] - ends[1]) / (2 * step) * turn
            value[place] = original
        wanted.append(slopes)
    return found, wanted
