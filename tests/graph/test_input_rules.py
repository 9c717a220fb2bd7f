"""What ops ask of their inputs and attributes: kept and broken, here and in TensorFlow; all commands say the same."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests.graph.shape_outcomes import ours, theirs
from toolkit import Session
from toolkit.errors import GraphError, InvalidArgumentError
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes, input_rules, opdefs
from toolkit.graph.consistency import require_consistent
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape

ROOT = Path(__file__).parents[2]
F, I = dtypes.float32, dtypes.int32


def constant(graph: Graph, name: str, value: Any) -> Node:
    array = np.asarray(value, np.float32 if np.asarray(value).dtype.kind == "f" else np.int32)
    dtype = dtypes.from_numpy(array.dtype)
    return graph.add("Const", name, attrs={"dtype": dtype, "value": from_array(array, dtype)})


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def of_constants(op: str, *values: Any, **attrs: Any) -> Callable[[Graph], Node]:
    def make(graph: Graph) -> Node:
        return graph.add(op, "node", [constant(graph, f"in{i}", v) for i, v in enumerate(values)], attrs=attrs)

    return make


def adam(rows: int, **attrs: Any) -> Callable[[Graph], Node]:
    """An update of a variable of two rows whose slots have so many."""

    def make(graph: Graph) -> Node:
        handles = [
            graph.add("VarHandleOp", name, attrs={"dtype": F, "shape": Shape([n]), "shared_name": name.encode()})
            for name, n in (("var", 2), ("m", rows), ("v", 2))
        ]
        numbers = [constant(graph, f"in{i}", 0.5) for i in range(6)]
        return graph.add("ResourceApplyAdam", "node", [*handles, *numbers, constant(graph, "g", zeros(2))], attrs=attrs)

    return make


def scattered(dtype: Any) -> Callable[[Graph], Node]:
    """A float32 variable, scattered to as if it were of a type."""

    def make(graph: Graph) -> Node:
        handle = graph.add("VarHandleOp", "var", attrs={"dtype": F, "shape": Shape([4])})
        updates = graph.add("Const", "u", attrs={"dtype": dtype, "value": from_array(np.zeros(1, dtype.numpy), dtype)})
        inputs = [handle, constant(graph, "i", [0]), updates]
        return graph.add("ResourceScatterAdd", "node", inputs, attrs={"dtype": dtype, "Tindices": I})

    return make


BOXES = {"iou_threshold": 0.5}
STEPS = {"T": F, "padding": b"SAME"}
#: (kind of rule, a node that keeps it, one that breaks it, what is said)
RULES: list[tuple[str, Callable[[Graph], Node], Callable[[Graph], Node], str]] = [
    (
        "rank",
        of_constants("HistogramFixedWidth", zeros(4), [0.0, 1.0], 5, T=F),
        of_constants("HistogramFixedWidth", zeros(4), [[0.0, 1.0]], 5, T=F),
        "input 1, 'value_range', must have shape [2]; it has shape [1,2]",
    ),
    (
        "size",
        of_constants("NonMaxSuppression", zeros(3, 4), zeros(3), 2, **BOXES),
        of_constants("NonMaxSuppression", zeros(3, 5), zeros(3), 2, **BOXES),
        "input 0, 'boxes', must have shape [?,4]; it has shape [3,5]",
    ),
    (
        "equal sizes",
        of_constants("NonMaxSuppression", zeros(3, 4), zeros(3), 2, **BOXES),
        of_constants("NonMaxSuppression", zeros(3, 4), zeros(2), 2, **BOXES),
        "sizes along axes 0 of 'boxes', 0 of 'scores' must be equal; they are 3 and 2",
    ),
    ("one shape", adam(2, T=F), adam(3, T=F), "'var', 'm', 'v' must have the same shape; they have [2] and [3]"),
    (
        "type",
        scattered(F),
        scattered(dtypes.float64),
        "the variable is of type float32; attribute 'dtype' says float64",
    ),
    (
        "channels",
        of_constants("QuantizeAndDequantizeV2", zeros(4, 3), zeros(3), zeros(3), T=F, axis=1),
        of_constants("QuantizeAndDequantizeV2", zeros(4, 3), zeros(4), zeros(4), T=F, axis=1),
        "channels and the length of their ranges must be equal; they are 3 and 4",
    ),
    (
        "range of a number",
        of_constants("ApproxTopK", zeros(4), T=F, k=2, recall_target=0.5),
        of_constants("ApproxTopK", zeros(4), T=F, k=2, recall_target=2.0),
        "recall_target must lie in [0, 1]; it is 2.0",
    ),
    (
        "scalar",
        of_constants("TopKV2", zeros(4), 2, T=F),
        of_constants("TopKV2", zeros(4), [2], T=F),
        "input 1, 'k', must be a scalar; it has shape [1]",
    ),
    (
        "least",
        of_constants("TopKV2", zeros(4), 2, T=F),
        of_constants("TopKV2", zeros(4), -1, T=F),
        "input 1, 'k', must not be less than 0; it is -1",
    ),
    (
        "int32",
        of_constants("Conv2D", zeros(1, 4, 4, 1), zeros(1, 1, 1, 1), strides=[1, 1, 1, 1], **STEPS),
        of_constants("Conv2D", zeros(1, 4, 4, 1), zeros(1, 1, 1, 1), strides=[1, 1 << 40, 1, 1], **STEPS),
        "attribute 'strides' is 1099511627776, out of range for an int32",
    ),
    (
        "attribute",
        of_constants("AvgPool", zeros(1, 4, 4, 1), ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], **STEPS),
        of_constants("AvgPool", zeros(1, 4, 4, 1), ksize=[1, 2, 2], strides=[1, 1, 1, 1], **STEPS),
        "attribute 'ksize' of AvgPool must have at least 4 element(s); it has 3",
    ),
]
IDS = [kind for kind, *_ in RULES]


def model(make: Callable[[Graph], Node]) -> bytes:
    graph = Graph()
    make(graph)
    return graph.to_proto().SerializeToString()


@pytest.mark.parametrize(("kind", "good", "bad", "said"), RULES, ids=IDS)
def test_a_rule_is_told_before_anything_runs(
    kind: str, good: Callable[[Graph], Node], bad: Callable[[Graph], Node], said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The same words, and the exit code of a file's fault, in every executor and in `validate`."""
    monkeypatch.chdir(tmp_path)
    assert ours(model(good)).shapes is not None, kind
    Path("bad.pb").write_bytes(model(bad))
    for segments, options in (("on", ()), ("off", ()), ("off", ("--tokens",))):
        monkeypatch.setenv("GRAPHMILL_SEGMENTS", segments)
        assert run(["run", "bad.pb", "--target", "node", *options]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("graphmill: error: ") and "node 'node': " in line and said in line
    assert run(["validate", "bad.pb"]) == 1
    assert said in " ".join(capsys.readouterr().out.split())
    graph = Graph()
    node = bad(graph)
    with Session(graph) as session, pytest.raises(InvalidArgumentError) as caught:
        session.run(node)
    assert isinstance(caught.value, GraphError) and caught.value.status == "INVALID_ARGUMENT"


@pytest.mark.tensorflow
@pytest.mark.parametrize(("kind", "good", "bad", "said"), RULES, ids=IDS)
def test_the_rule_is_tensorflows(
    kind: str, good: Callable[[Graph], Node], bad: Callable[[Graph], Node], said: str, tf: Any
) -> None:
    assert theirs(tf, model(good)).shapes is not None, (kind, said)
    assert theirs(tf, model(bad)).shapes is None, (kind, said)


def test_what_goes_around_in_a_loop_has_no_shape() -> None:
    """A body that would fail is not refused: the loop may have no iteration."""
    graph = Graph()
    attrs = {"T": F, "frame_name": b"loop"}
    enter = graph.add("Enter", "enter", [constant(graph, "x", zeros(2, 3))], attrs=attrs)
    weights = graph.add("Enter", "weights", [constant(graph, "w", zeros(7, 3))], attrs=attrs | {"is_constant": True})
    never = graph.add("Const", "no", attrs={"dtype": dtypes.bool_, "value": from_array(np.array(False), dtypes.bool_)})
    merge = graph.add("Merge", "merge", [enter, enter], attrs={"T": F, "N": 2})
    entered = graph.add(
        "Enter", "never", [never], attrs={"T": dtypes.bool_, "frame_name": b"loop", "is_constant": True}
    )
    switch = graph.add("Switch", "switch", [merge, graph.add("LoopCond", "cond", [entered])], attrs={"T": F})
    body = graph.add("MatMul", "body", [switch.output(1), weights], attrs={"T": F})
    merge.inputs[1] = graph.add("NextIteration", "next", [body], attrs={"T": F}).output()
    leave = graph.add("Exit", "exit", [switch.output(0)], attrs={"T": F})
    with Session(graph) as session:
        assert session.run(leave.output()).shape == (2, 3)


def test_what_is_fed_is_not_known_before() -> None:
    """A constant in whose place a value is fed breaks no rule."""
    graph = Graph()
    node = of_constants("TopKV2", zeros(4), -1, T=F)(graph)
    with Session(graph) as session:
        assert session.run(node.output(0), {"in1:0": np.int32(2)}).shape == (2,)


def test_every_rule_is_about_something_that_is_there() -> None:
    assert len(input_rules.ops()) > 500
    for op in input_rules.ops():
        definition = opdefs.get(op)
        names = {arg.name for arg in definition.inputs} | set(definition.attrs)
        for field in input_rules.fields(op):
            kind, _, text = field.partition(":")
            told = re.findall(r"[a-z_]\w*", text, re.IGNORECASE) if kind.startswith("@") else [kind]
            assert told and names.issuperset(told), (op, field)


# -- beside TensorFlow -----------------------------------------------------------------------------------


def ask(*args: str) -> list[str]:
    """The lines that the script prints in a process of its own, for it forks children."""
    done = subprocess.run([sys.executable, *args], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def asked_again(ops: list[str]) -> None:
    told = dict(line.split(" ", 1) for line in ask("-m", "schemas.export_input_rules", *ops))
    assert told == {op: " ".join(input_rules.fields(op)) for op in ops}


@pytest.mark.tensorflow
def test_the_table_says_what_tensorflow_says(tf: Any) -> None:
    asked_again(random.Random(15).sample(input_rules.ops(), 12))


@pytest.mark.tensorflow
@pytest.mark.long
def test_the_whole_table(tf: Any) -> None:
    asked_again(input_rules.ops())


#: ops that TensorFlow judges before a run otherwise than we do, and why
DIFFERENT: dict[str, str] = {
    "AvgPool3D": "TensorFlow counts windows with strides that are not positive, and along channels; no kernel does",
    "Dilation2D": "TensorFlow takes rates that are not positive; no kernel does",
    "FractionalAvgPool": "TensorFlow says one element less for the pooling sequences than the kernel makes",
    "FractionalMaxPool": "TensorFlow says one element less for the pooling sequences than the kernel makes",
    "FusedBatchNormGrad": "TensorFlow says that what is reserved is empty; without training the kernel fills it",
    "FusedBatchNormGradV2": "as FusedBatchNormGrad",
    "FusedBatchNormGradV3": "as FusedBatchNormGrad",
    "MaxPool3D": "as AvgPool3D",
    "SparseSlice": "TensorFlow multiplies out the number of values",
    "OneHot": "TensorFlow does not look at axes beyond the rank before the run",
}


#: ops some of whose rules only their kernels look at: what they accept before a run may be refused in it
UNTIL_IT_RUNS = {
    "Conv", "Conv2DBackpropInput", "DenseCountSparseOutput", "EncodeProto", "Fingerprint", "FractionalAvgPoolGrad",
    "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "MatrixSetDiagV2", "MatrixSetDiagV3",
    "MaxPoolGradGradV2", "ParseExampleV2", "ParseSequenceExample", "ParseSingleExample", "ParseSingleSequenceExample",
    "PartitionedCall", "QuantizedConv2D", "RaggedTensorFromVariant", "RaggedTensorToTensor",
    "RaggedTensorToVariant", "RestoreSlice", "SparseMatrixSparseCholesky", "SparseReduceMax", "SparseReduceMaxSparse",
    "SparseReduceSum", "SparseReduceSumSparse", "StatefulPartitionedCall", "TensorListConcatV2", "TensorListGather",
    "TensorListGetItem", "TensorListPopBack", "TensorListSetItem", "TensorListStack", "UniformQuantizedConvolution",
    "UniformQuantizedConvolutionHybrid",
}  # fmt: skip


def compared(seed: int, count: int) -> None:
    """Hostile single ops: refused here where they are refused in TensorFlow, with shapes that agree where not."""
    lines = ask("-m", "tests.graph.shape_differences", "--seed", str(seed), "--count", str(count))
    found = [line for line in lines[:-1] if not _is_known(*line.split()[:2])]
    assert not found, "\n".join(found)
    assert lines[-1].startswith(f"{count} cases")


def _is_known(kind: str, op: str) -> bool:
    return op in DIFFERENT or (kind == "accepted" and op in UNTIL_IT_RUNS)


@pytest.mark.tensorflow
def test_hostile_ops_are_refused_where_tensorflow_refuses_them(tf: Any) -> None:
    compared(15, 400)


@pytest.mark.tensorflow
@pytest.mark.long
def test_many_hostile_ops(tf: Any) -> None:
    compared(random.randrange(1 << 30), 20_000)


def test_what_attributes_say_is_in_no_table() -> None:
    assert "EnsureShape" not in input_rules.ops()
    graph = Graph()
    image = graph.add("Placeholder", "image", attrs={"dtype": F, "shape": Shape([None, 8, 8, 3])})
    graph.add("EnsureShape", "node", [image], attrs={"T": F, "shape": Shape([None, 8, 8, 3])})
    require_consistent(graph)
