"""Specs whose variables begin with what a checkpoint holds."""

from __future__ import annotations

import numpy as np
import pytest

from tests.client.specs.test_spec_language import build, mistakes
from toolkit.formats.models.metagraph import to_proto
from toolkit.runtime.session import Session

BEFORE = """
    inputs: {x: {shape: [null, 2]}}
    nodes:
      - {layer: dense, name: encoder, units: 3, kernel_initializer: {type: constant, value: 2.0}}
      - {layer: dense, name: head, units: 1, kernel_initializer: {type: constant, value: 3.0}}
"""
AFTER = BEFORE.replace("2.0", "0.0").replace("3.0", "0.0")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> str:
    meta = build(BEFORE)
    folder = tmp_path_factory.mktemp("ckpt")
    with Session(meta) as session:
        session.run("init")
        assert meta.saver is not None
        names = {"save/Const:0" if "save/Const" in meta.graph else meta.saver.filename_tensor_name: str(folder / "m")}
        session.run(meta.saver.save_tensor_name, names)
    return str(folder / "m")


def kernels(text: str) -> list[float]:
    """The first numbers of both kernels after initialisation."""
    meta = build(text)
    names = [name for name in ("encoder/kernel", "coder/kernel", "head/kernel") if name in meta.graph]
    with Session(meta) as session:
        session.run("init")
        values = session.run([f"{name}:0" for name in names])
    return [float(np.ravel(value)[0]) for value in values]


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("PREFIX", [2.0, 3.0]),
        ("{checkpoint: PREFIX}", [2.0, 3.0]),
        ("{checkpoint: PREFIX, variables: [enc*]}", [2.0, 0.0]),
        ("{checkpoint: PREFIX, variables: head/kernel}", [0.0, 3.0]),
        ("{checkpoint: PREFIX, variables: {head/: head/}}", [0.0, 3.0]),
    ],
)
def test_variables_start_from_a_checkpoint(prefix: str, section: str, expected: list[float]) -> None:
    assert kernels(AFTER + f"    start_from: {section.replace('PREFIX', prefix)}\n") == expected


def test_variables_of_other_names_and_parts(prefix: str) -> None:
    text = AFTER.replace("name: encoder", "name: coder") + f"    start_from: {{checkpoint: {prefix}, variables: "
    assert kernels(text + "{encoder/: coder/}}\n") == [2.0, 0.0]
    parts = f"""
        variables:
          encoder/kernel: {{shape: [2, 3], initializer: zeros, partitioner: {{type: fixed_size, num_shards: 2}}}}
        nodes: [{{layer: identity, input: encoder/kernel}}]
        start_from: {prefix}
    """
    with Session(build(parts)) as session:
        session.run("init")
        np.testing.assert_array_equal(session.run("identity:0"), np.full((2, 3), 2.0))


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("nowhere/model", "start_from: there is no checkpoint here: 'nowhere/model.index' does not exist"),
        ("{checkpoint: PREFIX, variables: [encode]}", "no variable is named 'encode'"),
        ("{checkpoint: PREFIX, variables: {head/weights: head/kernel}}", "there is no tensor 'head/weights'"),
        ("{checkpoint: PREFIX, variables: {head/bias: head/kernel}}", "start_from: "),
        ("{variables: [x]}", "the key 'checkpoint' is missing"),
        ("3", "start_from: expected a checkpoint or a mapping, found 3"),
    ],
)
def test_mistakes(prefix: str, section: str, expected: str) -> None:
    [error] = mistakes(AFTER + f"    start_from: {section.replace('PREFIX', prefix)}\n")
    assert error.startswith("s.yaml:6:")
    assert expected in error


@pytest.mark.tensorflow
def test_tensorflow_starts_from_it_too(tf: object, prefix: str) -> None:
    v1 = tf.compat.v1  # type: ignore[attr-defined]
    graph = v1.Graph()
    with graph.as_default(), v1.Session(graph=graph) as session:
        proto = to_proto(build(AFTER + f"    start_from: {prefix}\n"))
        v1.train.import_meta_graph(v1.MetaGraphDef.FromString(proto.SerializeToString()))
        session.run("init")
        np.testing.assert_array_equal(session.run("encoder/kernel:0"), np.full((2, 3), 2.0))
