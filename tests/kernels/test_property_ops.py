"""Random shapes, types, broadcasts and attributes through each family, against TensorFlow.

What TensorFlow does with an input, an error included, ours does too (`SAME`).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kernels.op_suite import FLOATS, SAME, Case, check, sample

pytestmark = pytest.mark.tensorflow

bounded = settings(
    max_examples=50,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SIZES = st.integers(0, 4)
SHAPES = st.lists(SIZES, max_size=4).map(tuple)
INDEX = st.sampled_from([np.int32, np.int64])
NUMERIC = st.sampled_from(["float32", "float64", "int32", "int64", "complex64", "bfloat16", "float16", "int8", "uint8"])
REAL = st.sampled_from(["float32", "float64", "int32", "int64", "bfloat16", "int8", "uint8"])
ANY = st.sampled_from(["float32", "int64", "bool", "string", "complex128", "uint16"])
SEED = st.integers(0, 1000)


def same(op: str, inputs: list[Any], attrs: dict[str, Any] | None = None, **case: Any) -> None:
    check(Case(op, inputs, attrs or {}, error=SAME, **case))


@st.composite
def broadcast_pair(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast most of the time."""
    shape = draw(SHAPES)
    other = tuple(1 if draw(st.booleans()) else d for d in shape)[draw(st.integers(0, len(shape))) :]
    if draw(st.integers(0, 9)) == 0:
        other = draw(SHAPES)
    return (shape, other) if draw(st.booleans()) else (other, shape)


@bounded
@given(
    st.sampled_from(["AddV2", "Sub", "Mul", "SquaredDifference", "Equal", "NotEqual"]), NUMERIC, broadcast_pair(), SEED
)
def test_binary(tf: ModuleType, op: str, dtype: str, shapes: Any, seed: int) -> None:
    if op == "SquaredDifference" and dtype in ("int8", "uint8"):
        dtype = "int32"
    same(op, [sample(dtype, shapes[0], seed=seed), sample(dtype, shapes[1], seed=seed + 1)])


@bounded
@given(
    st.sampled_from(["Maximum", "Minimum", "Less", "GreaterEqual", "FloorDiv", "FloorMod"]),
    REAL,
    broadcast_pair(),
    SEED,
)
def test_ordered_binary(tf: ModuleType, op: str, dtype: str, shapes: Any, seed: int) -> None:
    same(op, [sample(dtype, shapes[0], seed=seed), sample(dtype, shapes[1], 1, 5, seed=seed + 1)])


@bounded
@given(ANY, broadcast_pair(), SHAPES, SEED)
def test_select(tf: ModuleType, dtype: str, shapes: Any, condition: Any, seed: int) -> None:
    same(
        "SelectV2",
        [sample("bool", condition, seed=seed), sample(dtype, shapes[0]), sample(dtype, shapes[1], seed=seed)],
    )


@bounded
@given(
    st.sampled_from(["Sum", "Mean", "Prod", "Max", "Min"]),
    REAL,
    SHAPES,
    st.lists(st.integers(-4, 4), max_size=3),
    INDEX,
    st.booleans(),
)
def test_reductions(tf: ModuleType, op: str, dtype: str, shape: Any, axes: list[int], index: Any, keep: bool) -> None:
    if op == "Mean" and dtype not in FLOATS and 0 in shape:
        return  # TensorFlow divides by the integer 0 there
    same(op, [sample(dtype, shape, -2, 2), np.array(axes, index)], {"keep_dims": keep})


@bounded
@given(st.sampled_from(["ArgMax", "ArgMin"]), REAL, SHAPES, st.integers(-5, 5), INDEX)
def test_arg_reductions(tf: ModuleType, op: str, dtype: str, shape: Any, axis: int, out: Any) -> None:
    same(op, [sample(dtype, shape), np.int32(axis)], {"output_type": out})


@bounded
@given(
    SHAPES,
    st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6), st.sampled_from([1, 1, 1, 2, -1, -2, 0])), max_size=5),
    st.lists(st.integers(0, 31), min_size=5, max_size=5),
)
def test_strided_slice(tf: ModuleType, shape: Any, spec: list[tuple[int, int, int]], masks: list[int]) -> None:
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    begin, end, strides = (np.array([row[i] for row in spec], np.int32) for i in range(3))
    used = [m & ((1 << len(spec)) - 1) for m in masks]
    used[2] &= -used[2]  # one ellipsis at most; two are tried in the table
    same("StridedSlice", [sample("float32", shape), begin, end, strides], dict(zip(names, used, strict=True)))


@bounded
@given(ANY, SHAPES, st.lists(st.integers(-1, 12), max_size=4), INDEX)
def test_reshape(tf: ModuleType, dtype: str, shape: Any, wanted: list[int], index: Any) -> None:
    same("Reshape", [sample(dtype, shape), np.array(wanted, index)])


@bounded
@given(ANY, st.lists(SHAPES, min_size=2, max_size=3), st.integers(-3, 3))
def test_concat(tf: ModuleType, dtype: str, shapes: list[Any], axis: int) -> None:
    same("ConcatV2", [[sample(dtype, s, seed=i) for i, s in enumerate(shapes)], np.int32(axis)])


