"""The op suite: one row a case, every case against TensorFlow's own result in the same run.

A test module holds a table and one test:

    CASES = [
        Case("AddV2", [f32(2, 3), f32(3)]),
        Case("Sum", [f32(2, 3), np.int32([5])], error="INVALID_ARGUMENT"),
        *table("Neg", dtypes=FLOATS, shapes=[(), (0,), (2, 3)]),
    ]

    @suite(CASES)
    def test_math(case: Case, device: str, tf: ModuleType) -> None:
        check(case, device)

A case runs on the CPU beside TensorFlow; other devices run it beside the CPU (`tests.kernels.beside_cpu`). Inputs are
arrays; a list or tuple of arrays stands for a sequence argument (`values` of ConcatV2); Python numbers take the type
that the argument has.
Attributes that follow from the inputs (T, N, Tidx, ...) are filled in. Values, dtypes, shapes and the places of
NaN and infinity must agree; a case with `error` must fail with that canonical status in both.
"""

from __future__ import annotations

import itertools
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.kernels import audit, op_bounds
from tests.kernels.step import FakeStep
from tests.patience import HUNG
from toolkit.errors import BY_CODE, GraphmillError, OpError
from toolkit.graph import dtypes, opdefs
from toolkit.graph.attrs import FuncRef
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import PRODUCER, Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.kernels import device_types, registry
from toolkit.kernels.context import RefVariable
from toolkit.kernels.facts import input_in_host_memory
from toolkit.policy.access import Access
from toolkit.policy.rules import Policy
from toolkit.target.target import Target

#: what kernels are made for; this processor by default
processor: Target | None = None
#: `error=SAME`: whatever TensorFlow does, the same status or the same values. For generated cases.
SAME = "SAME"


@dataclass(frozen=True, eq=False)
class Case:
    """One row.

    Attributes:
        op: the op's name.
        inputs: one entry per argument of the OpDef.
        attrs: attributes as Python values; types may be names ("float32"), shapes tuples or None.
        levels: how far numbers may be apart that stand for levels or counts; say why beside the row. All other floats
            are held to `op_bounds`.
        exact: floats are equal, bit for bit.
        error: the canonical status both must fail with, or SAME.
        id: shown by pytest; made from op, dtypes and shapes when empty.
        graph: TensorFlow runs it in a v1 graph instead of eagerly: for ref inputs and removed ops.
        producer: the GraphDef version of that graph, for ops that newer versions refuse.
        skip_outputs: outputs whose values are not compared (dtype and shape are).
        normalize: applied to both lists of outputs before they are compared, for results that are only
            determined up to something (the sign of an eigenvector).
    """

    op: str
    inputs: Sequence[Any] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    levels: float = 0
    exact: bool = False
    error: str | None = None
    id: str = ""
    graph: bool = False
    producer: int = PRODUCER
    skip_outputs: tuple[int, ...] = ()
    normalize: Callable[[list[Any]], list[Any]] | None = None

    @property
    def label(self) -> str:
        if self.id:
            return f"{self.op}-{self.id}"
        parts = [self.op]
        for value in self.inputs:
            first = value[0] if isinstance(value, list | tuple) and value else value
            if isinstance(first, np.ndarray | np.generic):
                parts.append(f"{first.dtype}{list(np.shape(first))}".replace(" ", ""))
        parts += [f"{key}={str(value)[:24]}" for key, value in self.attrs.items()]
        return "-".join(parts + ([self.error] if self.error else []))


# -- devices ---------------------------------------------------------------------------------------------


#: beside TensorFlow: what the other types of devices give is compared with what the CPU gives
DEVICES = ("CPU",)


def to_device(device: str, value: Any) -> Any:
    """A value as the kernels of a device type take it."""
    memory = device_types.memory(device, 0)
    stays = memory is None or not isinstance(value, np.ndarray) or value.dtype == object
    return value if stays else memory.copy_in(value)


def from_device(device: str, value: Any) -> Any:
    """A result of a device type as host code takes it."""
    memory = device_types.memory(device, 0)
    return memory.copy_out(value) if memory is not None and memory.owns(value) else value


def suite(cases: Sequence[Case]) -> Callable[[Any], Any]:
    """Parametrize a test over cases and devices."""
    rows = [(case, device) for device in DEVICES for case in cases]
    return pytest.mark.parametrize(("case", "device"), rows, ids=[f"{c.label}-{d}" for c, d in rows])


