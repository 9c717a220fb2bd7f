"""Validation of graphs broken at random, with TensorFlow as the judge of what it imports and runs."""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schemas.graph_pb2 import GraphDef
from tests.passes import validate_graphs
from toolkit.errors import GraphmillError
from toolkit.formats.inspection import summary
from toolkit.formats.models.model import read_model
from toolkit.passes.differences.diff import diff_models
from toolkit.passes.measuring.explore import add_costs
from toolkit.passes.validate.engine import validate_files
from toolkit.passes.validate.finding import Finding, Severity

BASES = ("net", "loop", "calls", "meta")
OPS = (
    "Relu", "Neg", "AddV2", "MatMul", "Identity", "Softmax", "Conv2D", "Const", "NoOp", "Cast", "Reshape", "Sum",
    "Placeholder", "Switch", "Merge", "Enter", "Exit", "NextIteration",
)  # fmt: skip
#: type numbers: float32, float64, int32, uint8, string, int64, bool, resource, a reference
TYPES = (1, 2, 3, 4, 7, 9, 10, 20, 101)


def base(name: str) -> GraphDef:
    made = getattr(validate_graphs, name)()
    return made.graph_def if name == "meta" else made


def break_it(graph: GraphDef, dice: random.Random) -> None:
    """One or two defects of the kinds that hand-made and damaged files have."""
    inner = [node for function in graph.library.function for node in function.node_def]
    pool: list[Any] = list(graph.node) if not inner or dice.random() < 0.7 else inner
    for _ in range(dice.choice((1, 1, 1, 2))):
        _defect(dice.choice(pool), pool, dice)


def _defect(node: Any, pool: list[Any], dice: random.Random) -> None:
    names = [other.name for other in pool]
    keys = sorted(node.attr)
    kind = dice.randrange(10)
    if kind == 0 and node.input:
        node.input[dice.randrange(len(node.input))] = dice.choice(names) + dice.choice(("", ":0", ":1"))
    elif kind == 1:
        node.input.append(dice.choice(names))
    elif kind == 2 and node.input:
        del node.input[dice.randrange(len(node.input))]
    elif kind == 3:
        node.op = dice.choice(OPS)
    elif kind == 4 and keys:
        node.attr.pop(dice.choice(keys))
    elif kind == 5 and keys:
        other = dice.choice(pool)
        if other.attr:
            node.attr[dice.choice(keys)].CopyFrom(other.attr[dice.choice(sorted(other.attr))])
    elif kind == 6:
        for key in keys:
            if node.attr[key].WhichOneof("value") == "type":
                node.attr[key].type = dice.choice(TYPES)
    elif kind == 7:
        node.name = dice.choice((*names, "x y", "_a", "", "a/b"))
    elif kind == 8:
        node.input.append("^" + dice.choice(names))
    elif "value" in node.attr and node.attr["value"].HasField("tensor"):
        shape = node.attr["value"].tensor.tensor_shape
        if shape.dim:
            shape.dim[0].size = dice.choice((0, 1, 2, 5, 255, 256, -1))
        else:
            shape.dim.add(size=dice.choice((1, 3)))


def errors(path: Path, graph: GraphDef) -> list[Finding]:
    path.write_bytes(graph.SerializeToString())
    return [finding for finding in validate_files([str(path)]).findings if finding.severity is Severity.ERROR]


@given(seed=st.integers(0, 10**9), name=st.sampled_from(BASES))
@settings(max_examples=60, deadline=None)
def test_nothing_crashes_on_broken_graphs(tmp_path_factory: pytest.TempPathFactory, seed: int, name: str) -> None:
    """Whatever is wrong: findings, a report, and where a graph cannot be built one clear error."""
    graph = base(name)
    break_it(graph, random.Random(seed))
    path = tmp_path_factory.mktemp("broken") / "model.pb"
    errors(path, graph)
    summary.inspect(path, add_costs)
    good = tmp_path_factory.mktemp("good") / "model.pb"
    good.write_bytes(base(name).SerializeToString())
    try:
        diff_models(read_model(good), read_model(path))
    except GraphmillError as error:
        assert error.message


@pytest.mark.tensorflow
@given(seed=st.integers(0, 10**9), name=st.sampled_from(BASES))
@settings(max_examples=60, deadline=None)
def test_what_tensorflow_refuses_is_an_error(
    tf: ModuleType, tmp_path_factory: pytest.TempPathFactory, seed: int, name: str
) -> None:
    graph = base(name)
    break_it(graph, random.Random(seed))
    found = errors(tmp_path_factory.mktemp("broken") / "model.pb", graph)
    try:
        with tf.Graph().as_default():
            tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph.SerializeToString()), name="")
    except Exception as refusal:  # whatever way the importer refuses it
        assert found, f"TensorFlow refuses it: {refusal}"


@pytest.mark.tensorflow
@given(seed=st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_what_tensorflow_runs_has_no_errors(
    tf: ModuleType, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Of the graph without loops: a broken loop may run for ever."""
    graph = base("net")
    break_it(graph, random.Random(seed))
    # TensorFlow runs pieces of a loop outside of any as Identities; nothing makes such graphs, and they stay errors.
    assume(not any(node.op in ("NextIteration", "RefNextIteration", "LoopCond") for node in graph.node))
    found = errors(tmp_path_factory.mktemp("broken") / "model.pb", graph)
    with tf.Graph().as_default() as imported:
        try:
            tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph.SerializeToString()), name="")
            wanted = [op for op in imported.get_operations() if op.type != "Placeholder"]
            with tf.compat.v1.Session(graph=imported) as session:
                session.run(wanted, {"x:0": [[[[0.5] * 3] * 8] * 8]}, tf.compat.v1.RunOptions(timeout_in_ms=20_000))
        except Exception:  # it does not import, or does not run
            return
    assert found == []
