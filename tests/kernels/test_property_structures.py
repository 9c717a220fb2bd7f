"""Random conversions, scans, diagonals, blocks, partitions, sets and sparse tensors, against TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.op_suite import COMPLEX, FLOATS, INTS, UINTS, sample
from tests.kernels.sparse.test_ops_sparse import sparse
from tests.kernels.test_property_ops import ANY, INDEX, REAL, SEED, SHAPES, bounded, same

pytestmark = pytest.mark.tensorflow

CASTABLE = st.sampled_from([*FLOATS, *INTS, *UINTS, *COMPLEX, "bool"])
NUMBERS = st.sampled_from(["float32", "float64", "int32", "int64", "complex64"])
SMALL = st.integers(0, 3)


@bounded
@given(CASTABLE, CASTABLE, SHAPES, st.sampled_from([3.0, 100.0]), SEED)
def test_cast(tf: ModuleType, source: str, target: str, shape: Any, size: float, seed: int) -> None:
    # A negative or large float has no defined value in some integer types; those that have one are in the table.
    low = 0 if target.startswith("uint") else -size
    same("Cast", [sample(source, shape, low, size, seed)], {"DstT": target})


@bounded
@given(
    st.sampled_from(["float32", "float64"]),
    st.lists(st.floats(-2e9, 2e9), max_size=6),
    st.sampled_from(["int32", "int64"]),
)
def test_cast_to_integers(tf: ModuleType, source: str, values: list[float], target: str) -> None:
    same("Cast", [np.array(values, source)], {"DstT": target})


@bounded
@given(st.sampled_from(["Cumsum", "Cumprod"]), NUMBERS, SHAPES, st.integers(-4, 4), st.booleans(), st.booleans())
def test_scans(tf: ModuleType, op: str, dtype: str, shape: Any, axis: int, exclusive: bool, backwards: bool) -> None:
    same(
        op,
        [sample(dtype, shape, -2, 2), np.int32(axis)],
        {"exclusive": exclusive, "reverse": backwards},
    )


@bounded
@given(ANY.filter(lambda t: t != "string"), st.integers(1, 5), st.integers(1, 5), st.integers(-4, 4), st.integers(0, 3),
       st.sampled_from(["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"]))  # fmt: skip
def test_diagonals(tf: ModuleType, dtype: str, rows: int, columns: int, low: int, count: int, align: str) -> None:
    k = np.array([low, low + count], np.int32)
    x = sample(dtype, (2, rows, columns))
    same("MatrixDiagPartV3", [x, k, sample(dtype)], {"align": align})
    high = low + count
    if -rows < low and high < columns:
        length = min(rows + min(high, 0), columns - max(low, 0))
        band = sample(dtype, (2, *((count + 1,) if count else ()), length), seed=1)
        same("MatrixSetDiagV3", [x, band, k], {"align": align})
        same("MatrixDiagV3", [band, k, np.int32(-1), np.int32(-1), sample(dtype)], {"align": align})


@bounded
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data()
)
def test_blocks(tf: ModuleType, shape: list[int], block: list[int], data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(SMALL, SMALL), min_size=len(block), max_size=len(block)))
    x, sizes, edges = sample("float32", shape), np.array(block, np.int32), np.array(pairs, np.int32)
    same("SpaceToBatchND", [x, sizes, edges])
    same("BatchToSpaceND", [x, sizes, np.minimum(edges, 1)])


@bounded
@given(SHAPES.filter(bool), st.sampled_from(["REFLECT", "SYMMETRIC"]), st.data())
def test_mirror_pad(tf: ModuleType, shape: Any, mode: str, data: st.DataObject) -> None:
    if 0 in shape:
        return  # TensorFlow reads beyond the end of an empty tensor's axis
    pairs = data.draw(st.lists(st.tuples(SMALL, SMALL), min_size=len(shape), max_size=len(shape)))
    same("MirrorPad", [sample("float32", shape), np.array(pairs, np.int32)], {"mode": mode})


@bounded
@given(ANY, SHAPES, st.integers(0, 2), st.integers(1, 4), SEED)
def test_partition(tf: ModuleType, dtype: str, shape: Any, depth: int, count: int, seed: int) -> None:
    which = sample("int32", shape[:depth], 0, 3, seed)
    same("DynamicPartition", [sample(dtype, shape), which], {"num_partitions": count})


@bounded
@given(ANY, st.lists(st.lists(st.integers(-1, 6), max_size=4), min_size=1, max_size=3), SMALL)
def test_stitch(tf: ModuleType, dtype: str, indices: list[list[int]], inner: int) -> None:
    where = [np.array(i, np.int32) for i in indices]
    covered = {i for group in indices for i in group}
    if covered and covered != set(range(max(covered) + 1)) and -1 not in covered:
        return  # rows that no index names are not set in TensorFlow
    same("DynamicStitch", [where, [sample(dtype, (len(i), inner), seed=n) for n, i in enumerate(indices)]])


@bounded
@given(st.sampled_from(["SegmentSum", "SegmentMax", "SegmentMean", "SegmentProd"]), REAL,
       st.lists(st.integers(-1, 4), max_size=6), SMALL, st.booleans(), INDEX)  # fmt: skip
def test_segments(tf: ModuleType, op: str, dtype: str, ids: list[int], inner: int, in_order: bool, index: Any) -> None:
    rows = sorted(ids) if in_order else ids
    same(op, [sample(dtype, (len(ids), inner), 1, 2), np.array(rows, index)])


@bounded
@given(st.sampled_from(["int32", "string", "int64"]), st.sampled_from(["a-b", "b-a", "intersection", "union"]),
       st.lists(st.integers(1, 3), min_size=1, max_size=2), SMALL, SMALL, SEED)  # fmt: skip
def test_sets(tf: ModuleType, dtype: str, how: str, groups: list[int], left: int, right: int, seed: int) -> None:
    a, b = sample(dtype, (*groups, left), 0, 3, seed), sample(dtype, (*groups, right), 0, 3, seed + 1)
    same("DenseToDenseSetOperation", [a, b], {"set_operation": how})


@bounded
@given(st.sampled_from(["float32", "int64"]), st.integers(0, 8), st.integers(0, 8), SEED)
def test_sparse_pairs(tf: ModuleType, dtype: str, left: int, right: int, seed: int) -> None:
    a, b = sparse(dtype, (3, 4), left, seed), sparse(dtype, (3, 4), right, seed + 1)
    same("SparseAdd", [*a, *b, np.array(0, dtype)])
    same("SparseSparseMaximum", [*a, *b])
    same("SparseConcat", [list(pair) for pair in zip(a, b, strict=True)], {"concat_dim": seed % 2})


@bounded
@given(st.sampled_from(["float32", "string"]), st.integers(0, 12), st.permutations(range(12)), st.integers(1, 4), SEED)
def test_sparse_rows(tf: ModuleType, dtype: str, count: int, order: list[int], parts: int, seed: int) -> None:
    indices, values, shape = sparse(dtype, (3, 4), count, seed)
    mixed = [i for i in order if i < count]
    same("SparseReorder", [indices[mixed], values[mixed], shape])
    same("SparseFillEmptyRows", [indices[mixed], values[mixed], shape, sample(dtype, seed=9)])
    same("SparseSplit", [np.int64(seed % 2), indices, values, shape], {"num_split": parts})
    same("SparseSlice", [indices, values, shape, np.int64([seed % 4, 1]), np.int64([2, seed % 5])])


@bounded
@given(
    st.sampled_from(["float32", "int32"]),
    st.integers(0, 20),
    st.lists(st.integers(-3, 3), max_size=3),
    st.booleans(),
    SEED,
)
def test_sparse_reductions(tf: ModuleType, dtype: str, count: int, axes: list[int], keep: bool, seed: int) -> None:
    for op in ("SparseReduceSum", "SparseReduceSumSparse"):
        same(op, [*sparse(dtype, (2, 3, 4), count, seed), np.array(axes, np.int32)], {"keep_dims": keep})


@bounded
@given(st.sampled_from(["int32", "float32"]), st.lists(st.integers(0, 4), min_size=1, max_size=5), SMALL, SEED)
def test_ragged(tf: ModuleType, dtype: str, lengths: list[int], wide: int, seed: int) -> None:
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = sample(dtype, (int(splits[-1]),), seed=seed)
    same("RaggedTensorToSparse", [[splits], values])
    kind = {"row_partition_types": ["ROW_SPLITS"]}
    same("RaggedTensorToTensor", [np.int64([-1, wide - 1]), values, sample(dtype), [splits]], kind)
    rows = sample("int32", (3,), 0, len(lengths), seed)
    same("RaggedGather", [[splits], values, rows], {"OUTPUT_RAGGED_RANK": 1})