# -- making data -----------------------------------------------------------------------------------------

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int8", "int16", "int32", "int64")
UINTS = ("uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
REALS = FLOATS + INTS + UINTS
NUMBERS = REALS + COMPLEX


def numpy_type(dtype: Any) -> np.dtype[Any]:
    return dtypes.from_name(dtype).numpy if isinstance(dtype, str) else np.dtype(dtype)


def sample(dtype: Any, shape: Sequence[int] = (), low: float = -5, high: float = 5, seed: int = 0) -> Any:
    """Deterministic values in [low, high]; strings are short words, bools fair."""
    dt = numpy_type(dtype)
    rng = np.random.default_rng(zlib.crc32(f"{dt}{tuple(shape)}{low}{high}{seed}".encode()))
    shape = tuple(shape)
    if dt == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dt.kind == "O":
        words = np.array([b"", b"a", b"bc", b"Def", b"g h", "ü".encode(), b"\x00x", b"zz"], object)
        return words[rng.integers(0, len(words), shape)] if shape else np.array(words[rng.integers(8)], object)
    if dt.kind in "iu" or dt.name in ("int4", "uint4"):
        least = 0 if dt.name.startswith("u") else low
        if dt.name == "int4":
            low, high, least = max(low, -8), min(high, 7), max(low, -8)
        return rng.integers(int(max(low, least)), int(high) + 1, shape).astype(dt)
    values = rng.uniform(low, high, shape)
    if dt.kind == "c":
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values).astype(dt)


def special(dtype: Any) -> Any:
    """The awkward values of a type, as a vector."""
    dt = numpy_type(dtype)
    if dt == np.bool_:
        return np.array([False, True])
    if dt.kind in "iu":
        info = np.iinfo(dt)
        values = [info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max] + ([-1, -2, -7] if info.min else [])
        return np.array(values, dt)
    if dt.kind == "c":
        return np.array([0, 1, 1j, -1, -1j, 1 + 1j, -2 - 0.5j, 3e3], dt)
    info = ml_dtypes.finfo(dt)
    big, tiny = float(info.max), float(info.tiny)
    return np.array(
        [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, np.nan, np.inf, -np.inf, big, -big, tiny, -tiny], np.float64
    ).astype(dt)


def table(
    op: str,
    dtypes: Iterable[Any],
    shapes: Iterable[Any] = ((3, 4),),
    attrs: Iterable[Mapping[str, Any]] = ({},),
    *,
    low: float = -5,
    high: float = 5,
    extra: Sequence[Any] = (),
    with_special: bool = False,
    **case: Any,
) -> list[Case]:
    """Cases of one op for all combinations.

    Args:
        shapes: a tuple of ints for one input, or a list of such tuples, one per input.
        extra: arrays appended to the inputs of every case.
        with_special: adds a case of each dtype with the type's awkward values (against themselves, pairwise, when
            there are two inputs).
        case: passed to every Case.
    """
    rows: list[Case] = []
    for dtype, attr in itertools.product(dtypes, attrs):
        arity = 1
        for shape in shapes:
            each = shape if isinstance(shape, list) else [shape]
            arity = len(each)
            inputs = [sample(dtype, s, low, high, seed) for seed, s in enumerate(each)]
            rows.append(Case(op, [*inputs, *extra], attr, **case))
        if with_special:
            values = special(dtype)
            inputs = [values] if arity == 1 else [values[:, None], values[None, :]]
            label = "-".join([str(numpy_type(dtype)), "special", *(f"{k}={v}" for k, v in attr.items())])
            rows.append(Case(op, [*inputs, *extra], attr, **{"id": label, **case}))
    return rows


# -- building the node -----------------------------------------------------------------------------------


def _attr_value(kind: str, value: Any) -> Any:
    """A row's attribute as the graph's own value."""
    if kind.startswith("list("):
        return [_attr_value(kind[5:-1], v) for v in value]
    if kind == "type":
        if isinstance(value, DType):
            return value
        return dtypes.from_name(value) if isinstance(value, str) else dtypes.from_numpy(value)
    if kind == "shape":
        return value if isinstance(value, Shape) else Shape(value)
    if kind == "string":
        return value.encode() if isinstance(value, str) else value
    return {"float": float, "int": int, "bool": bool}.get(kind, lambda v: v)(value)


def _array(value: Any, dtype: DType | None) -> Any:
    if not isinstance(value, np.ndarray | np.generic | bool | int | float | complex | str | bytes | list | tuple):
        return value  # resource handles, variants
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, str | bytes):
        return np.array(value.encode() if isinstance(value, str) else value, object)
    if dtype is not None:
        return np.array(value, dtype.numpy)
    array = np.asarray(value)
    return array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))


