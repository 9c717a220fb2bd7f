"""The op registry data are what TensorFlow registers."""

from __future__ import annotations

import itertools
import json
import lzma
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import export_ops, kernel_def_pb2, op_def_pb2, types_pb2

# Ops that only a TensorFlow built with CUDA registers.
CUDA_ONLY = {"_CopyFromGpuToHost", "_CopyFromHostToGpu"}


@pytest.fixture(scope="module")
def ops() -> dict[str, op_def_pb2.OpDef]:
    data = op_def_pb2.OpList.FromString(lzma.decompress(export_ops.OPS.read_bytes()))
    assert [op.name for op in data.op] == sorted({op.name for op in data.op})
    return {op.name: op for op in data.op}


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    return json.loads(lzma.decompress(export_ops.FACTS.read_bytes()))


def test_the_list_is_whole(ops: dict[str, op_def_pb2.OpDef], facts: dict[str, Any]) -> None:
    assert len(ops) >= 1900
    assert list(facts["ops"]) == list(ops)
    needed = """Placeholder Const Identity NoOp MatMul Conv2D Switch RefSwitch Merge RefMerge Enter RefEnter Exit
        RefExit NextIteration RefNextIteration LoopCond ControlTrigger Abort While StatelessIf PartitionedCall Variable
        VariableV2 Assign AssignAdd ScatterSub VarHandleOp ReadVariableOp FIFOQueue FIFOQueueV2 QueueEnqueueV2 StackV2
        RandomShuffleQueueV2 TensorArrayV3 SaveV2 RestoreV2 _Send _Recv _HostSend _HostRecv _Arg _Retval"""
    assert set(needed.split()) <= ops.keys()


def test_descriptions_are_left_out(ops: dict[str, op_def_pb2.OpDef]) -> None:
    for op in ops.values():
        assert not op.summary and not op.description
        assert not any(part.description for part in (*op.input_arg, *op.output_arg, *op.attr))


def test_every_argument_names_attributes_of_its_op(ops: dict[str, op_def_pb2.OpDef]) -> None:
    for op in ops.values():
        types = {attr.name: attr.type for attr in op.attr}
        for arg in (*op.input_arg, *op.output_arg):
            assert bool(arg.type) + bool(arg.type_attr) + bool(arg.type_list_attr) == 1, (op.name, arg.name)
            assert not arg.type_attr or types[arg.type_attr] == "type"
            assert not arg.number_attr or types[arg.number_attr] == "int"
            assert not arg.type_list_attr or types[arg.type_list_attr] == "list(type)"


def test_facts_speak_of_what_the_op_has(ops: dict[str, op_def_pb2.OpDef], facts: dict[str, Any]) -> None:
    dtypes = set(types_pb2.DataType.keys())
    for name, fact in facts["ops"].items():
        assert fact.keys() <= {"gradient", "kernels"}
        assert fact.get("gradient", "none") in ("none", "function")
        types = {attr.name: attr.type for attr in ops[name].attr}
        assert fact.get("kernels", {}).keys() <= set(export_ops.DEVICES)
        for kernel in itertools.chain.from_iterable(fact.get("kernels", {}).values()):
            assert kernel.keys() <= {"where", "host_memory", "priority"}
            for attr, values in kernel.get("where", {}).items():
                assert values, (name, attr)
                if types.get(attr) in ("type", "list(type)"):
                    assert set(values) <= dtypes, (name, attr)


def test_some_facts(facts: dict[str, Any]) -> None:
    assert facts["tensorflow"] == "2.21.0"
    assert facts["graph_def_version"] == 2474
    ops = facts["ops"]
    assert ops["MatMul"]["gradient"] == "function"
    assert ops["Shape"]["gradient"] == "none"
    assert "gradient" not in ops["Assign"] or ops["Assign"]["gradient"] == "none"
    (conv,) = ops["Conv2D"]["kernels"]["CPU"]
    assert conv == {"where": {"T": ["DT_FLOAT", "DT_DOUBLE", "DT_INT32", "DT_BFLOAT16", "DT_HALF"]}}
    assert any(kernel.get("host_memory") == ["shape"] for kernel in ops["Reshape"]["kernels"]["GPU"])