@bounded
@given(ANY, SHAPES, st.integers(1, 4), st.integers(-4, 4))
def test_concat_and_split_fit(tf: ModuleType, dtype: str, shape: Any, count: int, axis: int) -> None:
    same("Split", [np.int32(axis), sample(dtype, shape)], {"num_split": count})
    same("Pack", [[sample(dtype, shape, seed=i) for i in range(count)]], {"axis": axis})


@bounded
@given(ANY, SHAPES, st.permutations(range(4)), INDEX)
def test_transpose(tf: ModuleType, dtype: str, shape: Any, order: list[int], index: Any) -> None:
    same("Transpose", [sample(dtype, shape), np.array([i for i in order if i < len(shape)], index)])


@bounded
@given(ANY, SHAPES, SHAPES, st.integers(-3, 3), st.integers(0, 2), SEED)
def test_gather(tf: ModuleType, dtype: str, params: Any, indices: Any, axis: int, batch: int, seed: int) -> None:
    which = sample("int32", indices, 0, 4, seed=seed)
    same("GatherV2", [sample(dtype, params), which, np.int32(axis)], {"batch_dims": min(batch, len(indices))})


@bounded
@given(ANY, SHAPES, st.lists(st.integers(1, 3), max_size=2).map(tuple), st.integers(0, 3), SEED)
def test_gather_and_scatter_nd(tf: ModuleType, dtype: str, shape: Any, rows: Any, depth: int, seed: int) -> None:
    indices = sample("int32", (*rows, depth), 0, 3, seed=seed)
    if shape:
        same("GatherNd", [sample(dtype, shape), indices])
    updates = sample("float32", (*rows, *shape[depth:]), seed=seed)
    same("ScatterNd", [indices, updates, np.array(shape, np.int32)])
    same("TensorScatterAdd", [sample("float32", shape), indices, updates])


@bounded
@given(
    st.sampled_from(["UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentProd"]),
    REAL,
    SHAPES,
    st.integers(0, 3),
    st.integers(0, 5),
    SEED,
)
def test_unsorted_segments(tf: ModuleType, op: str, dtype: str, shape: Any, depth: int, count: int, seed: int) -> None:
    ids = sample("int32", shape[:depth], -1, 4, seed=seed)
    same(op, [sample(dtype, shape, 1, 2), ids, np.int32(count)])


@bounded
@given(st.sampled_from(["float32", "float64", "int32", "complex64"]), SHAPES, SHAPES, st.booleans(), st.booleans())
def test_batch_matmul(tf: ModuleType, dtype: str, left: Any, right: Any, adj_x: bool, adj_y: bool) -> None:
    inner = 3
    a = (*left[:2], *((inner, 2) if adj_x else (2, inner)))
    b = (*right[:2], *((4, inner) if adj_y else (inner, 4)))
    same("BatchMatMulV2", [sample(dtype, a), sample(dtype, b)], {"adj_x": adj_x, "adj_y": adj_y})


@bounded
@given(ANY, SHAPES, st.data())
def test_pad_tile_reverse(tf: ModuleType, dtype: str, shape: Any, data: st.DataObject) -> None:
    rank = len(shape)
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=rank, max_size=rank))
    x = sample(dtype, shape)
    same("Pad", [x, np.array(pairs, np.int32).reshape(rank, 2)])
    if dtype != "uint16":  # TensorFlow has no Tile of it
        same("Tile", [x, np.array([a + b for a, b in pairs], np.int32)])
    same("ReverseV2", [x, np.array([i for i, (a, _) in enumerate(pairs) if a], np.int32)])


@bounded
@given(REAL, st.lists(st.integers(-3, 3), max_size=12), INDEX)
def test_unique_and_difference(tf: ModuleType, dtype: str, values: list[int], index: Any) -> None:
    x = np.array(values).astype(dtype if dtype != "bfloat16" else "float32")
    same("UniqueWithCounts", [x], {"out_idx": index})
    same("ListDiff", [x, x[:3]], {"out_idx": index})


@bounded
@given(st.sampled_from(["float32", "int32", "int64", "uint8"]), SHAPES, st.integers(0, 5), SEED)
def test_top_k(tf: ModuleType, dtype: str, shape: Any, k: int, seed: int) -> None:
    same("TopKV2", [sample(dtype, shape, 0, 3, seed=seed), np.int32(k)])


@bounded
@given(st.sampled_from(["float32", "int32", "bool", "string"]), SHAPES, st.lists(st.integers(0, 3), max_size=4))
def test_broadcast_to(tf: ModuleType, dtype: str, shape: Any, wanted: list[int]) -> None:
    if dtype != "string":
        same("BroadcastTo", [sample(dtype, shape), np.array(wanted, np.int32)])
    same("BroadcastGradientArgs", [np.array(shape, np.int32), np.array(wanted, np.int32)])
    same("BroadcastArgs", [np.array(shape, np.int32), np.array(wanted, np.int32)])