@dataclass
class Prepared:
    """A case with its attributes filled in and its inputs in a row."""

    attrs: dict[str, Any]
    inputs: list[Any]
    types: list[DType]
    grouped: list[Any]


def prepare(case: Case) -> Prepared:
    op_def = opdefs.get(case.op)
    attrs = {key: _attr_value(op_def.attrs[key].type, value) for key, value in case.attrs.items()}
    assert len(case.inputs) == len(op_def.inputs), f"{case.op} takes {[a.name for a in op_def.inputs]}"
    grouped: list[Any] = []
    for arg, value in zip(op_def.inputs, case.inputs, strict=True):
        known = arg.type or attrs.get(arg.type_attr)
        if arg.type_list_attr:
            given = attrs.get(arg.type_list_attr) or [None] * len(value)
            arrays = [_array(v, t) for v, t in zip(value, given, strict=True)]
            attrs.setdefault(arg.type_list_attr, [dtypes.from_numpy(a.dtype) for a in arrays])
            grouped.append(arrays)
            continue
        many = bool(arg.number_attr)
        arrays = [_array(v, known) for v in (value if many else [value])]
        if many:
            attrs.setdefault(arg.number_attr, len(arrays))
        if arg.type_attr and known is None and arrays:
            attrs[arg.type_attr] = dtypes.from_numpy(arrays[0].dtype)
        grouped.append(arrays if many else arrays[0])
    flat = [a for g in grouped for a in (g if isinstance(g, list) else [g])]
    return Prepared(attrs, flat, op_def.expand(op_def.inputs, attrs, case.op), grouped)


def build(case: Case, ready: Prepared, name: str = "node") -> Node:
    """A graph of placeholders and the node; returns the node."""
    graph = Graph()
    graph.versions.producer = case.producer
    sources: list[Node] = []
    for i, (value, dtype) in enumerate(zip(ready.inputs, ready.types, strict=True)):
        attrs: dict[str, Any] = {"dtype": dtype.base}
        if case.graph and isinstance(value, np.ndarray):
            attrs["shape"] = Shape(value.shape)  # some ops ask for it when the graph is made
        sources.append(graph.add("Placeholder", f"in{i}", attrs=attrs))
    return graph.add(case.op, name, sources, attrs=ready.attrs)


# -- ours ------------------------------------------------------------------------------------------------


def run_ours(
    case: Case, device: str = "CPU", step: Any = None, ready: Prepared | None = None, *, defining: bool = False
) -> list[Any]:
    """The outputs of our kernel; reference outputs as the arrays they hold.

    Args:
        defining: of the kernel that defines the op, not of a faster one.
    """
    ready = ready or prepare(case)
    node = build(case, ready)
    node.device = f"/device:{device}:0"
    entry = registry.get(node, device, defining=defining)
    with audit.of(case.op):
        return _outputs(case, device, step, ready, node, entry)


def _outputs(case: Case, device: str, step: Any, ready: Prepared, node: Node, entry: registry.Kernel) -> list[Any]:
    compute = entry.factory(registry.KernelNode(node, Access(Policy.everything()), processor))
    inputs: list[Any] = []
    for index, (value, dtype) in enumerate(zip(ready.inputs, ready.types, strict=True)):
        if dtype.is_ref:
            variable = RefVariable("v", dtype.base, Shape(np.shape(value)), threading.RLock())
            variable.value = value.copy()
            inputs.append(variable)
        else:
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False  # a compute never changes its inputs
            stays = device == "CPU" or input_in_host_memory(node, device, index)
            inputs.append(value if stays else to_device(device, value))
    with np.errstate(all="ignore"):
        if entry.kind is registry.Kind.PURE:
            result = compute(*inputs)
        elif entry.kind is registry.Kind.STATEFUL:
            result = compute(step or FakeStep(), *inputs)
        else:
            result = _run_async(compute, step or FakeStep(), inputs)
    if result is None:
        outputs: list[Any] = []
    elif isinstance(result, tuple | list):
        outputs = list(result)
    else:
        outputs = [result]
    assert len(outputs) == len(node.output_types), f"{case.op} gave {len(outputs)} of {len(node.output_types)} outputs"
    return [from_device(device, o.value if isinstance(o, RefVariable) else o) for o in outputs]