@pytest.mark.tensorflow
def test_the_list_equals_tensorflows(ops: dict[str, op_def_pb2.OpDef]) -> None:
    import tensorflow as tf

    theirs = {op.name: op for op in export_ops.op_list().op}
    assert ops.keys() - theirs.keys() == (set() if tf.test.is_built_with_cuda() else CUDA_ONLY)
    assert theirs.keys() <= ops.keys()
    assert [name for name, op in theirs.items() if op != ops[name]] == []


@pytest.mark.tensorflow
def test_the_facts_equal_tensorflows(facts: dict[str, Any]) -> None:
    import tensorflow as tf

    names = [name for name in facts["ops"] if tf.test.is_built_with_cuda() or name not in CUDA_ONLY]
    theirs = export_ops.op_facts(names)["ops"]
    ours = {name: facts["ops"][name] for name in names}
    if not tf.test.is_built_with_cuda():
        theirs, ours = (
            {
                name: {"gradient": fact.get("gradient"), "CPU": fact.get("kernels", {}).get("CPU")}
                for name, fact in all_facts.items()
            }
            for all_facts in (theirs, ours)
        )
    assert [name for name in names if theirs[name] != ours[name]] == []


def kernel_def(host: tuple[str, ...] = (), priority: int = 0, **where: str) -> kernel_def_pb2.KernelDef:
    """Return a kernel as TensorFlow gives it: one value for each attribute."""
    kernel = kernel_def_pb2.KernelDef(op="Op", device_type="CPU", host_memory_arg=host, priority=priority)
    for attr, value in where.items():
        kernel.constraint.add(name=attr).allowed_values.list.type.append(types_pb2.DataType.Value(value))
    return kernel


def joined(*kernels: kernel_def_pb2.KernelDef) -> list[dict[str, Any]]:
    return [export_ops._as_json(row) for row in export_ops._join([export_ops._row(kernel) for kernel in kernels])]


def test_kernels_that_differ_in_one_attribute_are_joined() -> None:
    pairs = [(t, i) for t in ("DT_DOUBLE", "DT_FLOAT") for i in ("DT_INT64", "DT_INT32")]
    assert joined(*(kernel_def(T=t, I=i) for t, i in pairs)) == [
        {"where": {"I": ["DT_INT32", "DT_INT64"], "T": ["DT_FLOAT", "DT_DOUBLE"]}}
    ]
    assert len(joined(*(kernel_def(T=t, I=i) for t, i in pairs[1:]))) == 2
    assert len(joined(kernel_def(T="DT_FLOAT"), kernel_def())) == 2
    assert len(joined(kernel_def(T="DT_FLOAT"), kernel_def(T="DT_DOUBLE", host=("x",)))) == 2
    assert len(joined(kernel_def(T="DT_FLOAT"), kernel_def(T="DT_DOUBLE", priority=2))) == 2
    assert joined(kernel_def(), kernel_def()) == [{}]


@given(
    st.sets(
        st.tuples(
            st.sampled_from([(), ("x",)]), *[st.sampled_from(["", "DT_FLOAT", "DT_DOUBLE", "DT_HALF"]) for _ in "ABC"]
        )
    )
)
def test_joined_kernels_stand_for_the_same_kernels(kernels: set[tuple]) -> None:
    given_ = [(host, {k: v for k, v in zip("ABC", types, strict=True) if v}) for host, *types in kernels]
    expanded = [
        (tuple(kernel.get("host_memory", ())), dict(zip(kernel.get("where", {}), values, strict=True)))
        for kernel in joined(*(kernel_def(host, **where) for host, where in given_))
        for values in itertools.product(*kernel.get("where", {}).values())
    ]
    assert sorted(expanded, key=repr) == sorted(given_, key=repr)
