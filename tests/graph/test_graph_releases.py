"""The table of TensorFlow's releases: against the installed one, and against what its release notes say."""

from __future__ import annotations

from types import ModuleType

import pytest

from schemas.graph_pb2 import GraphDef
from toolkit.graph import opdefs, releases


@pytest.mark.tensorflow
def test_the_last_release_is_the_installed_one(tf: ModuleType) -> None:
    assert releases.releases()[-1] == ".".join(tf.version.VERSION.split(".")[:2])
    assert releases.written_by(tf.version.GRAPH_DEF_VERSION) == releases.releases()[-1]


@pytest.mark.parametrize(
    ("op", "release"),
    [("Conv2D", "1.4"), ("FusedBatchNormV3", "1.14"), ("BatchMatMulV2", "1.14"), ("StatelessIf", "1.11")],
)
def test_ops(op: str, release: str) -> None:
    graph = GraphDef()
    graph.node.add(name="a", op=op)
    assert releases.needs(graph).release == release


def test_attributes() -> None:
    graph = GraphDef()
    node = graph.node.add(name="a", op="Conv2D")
    for attr, release in (("dilations", "1.5"), ("explicit_paddings", "1.14")):
        node.attr[attr].list.i.append(1)
        assert releases.needs(graph).release == release
        assert releases.needs(graph).reasons == (f"attribute {attr} of Conv2D",)


def test_functions_versions_and_objects() -> None:
    graph = GraphDef()
    function = graph.library.function.add()
    function.signature.name = "f"
    function.node_def.add(name="b", op="FusedBatchNormV3")
    graph.node.add(name="c", op="f")
    assert releases.needs(graph) == releases.ReaderRequirements("1.14", ("FusedBatchNormV3",), ())
    assert releases.needs(graph, is_object_based=True).release == "2.0"
    graph.versions.min_consumer = 500
    assert releases.needs(graph).reasons == ("GraphDef version 500",)


@pytest.mark.parametrize(
    ("producer", "text"),
    [(24, "1.4 to 1.5"), (134, "1.15"), (130, "between 2.0 and 1.15"), (450, "between 2.3 and 2.4"),
     (10, "before 1.4"), (0, ""), (10**6, "after 2.21")],
)  # fmt: skip
def test_who_wrote_it(producer: int, text: str) -> None:
    assert releases.written_by(producer) == text


def test_every_op_in_it_exists() -> None:
    history = releases._history()
    assert len(history.since) > 1000
    for op, attrs in history.late.items():
        definition = opdefs.find(op)
        assert definition is not None and set(attrs) <= set(definition.attrs)
        assert all(history.order[release] > history.order[history.since[op]] for release in attrs.values())
