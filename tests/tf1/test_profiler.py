"""tf.profiler counts and reports what TensorFlow's does, and says which options are none."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from schemas import tfprof_log_pb2
from tests.tf1 import node_oracle
from toolkit import tensorflow as ours
from toolkit.errors import GraphmillError


def model(tf: Any) -> None:
    """A network whose numbers are all known, but of one product; three kinds of variables."""
    x = tf.placeholder(tf.float32, [4, 8, 8, 3], name="x")
    with tf.variable_scope("net"):
        kernel = tf.get_variable("kernel", [3, 3, 3, 5])
        h = tf.nn.bias_add(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "VALID", name="conv"), tf.get_variable("bias", [5]))
        h = tf.nn.max_pool(tf.nn.relu(h), [1, 2, 2, 1], [1, 2, 2, 1], "VALID", name="pool")
        h = tf.matmul(tf.reshape(h, [4, 45]), tf.get_variable("weights", [45, 7]), name="product")
        loss = tf.reduce_mean(tf.square(tf.nn.softmax(h) - h))
    tf.get_variable("big", [1200, 1000])
    tf.get_variable("frozen", [12, 10], trainable=False)
    tf.get_variable("resource", [12, 10], use_resource=True)
    tf.get_variable("scalar", [], initializer=tf.constant_initializer(0.0))
    tf.matmul(tf.placeholder(tf.float32, [None, 4], name="u"), tf.ones([4, 2]), name="unknown")
    tf.gradients(loss, kernel)


def builder(tf: Any, **chosen: Any) -> Any:
    return tf.profiler.ProfileOptionBuilder(dict(tf.profiler.ProfileOptionBuilder.float_operation(), **chosen))


ALL = ["params", "float_ops", "occurrence", "op_types", "input_shapes", "device"]
OF_OPS = [each for each in ALL if each != "input_shapes"]
CASES: dict[str, tuple[str, Any]] = {
    "parameters": ("scope", lambda tf: tf.profiler.ProfileOptionBuilder.trainable_variables_parameter()),
    "operations": ("scope", lambda tf: tf.profiler.ProfileOptionBuilder.float_operation()),
    "by default": ("scope", lambda tf: tf.profiler.ProfileOptionBuilder().select(["params"]).build()),
    "all": ("scope", lambda tf: builder(tf, select=ALL, min_float_ops=0, order_by="params").build()),
    "deep": ("scope", lambda tf: builder(tf, max_depth=2, account_displayed_op_only=False, min_float_ops=0).build()),
    "accounted": ("scope", lambda tf: builder(tf, min_float_ops=0).with_accounted_types(["Const", "Mul"]).build()),
    "shown": ("scope", lambda tf: builder(tf).with_node_names(show_name_regexes=["net/.*"]).build()),
    "hidden": ("scope", lambda tf: builder(tf, min_float_ops=3).with_node_names(hide_name_regexes=[".*pool"]).build()),
    "started": (
        "scope",
        lambda tf: builder(tf, min_float_ops=0).with_node_names(["net.*"], trim_name_regexes=["net/kernel.*"]).build(),
    ),
    "at least": ("scope", lambda tf: builder(tf, select=["params"]).with_min_parameters(8).build()),
    "op": ("op", lambda tf: tf.profiler.ProfileOptionBuilder.float_operation()),
    "op by name": ("op", lambda tf: builder(tf, select=OF_OPS, min_float_ops=0).order_by("name").build()),
    "op some": ("op", lambda tf: builder(tf, max_depth=3).with_accounted_types(["Mul", "Conv2D", "_train.*"]).build()),
    "op shown": (
        "op", lambda tf: builder(tf, order_by="name").with_node_names(["C.*"], ["[A-M].*"], ["Conv2D"]).build()
    ),
}  # fmt: skip


def plain(node: Any) -> Any:
    """A message without what differs between the two: TensorFlow's children and runs have the same fields."""
    return {
        field.name: value for field, value in node.ListFields() if field.name not in ("children", "graph_nodes")
    } | {
        "children": [plain(child) for child in node.children],
        "graph_nodes": [each.name for each in getattr(node, "graph_nodes", ())],
    }


def shapes(found: Any) -> Any:
    """Messages of shapes as text, so that those of two packages are equal."""
    if isinstance(found, dict):
        return {key: shapes(value) for key, value in found.items()}
    return [shapes(each) for each in found] if isinstance(found, list) else str(found)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", CASES)
