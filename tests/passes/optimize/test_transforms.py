"""The Graph Transform Tool's transforms: the table is whole, the old lists run, and each gives what the tool gave."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests.passes.graphs import run_in_tensorflow, structure
from tests.passes.optimize.oracle import agree, changed, feed, kept, made, ops, transformed, unchanged
from toolkit.errors import UsageError
from toolkit.formats.models.model import from_graph, read_model, write_model
from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.passes.optimize.forms.add_default_attributes import AddDefaultAttributes
from toolkit.passes.optimize.forms.backports import BackportConcatV2, BackportTensorArrayV3
from toolkit.passes.optimize.forms.insert_logging import InsertLogging
from toolkit.passes.optimize.forms.sort_by_execution_order import SortByExecutionOrder
from toolkit.passes.optimize.notation import parameters, parse_passes
from toolkit.passes.optimize.quantization.freeze_requantization_ranges import FreezeRequantizationRanges
from toolkit.passes.optimize.removal.remove_nodes import RemoveOps
from toolkit.passes.optimize.removal.strip_unused_nodes import StripUnusedNodes
from toolkit.passes.optimize.run import optimize
from toolkit.passes.optimize.table import TABLE
from toolkit.passes.optimize.transforms import TRANSFORMS, lines

#: every transform that the tool registers, with the parameters that its sources read
ALL: dict[str, str] = {
    "add_default_attributes": "", "backport_concatv2": "", "backport_tensor_array_v3": "", "flatten_atrous_conv": "",
    "fold_batch_norms": "", "fold_constants": "clear_output_shapes", "fold_old_batch_norms": "",
    "freeze_requantization_ranges": "min_max_log_file min_percentile max_percentile", "fuse_pad_and_conv": "",
    "fuse_resize_and_conv": "", "fuse_resize_pad_and_conv": "", "inline_partitionedcall": "",
    "insert_logging": "op prefix show_op show_name message first_n summarize", "merge_duplicate_nodes": "",
    "obfuscate_names": "", "quantize_nodes": "input_min input_max fallback_min fallback_max ignore_op",
    "quantize_weights": "minimum_size", "remove_attribute": "attribute_name op_name",
    "remove_control_dependencies": "", "remove_device": "", "remove_nodes": "op max_inputs",
    "rename_attribute": "old_attribute_name new_attribute_name op_name", "rename_node": "old_node_name new_node_name",
    "rename_op": "old_op_name new_op_name", "round_weights": "num_steps", "set_device": "device if_default",
    "sort_by_execution_order": "", "sparsify_gather": "input_checkpoint group_init_node",
    "strip_unused_nodes": "type shape name type_for_name shape_for_name",
}  # fmt: skip


def network(v1: Any) -> Any:
    x = v1.placeholder("float32", [None, 4], name="x")
    w = v1.constant(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4), name="w")
    y = v1.identity(v1.matmul(x, w) * [1.0, 2.0, 3.0, 4.0])
    y = v1.concat([v1.nn.relu(y), v1.nn.relu(y)], 1)
    return v1.identity(v1.nn.softmax(v1.debugging.check_numerics(y, "y")), name="out")


def test_the_table_is_whole() -> None:
    assert list(TRANSFORMS) == sorted(ALL)
    for name, row in TRANSFORMS.items():
        assert set(row.parameters) == set(ALL[name].split()), name
        assert bool(row.pass_) + bool(row.command) <= 1 and (row.pass_ or row.command or row.note)
        if row.pass_:
            known = parameters(TABLE[row.pass_].load())
            assert {row.renamed.get(key, key) for key in row.parameters} <= {*known, *row.without_effect}, name
    assert lines()[0] == "add_default_attributes"


@pytest.mark.tensorflow
def test_the_tool_has_no_other(tf: Any) -> None:
    graph = made(tf, network)
    for name in ALL:
        try:
            transformed(graph, "x", "out", name)
        except ValueError as error:
            assert "not recognized" not in str(error), name
    with pytest.raises(ValueError, match="not recognized"):
        transformed(graph, "x", "out", "fold_moments")


@pytest.mark.tensorflow
def test_lists_as_the_tool_took_them(tf: Any) -> None:
    """The list for deployment of its manual."""
    graph = made(tf, network)
    text = """strip_unused_nodes(type=float, shape="1,299,299,3") remove_nodes(op=Identity, op=CheckNumerics)
        fold_constants(ignore_errors=true) fold_batch_norms fold_old_batch_norms merge_duplicate_nodes
        quantize_weights(minimum_size=16) sort_by_execution_order"""
    result = optimize(graph, parse_passes(text), kept("out"), rounds=1).graph
    theirs = transformed(graph, "x", "out", text.replace("\n", " "))
    assert len(result) <= len(theirs)
    agree(tf, theirs, result, ["out:0"], feed(graph))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("remove_device", "graphmill edit IN --clear-devices"),
        ("quantize_nodes(input_min=0)", "given together"),
        ("fold_batch_norm", "did you mean 'fold_batch_norms'"),
        ("quantize_weights(minimal_size=3)", "did you mean 'minimum_size'"),
        ("fold_batch_norms(ignore_errors=perhaps)", "expected true or false"),
        ("strip_unused_nodes(shape=big)", "'big' is no shape"),
        ("remove_nodes(op=Identitty)", "there is no op 'Identitty'"),
        ("remove_nodes", "needs its parameter 'op'"),
    ],
)
def test_what_is_no_pass(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_passes(text)
    assert says in str(caught.value)


def test_errors_that_are_ignored(tmp_path: Path) -> None:
    graph = Graph()
    log = tmp_path / "log"
    log.write_text(";a__print__;__requant_min_max:[0][1]\n")
    text = f'freeze_requantization_ranges(min_max_log_file="{log}"'
    with pytest.raises(UsageError, match="'a', which is not in the graph"):
        optimize(graph, parse_passes(text + ")"), kept())
    done = optimize(graph, parse_passes(text + ", ignore_errors=true)"), kept())
    assert "'a', which is not in the graph" in done.passes[0].report["error"]


@pytest.mark.tensorflow
def test_logging(tf: Any) -> None:
    graph = made(tf, network)
    pass_ = InsertLogging(op=("Relu", "MatMul"), prefix=("Re", "Mat"), show_op=True, show_name=True, message="m:")
    result = changed(pass_, graph)
    theirs = transformed(
        graph,
        "x",
        "out",
        'insert_logging(op=Relu, op=MatMul, prefix=Re, prefix=Mat, show_op=true, show_name=true, message="m:")',
    )
    prints = {n.name: (n.text("message"), n.attr("summarize")) for n in result.graph if n.op == "Print"}
    assert prints == {n.name: (n.text("message"), n.attr("summarize")) for n in theirs if n.op == "Print"}
    assert len(prints) == result.report["logged"] == 3
    agree(tf, graph, result.graph, ["out:0"], feed(graph))
    assert optimize(graph, [pass_], kept("out")).settled  # in the first round alone


@pytest.mark.tensorflow
def test_concat(tf: Any) -> None:
    graph = made(tf, network)
    result = changed(BackportConcatV2(kept=kept("out")), graph)
    assert ops(result.graph) == ops(transformed(graph, "x", "out", "backport_concatv2"))
    agree(tf, graph, result.graph, ["out:0"], feed(graph))


@pytest.mark.tensorflow
def test_tensor_arrays(tf: Any) -> None:
    def arrays(v1: Any) -> Any:
        x = v1.placeholder("float32", [3, 4], name="x")
        array = v1.raw_ops.TensorArrayV3(size=3, dtype=v1.float32)
        flow = v1.raw_ops.TensorArrayScatterV3(handle=array[0], indices=[0, 1, 2], value=x, flow_in=array[1])
        read = v1.raw_ops.TensorArrayReadV3(handle=array[0], index=1, flow_in=flow, dtype=v1.float32)
        size = v1.raw_ops.TensorArraySizeV3(handle=array[0], flow_in=flow)
        return v1.identity(read * v1.cast(size, v1.float32), name="out")

    graph = made(tf, arrays)
    result = changed(BackportTensorArrayV3(kept=kept("out")), graph)
    theirs = transformed(graph, "x", "out", "backport_tensor_array_v3")
    assert ops(result.graph) == ops(theirs)
    want = run_in_tensorflow(tf, graph, ["out:0"], feed(graph))[0]
    np.testing.assert_array_equal(run_in_tensorflow(tf, result.graph, ["out:0"], feed(graph))[0], want)


@pytest.mark.tensorflow
def test_defaults_are_written(tf: Any) -> None:
    graph = made(tf, network)
    for node in graph:
        for key in ("transpose_a", "N"):
            if key in node.attrs and key == "transpose_a":
                del node.attrs[key]
    result = changed(AddDefaultAttributes(kept=kept("out")), graph)
    theirs = transformed(graph, "x", "out", "add_default_attributes")
    assert {n.name: set(n.attrs) for n in result.graph} == {n.name: set(n.attrs) for n in theirs}
    unchanged(AddDefaultAttributes(kept=kept("out")), result.graph)


@pytest.mark.tensorflow
def test_nodes_removed_and_sorted(tf: Any) -> None:
    graph = made(tf, network)
    result = changed(RemoveOps(op=("CheckNumerics", "Identity"), kept=kept("out")), graph)
    assert result.report["removed"] == {"CheckNumerics": 1, "Identity": 1}
    agree(tf, graph, result.graph, ["out:0"], feed(graph))
    turned = graph.subgraph(())
    copies = {node: turned.add_copy(node) for node in reversed(graph.nodes)}
    for node, copy in copies.items():
        copy.inputs = [Output(copies[source], index) for source, index in node.inputs]
    ordered = changed(SortByExecutionOrder(kept=kept("out")), turned).graph
    seen: set[str] = set()
    for node in ordered:
        assert all(source.name in seen for source, _ in node.inputs)
        seen.add(node.name)
    assert seen == {node.name for node in graph}
    unchanged(SortByExecutionOrder(), ordered)


@pytest.mark.tensorflow
def test_shapes_of_inputs(tf: Any) -> None:
    def build(v1: Any) -> Any:
        x = v1.placeholder("float32", name="x")
        v1.add(x, 1.0, name="unused")
        return v1.identity(x * v1.placeholder("float32", [None, 3], name="z"), name="out")

    graph = made(tf, build)
    names = kept("out", fed=("x", "z"))
    result = changed(StripUnusedNodes(shape="2,3", kept=names), graph)
    assert result.report["shapes"] == {"x": "[2,3]"} and "unused" not in result.graph
    named = StripUnusedNodes(
        of=("z",), type_for_name=("float",), shape_for_name=("5,-1",), kept=kept("out", fed=("x", "z"))
    )
    assert changed(named, graph).report["shapes"] == {"z": "[5,3]"}
    for wrong, says in (
        (StripUnusedNodes(of=("zz",)), "no input 'zz'"),
        (StripUnusedNodes(of=("z",), type_for_name=("int32",)), "is float32, not int32"),
        (StripUnusedNodes(of=("z",), shape_for_name=("5,4",)), "has the shape [?,3], not [5,4]"),
    ):
        with pytest.raises(UsageError) as caught:
            wrong.apply(graph)
        assert says in str(caught.value)


@pytest.mark.tensorflow
def test_ranges_frozen(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> Any:
        x = v1.placeholder("float32", [4], name="x")
        big = v1.raw_ops.QuantizeV2(input=x, min_range=-9.0, max_range=9.0, T=v1.qint32)
        least, most = v1.raw_ops.RequantizationRange(input=big[0], input_min=big[1], input_max=big[2], name="range")
        return v1.identity_n([least, most], name="out")

    graph = made(tf, build)
    log = tmp_path / "log.txt"
    rows = [f"I0108 logging_ops.cc:79] ;range__print__;__requant_min_max:[{-i}][{i}.5]" for i in range(40)]
    log.write_text("\n".join(["noise", *rows, ";range__print__;__requant_min_max:[x][y]"]))
    for percent in (5, 20):
        text = f"min_max_log_file={log}, min_percentile={percent}, max_percentile={percent}"
        theirs = transformed(graph, "x", "out", f"freeze_requantization_ranges({text})")
        result = changed(
            FreezeRequantizationRanges(str(log), min_percentile=percent, max_percentile=percent, kept=kept("out")),
            graph,
        )
        want, got = (run_in_tensorflow(tf, each, ["out:0", "out:1"], feed(graph)) for each in (theirs, result.graph))
        np.testing.assert_array_equal(got, want)

    for content, says in (
        ("nothing", "has no lines with ranges"),
        (";out__print__;__requant_min_max:[0][1]", "IdentityN"),
    ):
        log.write_text(content)
        with pytest.raises(UsageError, match=says):
            FreezeRequantizationRanges(str(log), kept=kept("out")).apply(graph)
    with pytest.raises(UsageError, match="cannot read"):
        FreezeRequantizationRanges(str(tmp_path / "none")).apply(graph)


#: transform with parameters -> what stands for the placeholders of its command
COMMANDS: dict[str, tuple[str, dict[str, str]]] = {
    "remove_attribute": ("(attribute_name=_note, op_name=MatMul)", {"[NODES:]ATTRIBUTE": "MatMul:_note"}),
    "remove_control_dependencies": ("", {}),
    "remove_device": ("", {}),
    "rename_attribute": (
        "(old_attribute_name=_note, new_attribute_name=_text, op_name=MatMul)",
        {"[NODES:]OLD=NEW": "MatMul:_note=_text"},
    ),
    "rename_node": ("(old_node_name=MatMul, new_node_name=product)", {"OLD=NEW": "MatMul=product"}),
    "rename_op": ("(old_op_name=Relu, new_op_name=Relu6)", {"OLD=NEW": "Relu=Relu6"}),
    "set_device": ('(device="/device:CPU:0")', {"DEVICE": "/device:CPU:0"}),
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", [name for name, row in TRANSFORMS.items() if row.command])
def test_commands_of_the_table(tf: Any, tmp_path: Path, name: str) -> None:
    """What the table says, run as it stands there, makes the tool's graph."""
    graph = made(tf, network)
    graph.node("MatMul").attrs["_note"] = b"hello"
    graph.node("Identity").device = "/job:worker"
    graph.node("Softmax").control_inputs = [graph.node("w")]
    given, words = COMMANDS[name]
    files = {"IN": str(tmp_path / "in.pb"), "OUT": str(tmp_path / "out.pb")}
    write_model(from_graph(graph), files["IN"])
    line = TRANSFORMS[name].command
    for word, text in {**words, **files}.items():
        assert word in line
        line = line.replace(word, text)
    program, *arguments = shlex.split(line)
    assert program == "graphmill" and run(arguments) == 0
    theirs = transformed(graph, "x", "out", name + given)
    assert structure(read_model(files["OUT"]).graph) == structure(theirs)
