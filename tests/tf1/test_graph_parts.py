"""tf.graph_util and tf.nest do what TensorFlow's do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from schemas import graph_pb2
from tests.tf1 import node_oracle
from toolkit import tensorflow as ours


def make(tf: Any, use_resource: bool) -> tuple[Any, Any]:
    """A graph with a variable, a gather, checks and nodes that pass values on; and its session."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        w = tf.Variable(np.ones((3, 4), "f") * 2, name="w", use_resource=use_resource)
        table = tf.Variable(np.arange(8, dtype="f").reshape(4, 2), name="table", use_resource=use_resource)
        rows = tf.gather(table, [1, 3], name="rows")
        y = tf.identity(tf.check_numerics(tf.matmul(x, w), "m"), name="passing")
        tf.add(tf.stop_gradient(y), tf.reduce_sum(rows), name="y")
        tf.square(x, name="unused")
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())
    return graph, session


def described(message: Any) -> list[str]:
    return node_oracle.described(graph_pb2.GraphDef.FromString(message.SerializeToString()), across_releases=True)


def found(tf: Any, use_resource: bool) -> dict[str, list[str]]:
    graph, session = make(tf, use_resource)
    whole = graph.as_graph_def()
    part = tf.graph_util.extract_sub_graph(whole, ["y"])
    frozen = tf.graph_util.convert_variables_to_constants(session, whole, ["y"])
    fixed = tf.graph_util.convert_variables_to_constants(session, whole, ["y"], variable_names_blacklist=["w"])
    return {
        "part": described(part),
        "frozen": sorted(described(frozen)),
        "in part": sorted(line for line in described(fixed) if not line.startswith("w")),
        "trained": described(tf.graph_util.remove_training_nodes(frozen, ["passing"])),
        "host": [str(tf.graph_util.must_run_on_cpu(node)) for node in whole.node],
    }


@pytest.mark.tensorflow
def test_parts_of_graphs_are_tensorflows() -> None:
    with node_oracle.semantics():
        wanted = found(node_oracle.theirs(), False)
    got = found(ours, False)
    for key, lines in wanted.items():
        assert got[key] == lines, key


@pytest.mark.parametrize("use_resource", [False, True])
def test_frozen_graphs_compute_what_the_session_does(use_resource: bool) -> None:
    graph, session = make(ours, use_resource)
    x = np.arange(6, dtype="f").reshape(2, 3)
    wanted = session.run("y:0", {"x:0": x})
    frozen = ours.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
    with ours.Graph().as_default():
        ours.import_graph_def(frozen, name="")
        with ours.Session() as other:
            assert other.run("y:0", {"x:0": x}).tolist() == wanted.tolist()


def test_mistakes() -> None:
    message = graph_pb2.GraphDef()
    message.node.add(name="logits", op="NoOp")
    with pytest.raises(AssertionError, match="no node 'logit'; did you mean 'logits'"):
        ours.graph_util.extract_sub_graph(message, ["logit"])
    with pytest.raises(TypeError, match=r"expected a list of names, as \['y'\]"):
        ours.graph_util.extract_sub_graph(message, "y")
    with pytest.raises(TypeError, match="expected a GraphDef, not dict"):
        ours.graph_util.extract_sub_graph({}, ["y"])


def test_structures() -> None:
    nest = ours.nest
    value = {"b": (1, 2), "a": [3]}
    assert nest.flatten(value) == [3, 1, 2] and nest.flatten(5) == [5]
    assert nest.pack_sequence_as(value, [7, 8, 9]) == {"b": (8, 9), "a": [7]}
    assert nest.map_structure(lambda x, y: x + y, value, value) == {"b": (2, 4), "a": [6]}
    with ours.Graph().as_default():
        sparse = ours.SparseTensor([[0]], [1.0], [2])
        assert len(nest.flatten([sparse], True)) == 3 and nest.flatten([sparse]) == [sparse]
        again = nest.map_structure(ours.identity, [sparse], expand_composites=True)[0]
        assert isinstance(again, ours.SparseTensor)
    nest.assert_same_structure(value, {"b": (0, 0), "a": [0]})
    with pytest.raises(ValueError, match="no argument 'check'"):
        nest.map_structure(abs, 1, check=True)
    with pytest.raises(TypeError, match="expected a function"):
        nest.map_structure(3, 1)