def test_reports_are_those_of_tensorflow(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    cmd, options = CASES[name]
    said: list[Any] = []
    with node_oracle.semantics():
        for who, tf in (("theirs", node_oracle.theirs()), ("ours", ours)):
            file = tmp_path / who
            chosen = dict(options(tf), output=f"file:outfile={file}")
            with tf.Graph().as_default() as graph:
                model(tf)
                found = tf.profiler.profile(graph, cmd=cmd, options=chosen)
            said.append((file.read_text(), shapes(plain(found))))
    assert said[1] == said[0]


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with ours.Graph().as_default() as graph:
        ours.get_variable("w", [3, 4])
        found = ours.contrib.tfprof.model_analyzer.print_model_analysis(graph)
    assert found.total_parameters == 12
    told = capsys.readouterr().out
    assert "\n-account_type_regexes       _trainable_variables\n" in told
    assert told.endswith(
        "Profile:\nnode name | # parameters\n_TFProfRoot (--/12 params)\n  w (3x4, 12/12 params)\n\n"
        "======================End of Report==========================\n"
    )


def test_shapes_of_a_step_that_ran() -> None:
    with ours.Graph().as_default() as graph, ours.Session() as session:
        x = ours.placeholder(ours.float32, [None, 3])
        y = ours.matmul(ours.nn.relu(x), ours.ones([3, 2]), name="y")  # what is fed is no node that runs
        run_meta = ours.RunMetadata()
        options = ours.RunOptions(trace_level=ours.RunOptions.FULL_TRACE)
        session.run(y, {x: [[1.0, 2.0, 3.0]] * 5}, options, run_meta)
        quiet = builder(ours).with_empty_output().build()
        assert ours.profiler.profile(graph, options=quiet).total_float_ops == 0
        assert ours.profiler.profile(graph, run_meta, options=quiet).total_float_ops == 5 * 3 * 2 * 2


def test_what_a_caller_says_of_nodes(tmp_path: Path) -> None:
    log = tfprof_log_pb2.OpLogProto()
    log.log_entries.add(name="c", float_ops=17, types=["mine"])
    with ours.Graph().as_default() as graph:
        ours.add(ours.constant([1.0, 2.0], name="c"), 1.0, name="sum")
        options = builder(ours).with_accounted_types(["mine"]).with_empty_output().build()
        found = ours.profiler.profile(graph, op_log=log, options=options)
        ours.profiler.write_op_log(graph, str(tmp_path), log)
    assert [(node.name, node.float_ops) for node in found.children] == [("c", 17)]
    written = tfprof_log_pb2.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    assert {entry.name: entry.float_ops for entry in written.log_entries} == {"c": 17, "sum": 2}


@pytest.mark.parametrize(
    ("options", "cmd", "said"),
    [
        ({"order_by": "flops"}, "scope", "order_by of a profile: expected one of name, params"),
        ({"order_by": "micros"}, "scope", "order_by of a profile: micros are not counted here; `graphmill python"),
        ({"select": ["param"]}, "scope", "select of a profile: .* got 'param'; did you mean 'params'?"),
        ({"select": ["bytes"]}, "op", "select of a profile: bytes are not counted here"),
        ({"max_depth": "3"}, "scope", "max_depth is a whole number, not '3'"),
        ({"show_name_regexes": ["("]}, "scope", "show_name_regexes: '\\(' is no pattern"),
        ({"show_name_regexes": "net"}, "scope", "show_name_regexes is a list of patterns, not 'net'"),
        ({"output": "timeline:outfile=t"}, "scope", "output of a profile: expected stdout, none or file:outfile=NAME"),
        ({"select": ["input_shapes"]}, "op", "input_shapes are those of single nodes; take cmd='scope'"),
        ({}, "code", "cmd of a profile: expected scope or op, got 'code'"),
    ],
)
def test_mistakes(options: dict[str, Any], cmd: str, said: str) -> None:
    with ours.Graph().as_default() as graph, pytest.raises(GraphmillError, match=said):
        ours.profiler.profile(graph, cmd=cmd, options=builder(ours, **options).build())


def test_modules_from_which_programs_import() -> None:
    for name in ("contrib.tfprof.python.tools.tfprof.tfprof_logger", "contrib.tfprof.tfprof_logger"):
        assert _at(name).write_op_log is ours.profiler.write_op_log
    assert _at("python.profiler.option_builder").ProfileOptionBuilder is ours.profiler.ProfileOptionBuilder


def _at(name: str) -> Any:
    from toolkit.tensorflow import importer

    with importer.installed():
        return importlib.import_module(f"tensorflow.{name}")