def _run_async(compute: Callable[..., Any], step: Any, inputs: list[Any]) -> Any:
    finished = threading.Event()
    box: list[Any] = []

    def done(outputs: Any) -> None:
        box.append(outputs)
        finished.set()

    compute(step, done, *inputs)
    assert finished.wait(HUNG), "the kernel never called done"
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]


# -- TensorFlow's ----------------------------------------------------------------------------------------


def _tf_attr(value: Any) -> Any:
    if isinstance(value, list):
        return [_tf_attr(v) for v in value]
    if isinstance(value, DType):
        return value.enum
    if isinstance(value, Shape):
        return None if value.dims is None else [-1 if d is None else d for d in value.dims]
    if isinstance(value, FuncRef):
        return value.name
    return value


def tf_tensor(value: Any, dtype: DType) -> Any:
    """An eager tensor; quantized types are made by bitcast, which tf.constant cannot."""
    import tensorflow as tf

    if dtype.is_quantized:
        return tf.bitcast(tf.constant(value), dtype.name)
    return tf.constant(value, dtype=dtype.name)


def run_tensorflow(case: Case, ready: Prepared | None = None) -> list[Any]:
    """TensorFlow's outputs, as arrays."""
    ready = ready or prepare(case)
    if case.graph:
        return _run_tf_graph(case, ready)
    import tensorflow as tf
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    op_def = opdefs.get(case.op)
    full = {
        name: ready.attrs.get(name, d.default)
        for name, d in op_def.attrs.items()
        if name in ready.attrs or d.has_default
    }
    flat = tuple(part for name, value in full.items() for part in (name, _tf_attr(value)))
    ctx = context.context()
    ctx.ensure_initialized()
    with tf.device("CPU:0"):
        tensors = [
            tf_tensor(v, t) if isinstance(v, np.ndarray) else v for v, t in zip(ready.inputs, ready.types, strict=True)
        ]
        count = len(op_def.expand(op_def.outputs, full, case.op))
        results = pywrap_tfe.TFE_Py_Execute(ctx._handle, "/device:CPU:0", case.op, tensors, flat, count)
    return [_from_tf(r) for r in results]


def _from_tf(tensor: Any) -> Any:
    if tensor.dtype.name in ("resource", "variant"):
        return tensor
    value = tensor.numpy()
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


def kernels_session(tf: Any) -> Any:
    """A session of TensorFlow 1 without the graph optimizer, which takes half of a short session's time.

    What is compared is the kernel of one op, fed by placeholders, where it has nothing to do.
    """
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return tf.compat.v1.Session(config=config)


def _run_tf_graph(case: Case, ready: Prepared) -> list[Any]:
    import tensorflow as tf

    v1 = tf.compat.v1
    node = build(case, ready)
    proto = v1.GraphDef.FromString(node.graph.to_proto().SerializeToString())
    with tf.Graph().as_default() as graph, tf.device("CPU:0"):
        feeds: dict[Any, Any] = {}
        replaced: dict[str, Any] = {}
        variables: list[Any] = []
        for i, (value, dtype) in enumerate(zip(ready.inputs, ready.types, strict=True)):
            if dtype.is_ref:
                variable = v1.get_variable(f"v{i}", initializer=value, use_resource=False)
                variables.append(variable)
                replaced[f"in{i}:0"] = variable._ref()
        outputs = tf.graph_util.import_graph_def(
            proto,
            input_map=replaced,
            return_elements=[f"node:{i}" for i in range(node.num_outputs)] or ["node"],
            name="",
        )
        for i, (value, dtype) in enumerate(zip(ready.inputs, ready.types, strict=True)):
            if not dtype.is_ref:
                feeds[graph.get_tensor_by_name(f"in{i}:0")] = value
        with kernels_session(tf) as session:
            session.run([v.initializer for v in variables])
            results = session.run(outputs, feeds)
    return [np.array(r, object) if isinstance(r, bytes) else np.asarray(r) for r in results if r is not None]


# -- comparing -------------------------------------------------------------------------------------------


def outcome(run: Callable[[], list[Any]]) -> tuple[str | None, Any]:
    """(None, outputs), or (status, message) when it failed."""
    try:
        return None, run()
    except OpError as error:
        return error.status, str(error)


def tensorflow_outcome(case: Case, ready: Prepared) -> tuple[str | None, Any]:
    import tensorflow as tf

    try:
        return None, run_tensorflow(case, ready)
    except tf.errors.OpError as error:
        return BY_CODE[error.error_code].status, str(error)
    except ValueError as error:  # a shape function refused it while the graph was made
        if case.graph:
            return "INVALID_ARGUMENT", str(error)
        raise


