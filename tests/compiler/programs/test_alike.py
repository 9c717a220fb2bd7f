"""What is found once for nodes, steps and nests that are alike is found for those that only look alike by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.large_graphs import write_graph
from tests.compiler.compare import compiled
from toolkit import client as gm
from toolkit.compiler.program import Program
from toolkit.formats.models.model import read_model
from toolkit.kernels import registry
from toolkit.runtime.session import Session

ops = gm.ops


def test_nests_that_differ_in_the_sign_of_a_zero() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder("float32", [4, 8], name="x")
        first = x * 0.0 * 1.5
        # products of zeros are zeros, which the second nest gives the other sign
        second = ops.mat_mul(first, gm.constant(np.eye(8, dtype=np.float32))) * -0.0 * 1.5
    got = compiled(graph, [first, second], {x: np.ones((4, 8), np.float32)})
    assert not np.signbit(got[0]).any() and np.signbit(got[1]).all()


def _read(nodes: int, folder: Path) -> Any:
    path = folder / "graph.pb"
    write_graph(path, nodes)
    return read_model(path).graph


def test_kernels_of_one_kind_are_built_once_or_when_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = _read(660, tmp_path)
    built: list[str] = []
    before = registry.KernelNode.__init__

    def counted(self: registry.KernelNode, node: Any, *more: Any) -> None:
        built.append(node.name)
        before(self, node, *more)

    monkeypatch.setattr(registry.KernelNode, "__init__", counted)
    program = Program(graph)
    same = [step for step in program.steps if step.node.op == "MatMul"]
    assert sum(step.node.name in built for step in same) == 1
    compute = same[-1].compute
    assert same[-1].node.name not in built and compute is same[0].compute  # it has seen nothing of its node
    np.testing.assert_array_equal(compute(np.eye(2, dtype=np.float32), np.ones((2, 3), np.float32)), np.ones((2, 3)))
    shapes = [step.constant for step in program.steps if step.node.name.endswith("Reshape/shape/1")]
    assert len(shapes) > 1 and all(each is shapes[0] for each in shapes)


def test_equal_blocks_compute_what_single_ones_do(tmp_path: Path) -> None:
    """The second block's steps, nests and sums are recalled; each result follows from what its own block is given."""
    graph = _read(660, tmp_path)
    x = np.linspace(-1, 1, 8, dtype=np.float32)[None]
    with Session(graph) as session:
        session.run("init")
        middle, end = session.run(["block_0000000/y:0", "y:0"], {"x:0": x})
        fed = session.run("y:0", {"block_0000000/y:0": middle})
    np.testing.assert_array_equal(end, fed)
