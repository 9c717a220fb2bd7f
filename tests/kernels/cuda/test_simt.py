"""The kernel IR: what the SIMT machine computes and refuses, and that LLVM and ptxas take what is written."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.errors import InternalError
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.operations import OPERATORS
from toolkit.kernels.cuda.simt import machine, ptx
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.cuda.simt.memory import KernelFaultError

pytest.importorskip("llvmlite")
CAPABILITIES = [(8, 0), (9, 0), (10, 0)]


def _row_sums(is_wrong: str = "") -> SimtKernel:
    """Sums of rows: a block a row, a tree in shared memory and then in the warp."""
    k = KernelBuilder("row_sums", block=64)
    x, y = k.buffer("x", "float"), k.buffer("y", "float", written=True)
    columns = k.scalar("columns", "i32")
    shared = k.shared("partial", "float", 64)
    total = k.variable(k.number(0.0, "float"))
    row = k.mul(k.block_index, columns)
    with k.loop(k.thread, columns, k.number(64, "i32")) as j:
        total.set(k.add(total.get(), k.load(x, k.add(row, j))))
    k.store(shared, k.thread, total.get())
    if is_wrong != "race":
        k.barrier()
    with k.when(k.compare("slt", k.thread, k.number(32, "i32"))):
        if is_wrong == "barrier":
            k.barrier()
        both = k.add(k.load(shared, k.thread), k.load(shared, k.add(k.thread, k.number(32, "i32"))))
        for step in (16, 8, 4, 2, 1):
            both = k.add(both, k.shuffle("xor", both, step))
        with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
            k.store(y, k.block_index, both)
    return k.finish()


def test_sums_by_shared_memory_and_shuffles() -> None:
    x = np.arange(7 * 100, dtype=np.float32).reshape(7, 100)
    y = np.zeros(7, np.float32)
    found = machine.run(_row_sums(), 7, [x.ravel(), y, 100])
    np.testing.assert_array_equal(y, x.sum(1))
    assert found.loaded == x.nbytes and found.stored == y.nbytes


@pytest.mark.parametrize(("wrong", "message"), [("race", "a race: element"), ("barrier", "a barrier is reached by")])
def test_mistakes_between_threads_are_found(wrong: str, message: str) -> None:
    with pytest.raises(KernelFaultError, match=f"kernel row_sums: {message}"):
        machine.run(_row_sums(wrong), 2, [np.ones(128, np.float32), np.zeros(2, np.float32), 64])


def test_elements_out_of_bounds_are_found() -> None:
    with pytest.raises(KernelFaultError, match="element 128 of x, which has 128"):
        machine.run(_row_sums(), 3, [np.ones(128, np.float32), np.zeros(3, np.float32), 64])


def test_two_blocks_that_write_one_element_race() -> None:
    k = KernelBuilder("both", block=32)
    y = k.buffer("y", "i32", written=True)
    with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
        k.store(y, k.number(0, "i32"), k.block_index)
    with pytest.raises(KernelFaultError, match="written by"):
        machine.run(k.finish(), 2, [np.zeros(1, np.int32)])


def test_shared_memory_that_nobody_wrote_is_not_read() -> None:
    k = KernelBuilder("unwritten", block=32)
    y, s = k.buffer("y", "i32", written=True), k.shared("s", "i32", 32)
    k.store(y, k.thread, k.load(s, k.thread))
    with pytest.raises(KernelFaultError, match="never written"):
        machine.run(k.finish(), 1, [np.zeros(32, np.int32)])


def test_atomic_operations() -> None:
    k = KernelBuilder("histogram", block=64)
    x, y, old = k.buffer("x", "i32"), k.buffer("y", "i32", written=True), k.buffer("old", "i32", written=True)
    i = k.global_thread()
    k.store(old, i, k.atomic("add", y, k.load(x, i), k.number(1, "i32")))
    x_, y_, old_ = np.arange(256, dtype=np.int32) % 5, np.zeros(5, np.int32), np.zeros(256, np.int32)
    machine.run(k.finish(), 4, [x_, y_, old_])
    np.testing.assert_array_equal(y_, np.bincount(x_))
    for digit in range(5):
        np.testing.assert_array_equal(np.sort(old_[x_ == digit]), np.arange(y_[digit]))


def _everything() -> SimtKernel:
    """Each kind of instruction once."""
    k = KernelBuilder("everything", block=128)
    buffers = {type: k.buffer(f"b_{type}", type, written=True) for type in
               ("i8", "i16", "i32", "i64", "half", "bfloat", "float", "double")}  # fmt: skip
    n, scale = k.scalar("n", "i64"), k.scalar("scale", "double")
    table, own = k.shared("table", "double", 128), k.local("own", "float", 4)
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, n)):
        for type, buffer in buffers.items():
            value = k.convert(k.load(buffer, i), "double")
            small = k.convert(k.mul(value, k.convert(scale, "double")), "float")
            k.store(own, k.number(1, "i32"), functions.tanh(k, small))
            k.store(buffer, i, k.convert(k.load(own, k.number(1, "i32")), type))
        k.store(table, k.thread, k.convert(k.load(buffers["i64"], i), "double"))
    with k.otherwise():
        k.store(table, k.thread, k.number(0.5, "double"))
    k.barrier()
    other = k.load(table, k.binary("xor", k.thread, k.number(64, "i32")))
    for mode in ("xor", "down", "up", "index"):
        other = k.add(other, k.shuffle(mode, other, 3))
    half = k.shuffle("down", k.convert(other, "half"), 1)
    bits = k.cast("bitcast", k.convert(half, "float"), "i32")
    count = k.variable(bits)
    with k.while_(lambda: k.compare("sgt", count.get(), k.number(3, "i32"))):
        count.set(k.binary("lshr", count.get(), k.number(1, "i32")))
    with k.when(k.compare("slt", i, n)):
        k.atomic("max", buffers["i32"], i, count.get())
        k.atomic("fadd", buffers["float"], i, k.convert(other, "float"))
        k.compare_exchange(buffers["i64"], i, k.number(0, "i64"), k.number(7, "i64"))
    return k.finish()


def test_everything_runs_on_the_machine() -> None:
    from toolkit.kernels.cuda.simt.arithmetic import DTYPES

    arrays = [np.ones(300, DTYPES[type]) for type in ("i8", "i16", "i32", "i64", "half", "bfloat", "float", "double")]
    machine.run(_everything(), 3, [*arrays, 300, 2.0])
    assert np.isfinite(arrays[6]).all()


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_ptxas_takes_what_is_written(capability: tuple[int, int]) -> None:
    from tests.kernels.cuda.assembler import assembled

    for kernel in (_everything(), _row_sums()):
        text = ptx.write(kernel, capability)
        assert f".entry {ptx.function_name(kernel)}" in text and f".target sm_{capability[0]}{capability[1]}" in text
        assert assembled(text, capability).spills == 0


@pytest.mark.parametrize("op", [op for op, row in OPERATORS.items() if not row.attributes and "float32" in row.types])
def test_elementwise_ops_are_written_by_the_writers_of_the_cpu(op: str) -> None:
    """The same arithmetic in the same order: only `fmuladd` may round elsewhere."""
    import inspect

    from toolkit.kernels.cpu.native.compiler import compiler

    assert compiler() is not None
    row = OPERATORS[op]
    count = max(1, len(inspect.signature(row.write).parameters) - 1)
    rng = np.random.default_rng(3)
    given = [rng.normal(size=64).astype(np.float32) for _ in range(count)]
    k = KernelBuilder(op, block=64)
    inputs = [k.buffer(f"x{i}", "float") for i in range(count)]
    values = [k.load(x, k.thread) for x in inputs]
    if op in ("Select", "SelectV2"):
        values[0] = k.compare("ogt", values[0], k.number(0.0, "float"))
    made = row.write(k, *values)
    y = k.buffer("y", "float", written=True)
    k.store(y, k.thread, k.convert(made, "float"))
    out = np.zeros(64, np.float32)
    machine.run(k.finish(), 1, [*given, out])
    assert not np.isnan(out[given[0] > 0]).any()


def test_a_builder_refuses_what_makes_no_sense() -> None:
    k = KernelBuilder("wrong", block=32)
    x = k.buffer("x", "float")
    with pytest.raises(InternalError, match="two things called x"):
        k.buffer("x", "float")
    with pytest.raises(InternalError, match="is not written"):
        k.store(x, k.thread, k.number(1.0, "float"))
    with pytest.raises(InternalError, match="fadd of a float and a double"):
        k.add(k.number(1.0, "float"), k.number(1.0, "double"))
    with pytest.raises(InternalError, match="behind no 'when'"), k.otherwise():
        pass
    with pytest.raises(InternalError, match="a multiple of 32"):
        KernelBuilder("odd", block=33)