def test_names_that_may_be_meant() -> None:
    from toolkit.tensorflow import names

    for wrong, meant in (
        ("reduce_meen", "tf.reduce_mean"), ("train.AdamOptimiser", "tf.train.AdamOptimizer"),
        ("layers.dens", "tf.layers.dense"), ("nn.conv2D", "tf.nn.conv2d"), ("concat_v3", "tf.concat"),
    ):  # fmt: skip
        said = names.absent(wrong)
        assert said.startswith(f"there is no tf.{wrong}; did you mean") and f"'{meant}'" in said and "\n" not in said
    told = "tf.contrib.tensorrt is not here: `graphmill optimize` makes a graph for inference"
    assert names.absent("contrib.tensorrt").startswith(told)
    assert names.absent("contrib.zzz") == "there is no tf.contrib.zzz"


def test_labels_of_another_type_are_cast() -> None:
    with ours.Graph().as_default(), ours.Session() as session:
        labels = ours.constant(np.eye(3))
        loss = ours.nn.softmax_cross_entropy_with_logits(labels=labels, logits=ours.zeros([3, 3]))
        # a logarithm and a sum in float32: eight units in the last place
        assert session.run(loss) == pytest.approx([np.log(3)] * 3, rel=1e-6)


def test_devices_may_have_two_slashes() -> None:
    with ours.Graph().as_default(), ours.device("//cpu:0"):
        assert ours.constant(1).op.device == "/device:CPU:0"


def test_leftovers_of_urllib_say_what_to_write() -> None:
    import urllib

    from toolkit.tensorflow.programs import leftover

    with pytest.raises(AttributeError) as caught:
        _ = urllib.urlretrieve  # type: ignore[attr-defined]
    assert leftover(caught.value).endswith("import urllib.request and write urllib.request.urlretrieve")


_NUMPY: Any = np  # calls that today's NumPy does not know


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: int(np.zeros(1)[None]), "write x.item()"),
        (lambda: _NUMPY.reshape([1, 2], newshape=(2, 1)), "write np.reshape(x, (...))"),
        (lambda: _NUMPY.zeros((6 / 2,)), "write // or int(...)"),
        (lambda: np.uint8(-1), "write np.array(x).astype(...)"),
        (lambda: np.array([[1], [2, 3]]), "dtype=object"),
        (lambda: int("x"), ""),
    ],
)
def test_leftovers_of_older_numpy_say_what_to_write(call: Callable[[], object], advice: str) -> None:
    from toolkit.tensorflow.programs import leftover

    try:
        call()
    except (TypeError, ValueError, OverflowError) as error:
        assert advice in leftover(error)
        assert bool(advice) == bool(leftover(error))


def test_a_message_can_be_imported_again() -> None:
    with ours.Graph().as_default() as graph:
        ours.get_variable("w", initializer=[1.0])
        message, meta = graph.as_graph_def(), ours.train.export_meta_graph()
    before = message.SerializeToString(), meta.SerializeToString(deterministic=True)
    for _ in range(2):
        with ours.Graph().as_default() as graph:
            ours.import_graph_def(message, name="a")
            ours.import_graph_def(message, name="b")
            assert {"a/w", "b/w"} <= {each.name for each in graph.get_operations()}
        with ours.Graph().as_default():
            ours.train.import_meta_graph(meta)
            assert [each.name for each in ours.global_variables()] == ["w:0"]
    assert (message.SerializeToString(), meta.SerializeToString(deterministic=True)) == before


def test_none_where_a_tensor_is_expected() -> None:
    with ours.Graph().as_default(), pytest.raises(ValueError, match="None is no value that a tensor can have"):
        ours.constant(None)


def test_versions_say_one_thing() -> None:
    from toolkit.tensorflow import modules

    assert ours.VERSION == modules.VERSION


def test_a_gradient_that_is_there_is_told_where_a_program_begins() -> None:
    source = (
        "from toolkit import tensorflow as tf\n"
        "for register in (lambda: tf.RegisterGradient('MaxPoolGrad')(lambda op, grad: grad), "
        "lambda: tf.no_gradient('Mul')):\n"
        "    try:\n        register()\n    except KeyError as error:\n        print(error)\n"
        "x = tf.constant(2.0)\nprint(len(tf.gradients(x * x, x)))\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.stdout == "two gradients for 'MaxPoolGrad'\ntwo gradients for 'Mul'\n1\n", done.stderr
