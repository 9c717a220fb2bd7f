"""Compiled code and oneDNN are given no more bytes than there are, whatever a graph says: doors, rules, zones."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compiler.failures.hostile_cases import CASES
from tests.compiler.operations.rows import numbers
from toolkit import client as gm
from toolkit.compiler.backends import cuda
from toolkit.compiler.backends.cpu.elementwise.operations import (
    CompiledLogSoftmax,
    CompiledSum,
    FusedLoopNest,
    Made,
    Member,
    NumpySigmoid,
    NumpySum,
    Read,
    ScalarExpression,
    Store,
    Ufunc,
    Window,
)
from toolkit.compiler.backends.cpu.emission.instance import Span
from toolkit.compiler.backends.cpu.emission.writers import WRITERS, is_emitted
from toolkit.compiler.backends.cpu.loops.iteration import ITERATION_WRITERS
from toolkit.compiler.backends.cpu.networks.operations import Activate, GemmSplit, PackedGemm
from toolkit.compiler.ir import verifier as verify
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.fields import OperandsField, PartsField
from toolkit.compiler.ir.operation import OPERATIONS, Operation
from toolkit.compiler.ir.operations.pools import PoolFunction
from toolkit.compiler.ir.operations.products import (
    Convolution,
    ConvolutionFilterGradient,
    ConvolutionInputGradient,
    ConvolutionWindows,
    MatMul,
)
from toolkit.compiler.ir.operations.reductions import ReduceFunction
from toolkit.compiler.ir.post_ops import Apply, UnaryFunction
from toolkit.compiler.ir.value import Value
from toolkit.errors import InternalError, InvalidArgumentError
from toolkit.formats.models.model import read_graph
from toolkit.kernels.cpu.memory import addresses, guard
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.library import library
from toolkit.kernels.cpu.onednn.primitive import Arg, Primitive, argument_array
from toolkit.runtime.session import Session

ROOT = Path(__file__).resolve().parents[3]
F32 = np.dtype(np.float32)
needs_onednn = pytest.mark.skipif(library() is None, reason="oneDNN is not installed, or switched off")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, str]]:
    """How the cases end; each in a process of its own, forked from one that has nothing but them."""
    command = [sys.executable, "-m", "tests.compiler.failures.hostile_cases"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {found["case"]: found for found in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("case", CASES)
def test_sizes_that_do_not_go_together(case: str, outcomes: dict[str, dict[str, str]]) -> None:
    found = outcomes[case]
    assert not found["compiled"].startswith(("signal", "not ours")), found
    assert found["compiled"] == found["node by node"]


# -- functions and loops -----------------------------------------------------------------------------------------------


def _loop_of_two_types(tmp_path: Path) -> Any:
    """A While over float64 whose body says, and does, that it returns float32."""
    text = """
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_DOUBLE } } }
    node { name: "i" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
    node { name: "while" op: "While" input: "i" input: "x"
      attr { key: "T" value { list { type: DT_INT32 type: DT_DOUBLE } } }
      attr { key: "cond" value { func { name: "less" } } } attr { key: "body" value { func { name: "narrow" } } } }
    node { name: "y" op: "Identity" input: "while:1" attr { key: "T" value { type: DT_DOUBLE } } }
    library {
      function { signature { name: "less"
          input_arg { name: "i" type: DT_INT32 } input_arg { name: "s" type: DT_DOUBLE }
          output_arg { name: "o" type: DT_BOOL } }
        node_def { name: "n" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
          attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 3 } } } }
        node_def { name: "l" op: "Less" input: "i" input: "n:output:0" attr { key: "T" value { type: DT_INT32 } } }
        ret { key: "o" value: "l:z:0" } }
      function { signature { name: "narrow"
          input_arg { name: "i" type: DT_INT32 } input_arg { name: "s" type: DT_DOUBLE }
          output_arg { name: "j" type: DT_INT32 } output_arg { name: "t" type: DT_FLOAT } }
        node_def { name: "n" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
          attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
        node_def { name: "a" op: "AddV2" input: "i" input: "n:output:0" attr { key: "T" value { type: DT_INT32 } } }
        node_def { name: "c" op: "Cast" input: "s"
          attr { key: "SrcT" value { type: DT_DOUBLE } } attr { key: "DstT" value { type: DT_FLOAT } } }
        ret { key: "j" value: "a:z:0" } ret { key: "t" value: "c:y:0" } } }
    """
    path = tmp_path / "narrow.pbtxt"
    path.write_text(text)
    return read_graph(path)


@pytest.mark.parametrize("segments", ["", "strict", "off"])
def test_a_loop_whose_body_returns_another_type(tmp_path: Path, segments: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", segments)
    with Session(_loop_of_two_types(tmp_path)) as running:
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match=r"expects ret\[1\] to be float32 but float64 is provided"):
                running.run("y:0", {"x:0": np.ones((64, 64))})


# -- doors ---------------------------------------------------------------------------------------------------------

#: who may know of addresses: the door itself, the libraries that are loaded, and calls of the C library
_POINTERS = {
    "toolkit/formats/bundle/storage.py", "toolkit/formats/records/highway_native.py",
    "toolkit/kernels/cpu/memory/addresses.py", "toolkit/kernels/cpu/native/compiler.py",
    "toolkit/kernels/cpu/openblas.py",
    "toolkit/kernels/cpu/onednn/library.py", "toolkit/kernels/cpu/onednn/memory.py",
    "toolkit/kernels/cpu/onednn/primitive.py", "toolkit/kernels/random/libm.py",
}  # fmt: skip
#: CUDA's calls take addresses: of arguments and of host memory that is copied. The fake's memory is bytes whose places
#: it checks itself; an array without memory shows where NumPy's views of it begin
_OF_GPUS = {
    "toolkit/kernels/cuda/driver/fake_memory.py", "toolkit/kernels/cuda/driver/real_context.py",
    "toolkit/kernels/cuda/driver/real_function.py", "toolkit/kernels/cuda/libraries/cublaslt.py",
    "toolkit/kernels/gpu/primitives/layout.py", "toolkit/kernels/gpu/state/scatter.py",
}  # fmt: skip
#: rooms that ask the system about a run, and know of no tensor
_SYSTEM = ("toolkit/policy/", "toolkit/limits/")
#: who says how many bytes are touched behind an address
_ADDRESSES = {
    "toolkit/kernels/cpu/memory/addresses.py", "toolkit/kernels/cpu/onednn/memory.py",
    # they call a compiled function at once, with arrays that they have until it returns
    "toolkit/kernels/cpu/native/rows.py", "toolkit/kernels/cpu/native/samplers.py",
    "toolkit/kernels/cpu/native/updates.py",
}  # fmt: skip
_ADDRESS_MAKERS = frozenset({"address", "address_of_view", "elements"})
_TELLING = frozenset({"__array_interface__", "__array_struct__", "ctypes", "from_buffer"})
#: a module without any of these words has nothing to do with addresses and is not parsed
_WORDS = (*_TELLING, "addresses")


def _uses(path: Path) -> set[str]:
    """What a module has to do with addresses."""
    found: set[str] = set()
    text = path.read_text(encoding="utf8")
    if not any(word in text for word in _WORDS):
        return found
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names):
                found |= {"pointers" for alias in names if alias.name.split(".")[0] == "ctypes"}
            case ast.ImportFrom(module, names):
                found |= {"pointers" for _ in names if (module or "").split(".")[0] == "ctypes"}
                if module == "toolkit.kernels.cpu.memory.addresses":
                    found |= {"addresses" for alias in names if alias.name in _ADDRESS_MAKERS}
            case ast.Attribute(attr=name) if name in _TELLING:
                found.add("pointers")
            case ast.Attribute(attr="address" | "address_of_view", value=ast.Name("addresses")):
                found.add("addresses")
            case _:
                pass
    return found


def test_nobody_but_the_doors_makes_pointers() -> None:
    files = {str(path.relative_to(ROOT)): _uses(path) for path in (ROOT / "toolkit").rglob("*.py")}
    # the guard asks where its own buffers are, and is an allocator of NumPy's and a handler of a signal
    guarded = {f"toolkit/kernels/cpu/memory/{name}.py" for name in ("allocator", "faults", "guard", "zones")}
    pointing = {name for name, uses in files.items() if "pointers" in uses and not name.startswith(_SYSTEM)}
    assert pointing <= _POINTERS | _OF_GPUS | guarded
    assert {name for name, uses in files.items() if "addresses" in uses} <= _ADDRESSES


def test_an_address_is_given_for_what_is_there() -> None:
    array = np.zeros(16, np.float32)
    assert addresses.address(array, 64) == addresses.address(array, 0)
    for stop, start in ((65, 0), (64, -4)):
        with pytest.raises(InternalError, match="64 bytes were to be given"):
            addresses.address(array, stop, start)
    with pytest.raises(InternalError, match="gaps"):
        addresses.address(np.zeros((4, 8), np.float32)[:, ::2], 16)
    view = np.zeros((4, 8), np.float32).T
    assert addresses.address_of_view(view, view.nbytes)
    with pytest.raises(InternalError):
        addresses.address_of_view(view[:, :2], view[:, :2].nbytes + 64)
    with pytest.raises(InternalError):
        addresses.address_of_view(view[::-1], 4)


def test_tables_take_what_is_there() -> None:
    table, array = addresses.Table(2), np.zeros(4, np.int64)
    table.point(0, array, 8, offset=24)
    assert table.cells[0] == addresses.address(array, 32) + 24
    with pytest.raises(InternalError):
        table.point(1, array, 16, offset=24)
    pinned = addresses.Pinned(32, [table.slot(1, 8)], [])
    pinned.point(array)
    assert table.cells[1] == addresses.address(array, 32) + 8
    with pytest.raises(InternalError):
        pinned.point(np.zeros(3, np.int64))
    with pytest.raises(InternalError):
        addresses.record(addresses.address(array, 33))
    first = addresses.address(array, 32)
    assert list(addresses.record(5, *addresses.elements(array))) == [5, first, first + 8, first + 16, first + 24]


@needs_onednn
def test_memories_have_the_bytes_of_their_descriptors() -> None:
    desc = memory.dense((4, 4), F32)
    found = memory.Memory(desc, np.zeros(16, np.float32))
    for place in (np.zeros(15, np.float32), np.zeros(16, np.int32)):
        with pytest.raises(InternalError):
            memory.Memory(desc, place)
    with pytest.raises(InternalError):
        found.point_to(np.zeros(15, np.float32))
    part = memory.part(memory.dense((8, 8), F32), (4, 4), (4, 4))
    assert part.size == 8 * 8 * 4
    reorder = Primitive("reorder", desc, *_engine(), memory.dense((4, 4), F32), *_engine(), allow_reference=True)
    small = memory.Memory(memory.dense((2, 4), F32), np.zeros(8, np.float32))
    with pytest.raises(InternalError, match="has 64 bytes, its memory 32"):
        argument_array(reorder, [(Arg.SRC, small), (Arg.DST, found)])


def _engine() -> list[Any]:
    found = library()
    assert found is not None
    return [found.engine]


def test_spans() -> None:
    value = Value(F32, (4, 4))
    assert Span(value, 64).fits() and Span(value, 32, offset=32).fits() and Span(value, 96, 32, offset=-32).fits()
    assert not Span(value, 65).fits() and not Span(value, 40, offset=32).fits() and not Span(value, 64, -4).fits()


# -- rules ---------------------------------------------------------------------------------------------------------


def test_every_kind_that_is_emitted_has_a_rule() -> None:
    emitted = {*WRITERS, *ITERATION_WRITERS}
    for module in pkgutil.iter_modules(cuda.__path__, f"{cuda.__name__}."):
        importlib.import_module(module.name)  # whichever other tests have imported
    of_gpus = {kind for kind in OPERATIONS.values() if kind.__module__.startswith(f"{cuda.__name__}.")}
    ruled = {kind for kind in OPERATIONS.values() if kind.verify is not Operation.verify}
    assert ruled - of_gpus == emitted
    assert of_gpus and of_gpus <= ruled


def _operation(kind: str, given: list[Any], made: list[Any], **attrs: Any) -> Block:
    step: Any = type("Step", (), {"node": type("Node", (), {"name": "it"})()})()
    inputs, outputs = ([Value(F32, shape) for shape in shapes] for shapes in (given, made))
    block, known = Block(), OPERATIONS[kind]
    fields = [field.name for field in known.operand_fields if not isinstance(field, PartsField)]
    is_list = any(isinstance(field, OperandsField) for field in known.operand_fields)
    given_fields = {fields[0]: inputs} if is_list else dict(zip(fields, inputs, strict=True))
    block.append(known(**given_fields, outputs=outputs, steps=[step], **attrs))
    return block


_POOL = {"window": (2, 2), "strides": (2, 2), "padding": ((0, 0), (0, 0))}
_GOOD_AND_BAD: list[tuple[str, list[Any], list[Any], list[Any], dict[str, Any]]] = [
    ("batch_norm_gradient", [(2, 4, 4, 3)] * 2 + [(3,)] * 3, [(1, 4, 4, 3), (2, 4, 4, 3), (3,), (3,), (3,)],
     [(2, 4, 4, 3), (3,), (3,)], {"epsilon": 1e-3}),
    ("pool_gradient", [(1, 4, 4, 3), (1, 2, 2, 3), (1, 2, 2, 3)], [(1, 4, 4, 3), (1, 2, 2, 3), (1, 1, 2, 3)],
     [(1, 4, 4, 3)], _POOL),
    ("tiled_pool_gradient", [(1, 4, 4, 16), (1, 2, 2, 16)], [(1, 4, 4, 16), (1, 1, 2, 16)], [(1, 4, 4, 16)],
     {"window": (2, 2)}),
    ("tiled_pool", [(1, 4, 4, 16)], [(1, 6, 4, 16)], [(1, 2, 2, 16)], {"window": (2, 2)}),
    ("pool", [(1, 4, 4, 3)], [(1, 6, 4, 3)], [(1, 2, 2, 3)], {**_POOL, "function": PoolFunction.MAX}),
    ("pool", [(2, 4, 3, 5)], [(2, 4, 4, 5)], [(2, 5)],
     {"window": (4, 3), "strides": (1, 1), "padding": ((0, 0), (0, 0)), "function": PoolFunction.MEAN}),
    ("softmax", [(4, 4)], [(4, 3)], [(4, 4)], {}),
    ("alias", [(4, 4)], [(4, 3)], [(16,)], {}),
    ("alias", [(20,)], [(19,)], [(4, 4)], {"start": 4}),
    ("concat", [(2, 3), (4, 3)], [(2, 3), (3, 3)], [(6, 3)], {"axis": 0}),
    ("permute", [(2, 3)], [(3, 2)], [(3, 2)], {"axes": (1, 0)}),
    ("flip_filter", [(3, 3, 4, 8)], [(3, 3, 8, 4)], [(3, 3, 8, 4)], {}),
    ("pad", [(2, 3)], [(2, 4)], [(4, 3)], {"padding": ((1, 1), (0, 0))}),
    ("reduce", [(2, 3)], [(3, 3)], [(2, 1)], {"axes": (1,), "function": ReduceFunction.SUM}),
    ("resize", [(1, 4, 4, 3)], [(2, 4, 4, 3)], [(1, 8, 8, 3)], {}),
    ("subsample", [(1, 4, 4, 3)], [(1, 6, 4, 3)], [(1, 2, 2, 3)], {"strides": (2, 2)}),
]  # fmt: skip


@pytest.mark.parametrize("row", _GOOD_AND_BAD, ids=lambda row: row[0])
def test_rules(row: Any) -> None:
    kind, good, bad, made, attrs = row
    verify.verify(_operation(kind, good, made, **attrs), is_emitted)
    with pytest.raises(NotSupportedError):
        verify.verify(_operation(kind, bad, made, **attrs), is_emitted)


def _x(*shape: int) -> Value:
    return Value(F32, shape)


#: an operation of a class over an input that fits, and over one that does not
_CLASSES: dict[str, Callable[[bool], Operation]] = {
    "sum": lambda fits: CompiledSum(input=_x(2, 3, 4 if fits else 5), sizes=(2, 3, 4), outputs=[_x(2, 4)]),
    "log_softmax": lambda fits: CompiledLogSoftmax(input=_x(3, 4 if fits else 5), outputs=[_x(3, 4)]),
    "total": lambda fits: NumpySum(input=_x(2, 3, 4 if fits else 5), axes=(1,), outputs=[_x(2, 4)]),
    "ufunc": lambda fits: Ufunc(
        function="add", arguments=(_x(4 if fits else 3, 1), _x(4, 5)), outputs=[_x(4, 5)]
    ),
    "sigmoid": lambda fits: NumpySigmoid(input=_x(4 if fits else 3), outputs=[_x(4)]),
    "scalar": lambda fits: ScalarExpression(expression="-{}", arguments=(_x(*() if fits else (1,)),), outputs=[_x()]),
    "nest reads": lambda fits: _nest(Window(_x(4 if fits else 3, 1)), Store(Made(0))),
    "nest window": lambda fits: _nest(Window(_x(8), 2 if fits else 0, (1, 0) if fits else None), Store(Made(0))),
    "nest writes": lambda fits: _nest(Window(_x(4, 5)), Store(Made(0), None if fits else Window(_x(4, 6)))),
    "nest members": lambda fits: _nest(Window(_x(4, 5)), Store(Made(0 if fits else 1))),
}  # fmt: skip


def _nest(read: Window, store: Store) -> Operation:
    members = (Member("Neg", (Read(0),), F32),)
    return FusedLoopNest(
        shape=(4, 5), reads=(read,), members=members, stores=(store,), weight=1, outputs=[_x(4, 5)]
    )  # fmt: skip


@pytest.mark.parametrize("name", _CLASSES)
def test_rules_of_classes(name: str) -> None:
    step: Any = type("Step", (), {"node": type("Node", (), {"name": "it"})()})()
    for fits in (True, False):
        operation, block = _CLASSES[name](fits), Block()
        operation.steps = [step]
        block.append(operation)
        if fits:
            verify.verify(block, is_emitted)
        else:
            with pytest.raises(NotSupportedError):
                verify.verify(block, is_emitted)


def _verified(kind: Any, made: Any, **fields: Any) -> None:
    step: Any = type("Step", (), {"node": type("Node", (), {"name": "it"})()})()
    given = {name: Value(F32, shape) if isinstance(shape, tuple) else shape for name, shape in fields.items()}
    block = Block()
    block.append(kind(**given, outputs=[Value(F32, made)], steps=[step]))
    verify.verify(block, is_emitted)


_WINDOWS = ConvolutionWindows((1, 1), (1, 1), ((0, 0), (0, 0)))
_PRODUCTS: list[tuple[Any, Any, dict[str, Any], dict[str, Any]]] = [
    (MatMul, (4, 6), {"left": (4, 5), "right": (5, 6)}, {"right": (4, 6)}),
    (MatMul, (4, 6), {"left": (4, 5), "weights": np.zeros((5, 6))}, {"bias": np.zeros(5)}),
    (MatMul, (4, 2), {"left": (4, 5), "right": (5, 6), "first_column": 4}, {"first_column": 5}),
    (Convolution, (1, 6, 6, 5), {"input": (1, 8, 8, 3), "filter": (3, 3, 3, 5), "windows": _WINDOWS},
     {"input": (1, 8, 8, 4)}),
    (Convolution, (1, 8, 8, 5), {"input": (1, 8, 8, 3), "weights": np.zeros((1, 1, 3, 5)), "windows": _WINDOWS},
     {"gates": (4,)}),
    (ConvolutionInputGradient, (1, 8, 8, 3),
     {"output_gradient": (1, 6, 6, 5), "filter": (3, 3, 3, 5), "windows": _WINDOWS}, {"output_gradient": (1, 6, 5, 5)}),
    (ConvolutionFilterGradient, (3, 3, 3, 5),
     {"input": (1, 8, 8, 3), "output_gradient": (1, 6, 6, 5), "windows": _WINDOWS}, {"input": (1, 8, 8, 4)}),
    (PackedGemm, (1, 8, 8, 5),
     {"input": (1, 8, 8, 3), "weights": np.zeros((3, 5)), "split": GemmSplit(8, 2, (), 0.0)}, {"input": (1, 8, 7, 3)}),
    (Activate, (4, 4), {"input": (4, 4), "post_op": Apply(UnaryFunction.SWISH, 1.0)}, {"input": (4, 3)}),
]  # fmt: skip


@pytest.mark.parametrize("row", _PRODUCTS, ids=lambda row: row[0].mnemonic)
def test_rules_of_products(row: Any) -> None:
    kind, made, good, bad = row
    _verified(kind, made, **good)
    with pytest.raises(NotSupportedError):
        _verified(kind, made, **{**good, **bad})


def test_a_tensor_that_cannot_be_had() -> None:
    shape = (1 << 31, 1 << 31)
    with pytest.raises(NotSupportedError, match="cannot be had"):
        verify.verify(_operation("softmax", [shape], [shape]), is_emitted)


# -- zones ---------------------------------------------------------------------------------------------------------


def test_the_guard_names_the_node_and_the_buffer(monkeypatch: Any) -> None:
    monkeypatch.setenv(guard.VARIABLE, "on")
    buffer = addresses.aligned(64, "something")
    assert not np.isfinite(buffer.view(np.float32)).any()  # what nobody wrote shows
    guard.check("fine")
    whole: Any = buffer.base
    start = addresses.offset_in(buffer, whole)
    for at, where in ((start + 64, "the first 64 bytes from its start"), (start - 1, "the first -1 bytes")):
        whole[at] = 0
        with pytest.raises(InternalError, match=f"node 'it': 1 bytes outside something were written, {where}"):
            guard.check("it")
        guard.check("reported once")


def test_the_guard_looks_at_plans(monkeypatch: Any) -> None:
    monkeypatch.setenv(guard.VARIABLE, "on")
    looked: list[str] = []
    check = guard.check

    def look(node: str) -> None:
        looked.append(node)
        check(node)

    monkeypatch.setattr(guard, "check", look)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [64, 64], name="x")
        gm.ops.tanh(gm.ops.mat_mul(x, x) * 2.0, name="y")
    with Session(graph) as running:
        running.run("y:0", {"x:0": numbers(64, 64)})
    assert looked


def test_off_there_are_no_zones(monkeypatch: Any) -> None:
    monkeypatch.delenv(guard.VARIABLE, raising=False)
    buffer: Any = addresses.aligned(64)
    assert buffer.base.nbytes == 64 + addresses.ALIGNMENT