def check(case: Case, device: str = "CPU") -> None:
    """Run a case on a device and in TensorFlow; raise AssertionError unless they agree."""
    ready = prepare(case)
    status, theirs = tensorflow_outcome(case, ready)
    if case.error is None:
        assert status is None, f"TensorFlow refuses this case: {status}: {theirs}"
    elif case.error != SAME:
        assert status == case.error, f"the case says {case.error}, TensorFlow: {status or 'succeeds'}: {theirs}"
    if status is not None:
        mine, message = outcome(lambda: run_ours(case, device, ready=ready))
        assert mine == status, f"expected {status} ({theirs}), ours: {mine or 'succeeds'}: {message}"
        return
    try:
        ours = run_ours(case, device, ready=ready)
    except GraphmillError as error:
        raise AssertionError(f"TensorFlow succeeds, ours fails: {type(error).__name__}: {error}") from error
    normalize = case.normalize or (lambda outputs: outputs)
    compare_outputs(case, normalize(ours), normalize(theirs), ready)


def compare_outputs(case: Case, ours: Sequence[Any], theirs: Sequence[Any], ready: Prepared | None = None) -> None:
    """Raise AssertionError unless the outputs of two kernels, run with a case's inputs, agree."""
    bounds = Bounds(case, theirs, ready)
    for position, (mine, expected) in enumerate(zip(ours, theirs, strict=True)):
        compare(
            mine,
            expected,
            f"{case.op} output {position}",
            values=position not in case.skip_outputs,
            levels=case.levels,
            exact=case.exact,
            allowed=partial(bounds.of, position),
        )


def check_against(case: Case, wanted: Sequence[Any]) -> None:
    """Raise AssertionError unless our kernel gives outputs that were computed in another way."""
    ours = run_ours(case)
    compare_outputs(case, case.normalize(ours) if case.normalize else ours, wanted)


class Bounds:
    """How far the outputs of a case may be from TensorFlow's; worked out when somebody asks."""

    def __init__(self, case: Case, wanted: Sequence[Any], ready: Prepared | None = None):
        self.case, self.wanted, self.ready = case, wanted, ready or prepare(case)
        self._found: list[Any] | None = None

    def of(self, position: int) -> Any:
        """Of one output, number by number."""
        if self.case.exact or self.case.levels:
            return float(self.case.levels)
        if self._found is None:
            self._found = op_bounds.allowed(self.case.op, self._run, self.ready.inputs, self.wanted)
        return self._found[position]

    def _run(self, inputs: Sequence[Any]) -> list[Any]:
        outputs = run_ours(self.case, ready=replace(self.ready, inputs=list(inputs)), defining=True)
        return self.case.normalize(outputs) if self.case.normalize else outputs


def compare(
    mine: Any,
    expected: Any,
    what: str = "",
    *,
    allowed: Callable[[], Any] | None = None,
    values: bool = True,
    levels: float = 0,
    exact: bool = False,
) -> None:
    """Raise AssertionError unless dtype, shape and values agree.

    Args:
        allowed: how far floats may be apart, where their last roundings do not explain it.
        levels: how far integers may be apart.
        exact: floats are equal.
    """
    assert isinstance(mine, np.ndarray | np.generic), f"{what}: {type(mine).__name__} is not an array"
    assert mine.dtype == expected.dtype, f"{what}: dtype {mine.dtype}, expected {expected.dtype}"
    assert mine.shape == expected.shape, f"{what}: shape {mine.shape}, expected {expected.shape}"
    if not values:
        return
    if not perturbation.is_rounded(expected):
        same = np.asarray(mine == expected)
        if levels:
            same = np.abs(mine.astype(np.float64) - expected.astype(np.float64)) <= levels
        assert same.all(), f"{what}: {_differences(mine, expected, ~same)}"
        return
    near = 0.0 if exact else op_bounds.last_roundings(expected)
    if allowed is not None and (tolerance.listeners or not tolerance.is_within(mine, expected, near)):
        near = allowed()  # which whoever measures margins wants to know, always
    tolerance.assert_within(mine, expected, near, what)


def _differences(a: Any, b: Any, where: Any) -> str:
    at = np.argwhere(np.atleast_1d(where))
    first = [f"{tuple(i.tolist())}: {np.atleast_1d(a)[tuple(i)]!r} != {np.atleast_1d(b)[tuple(i)]!r}" for i in at[:4]]
    return f"{len(at)} of {np.size(b)} differ (ours != TensorFlow's): " + "; ".join(first)
