"""Crosses of sparse, ragged and dense features against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.op_suite import SAME, Case, check, suite

pytestmark = pytest.mark.tensorflow


def strings(*rows: Sequence[str]) -> Any:
    return np.array([[v.encode() for v in row] for row in rows], object)


def sparse(rows: Sequence[Sequence[Any]]) -> tuple[Any, Any, Any]:
    """(indices, values, shape) of rows of features of different lengths."""
    flat = [value for row in rows for value in row]
    textual = any(isinstance(value, str) for value in flat)
    indices = [(r, c) for r, row in enumerate(rows) for c in range(len(row))]
    values = np.array([v.encode() for v in flat], object) if textual else np.int64(flat)
    shape = np.int64([len(rows), max(map(len, rows), default=0)])
    return np.int64(indices).reshape(-1, 2), values, shape


A = sparse([["a", "longer than sixteen bytes it is"], [], ["b", "c", "d"], ["e"]])
B = sparse([[1, 2], [3], [-5], [1 << 40, 7, 8]])
DENSE = strings(["x", "y"], ["z", ""], ["p", "q"], ["r", "s"])
NUMBERS = np.int64([[1], [-2], [3], [4]])
COLUMNS: list[tuple[list[Any], list[Any]]] = [
    ([A], []), ([B], []), ([], [DENSE]), ([], [NUMBERS]), ([A, B], []), ([B, A], [DENSE]), ([A, A], [NUMBERS, DENSE]),
    ([A, B, A], [DENSE, DENSE]),
]  # fmt: skip


def split(columns: list[Any], dense: list[Any]) -> list[Any]:
    return [[c[i] for c in columns] for i in range(3)] + [dense]


def textual(columns: list[Any], dense: list[Any]) -> bool:
    return all(v.dtype == object for v in [*(c[1] for c in columns), *dense])


def crosses() -> Iterator[Case]:
    for (columns, dense), out, internal in product(COLUMNS, ("string", "int64"), ("string", "int64")):
        attrs = {"hashed_output": out == "int64", "num_buckets": 0, "hash_key": 956888297470,
                 "out_type": out, "internal_type": internal}  # fmt: skip
        bad = None if internal == "int64" or textual(columns, dense) else "INVALID_ARGUMENT"
        yield Case(
            "SparseCross", split(columns, dense), attrs, error=bad, id=f"{len(columns)}{len(dense)}{out}{internal}"
        )
        if out == "int64" and bad is None:
            yield Case("SparseCross", split(columns, dense), {**attrs, "num_buckets": 100, "hash_key": -3})
    salt = np.int64([137, -173])
    for number, (columns, dense) in enumerate(COLUMNS):
        for separator in ("_X_", "", "--"):
            yield Case(
                "SparseCrossV2",
                [*split(columns, dense), np.array(separator.encode(), object)],
                id=f"{number}{separator}",
            )
        for buckets, strong in product((0, 100), (False, True)):
            if strong and any(matrix.dtype != object for matrix in dense):
                continue  # TensorFlow 2.21 dies of a segmentation fault
            inputs = [*split(columns, dense), np.int64(buckets), np.bool_(strong), salt]
            yield Case("SparseCrossHashed", inputs, id=f"{number}-{buckets}-{strong}")


def refused() -> Iterator[Case]:
    attrs = {"hashed_output": True, "num_buckets": 0, "hash_key": 1, "out_type": "int64", "internal_type": "int64"}
    bad: dict[str, Any] = {"attrs": attrs, "error": "INVALID_ARGUMENT"}
    indices, values, shape = A
    yield Case("SparseCross", [[indices[:, :1]], [values], [shape], []], **bad, id="columns")
    yield Case("SparseCross", [[indices], [values[:2]], [shape], []], **bad, id="values")
    yield Case("SparseCross", [[indices], [values], [shape[:1]], []], **bad, id="shape")
    yield Case("SparseCross", [[indices], [values], [shape], [DENSE[:2]]], **bad, id="rows")
    yield Case("SparseCross", [[indices], [values], [shape], [DENSE[0]]], **bad, id="rank")
    unsorted = indices[::-1].copy()
    yield Case("SparseCross", [[unsorted], [values], [shape], []], attrs, id="unsorted")
    one = [np.int64(5), np.bool_(True), np.int64([1])]
    yield Case("SparseCrossHashed", [[indices], [values], [shape], [], *one], error="INVALID_ARGUMENT", id="salt")


@suite([*crosses(), *refused()])
def test_sparse_cross(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def ragged_attrs(order: str, out: str, splits: str, inputs: list[Any], buckets: int = 0) -> dict[str, Any]:
    name = {np.dtype(object): "string", np.dtype(np.int64): "int64", np.dtype(np.int32): "int32"}
    kinds = [[name[np.asarray(v).dtype] for v in inputs[i]] for i in (0, 1, 3, 5)]
    return {"input_order": order, "hashed_output": out == "int64", "num_buckets": buckets, "hash_key": 956888297470,
            "ragged_values_types": kinds[0], "ragged_splits_types": kinds[1], "sparse_values_types": kinds[2],
            "dense_types": kinds[3], "out_values_type": out, "out_row_splits_type": splits}  # fmt: skip


def ragged() -> Iterator[Case]:
    values, numbers = A[1], np.int64([4, 5, 6, -7])
    first, second = np.int64([0, 2, 2, 5, 6]), np.int64([0, 1, 2, 3, 4])
    everything = [[values, numbers], [first, second], [B[0]], [B[1]], [B[2]], [DENSE]]
    only = {"R": [[values], [first], [], [], [], []], "S": [[], [], [A[0]], [A[1]], [A[2]], []],
            "D": [[], [], [], [], [], [NUMBERS]]}  # fmt: skip
    for out, splits in product(("string", "int64"), ("int32", "int64")):
        for order in ("RRSD", "DSRR", "RSDR"):
            inputs = [list(part) for part in everything]
            inputs[1] = [s.astype(splits) for s in inputs[1]]
            yield Case("RaggedCross", inputs, ragged_attrs(order, out, splits, inputs), id=f"{order}{out}{splits}")
        for order, part in only.items():
            inputs = [list(p) for p in part]
            inputs[1] = [s.astype(splits) for s in inputs[1]]
            yield Case("RaggedCross", inputs, ragged_attrs(order, out, splits, inputs), id=f"{order}{out}{splits}")
    yield Case("RaggedCross", everything, ragged_attrs("RRSD", "int64", "int64", everything, 17), id="buckets")
    for what, order, change in (
        ("order", "RRSX", {}), ("length", "RR", {}), ("too-many", "RRRD", {}), ("rows", "RRSD", {5: [DENSE[:2]]}),
        ("rank", "RRSD", {5: [DENSE[0]]}), ("splits", "RRSD", {1: [first[::-1].copy(), second]}),
        ("last", "RRSD", {1: [first + np.int64([0, 0, 0, 0, 1]), second]}),
    ):  # fmt: skip
        inputs = [change.get(i, part) for i, part in enumerate(everything)]
        attrs = ragged_attrs(order, "int64", "int64", inputs)
        yield Case("RaggedCross", inputs, attrs, error="INVALID_ARGUMENT", id=what)

    one = [[], [], [A[0]], [A[1]], [A[2]], []]
    rows = A[0]
    for what, change in (
        ("no-values", {3: [A[1][:0]]}), ("fewer-values", {3: [A[1][:2]]}), ("columns", {2: [rows[:, :1]]}),
        ("more-columns", {2: [np.concatenate([rows, rows], 1)]}), ("no-columns", {2: [rows[:, :0]], 3: [A[1][:0]]}),
        ("beyond-the-batch", {2: [rows[:1] + 9]}), ("no-rows", {2: [rows[:1]], 4: [np.int64([0, 3])]}),
        ("rank-1", {2: [rows[:, 0].copy()]}), ("sizes", {4: [np.int64([4, 3, 2])]}),
    ):  # fmt: skip
        inputs = [change.get(i, part) for i, part in enumerate(one)]
        yield Case("RaggedCross", inputs, ragged_attrs("S", "int64", "int64", inputs), error=SAME, id=what)


@suite(list(ragged()))
def test_ragged_cross(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


FEATURES = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3), min_size=3, max_size=3)
WORDS = st.lists(st.lists(st.text(max_size=70), min_size=1, max_size=3), min_size=3, max_size=3)


@settings(max_examples=20, deadline=None, print_blob=True)
@given(numbers=FEATURES, words=WORDS, buckets=st.integers(0, 2**62), key=st.integers(-(2**63), 2**63 - 1))
def test_any_features(numbers: Any, words: Any, buckets: int, key: int) -> None:
    attrs = {
        "hashed_output": True,
        "num_buckets": buckets,
        "hash_key": key,
        "out_type": "int64",
        "internal_type": "int64",
    }
    check(Case("SparseCross", split([sparse(numbers), sparse(words)], []), attrs))
    salt = [np.int64(buckets), np.bool_(key % 2), np.int64([key, buckets])]
    check(Case("SparseCrossHashed", [*split([sparse(words), sparse(numbers)], []), *salt]))
