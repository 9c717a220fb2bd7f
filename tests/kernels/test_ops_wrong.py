"""Inputs whose shapes or values no op can take, as the fuzzer found them: a status, and TensorFlow's own."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import SAME, Case, check, run_ours, sample, suite
from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes, opdefs
from toolkit.kernels import registry

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
F, I32, I64 = np.float32, np.int32, np.int64


def texts(*values: bytes) -> Any:
    return np.array(values, object)


GRAMS = {
    "separator": b"|", "ngram_widths": [4], "left_pad": b"L", "right_pad": b"R", "pad_width": 0,
    "preserve_short_sequences": True, "Tsplits": "int64",
}  # fmt: skip
CROSS = {
    "ragged_values_types": [], "ragged_splits_types": [], "sparse_values_types": ["string"], "dense_types": [],
    "input_order": b"S", "hashed_output": False, "num_buckets": 0, "hash_key": 1, "out_values_type": "string",
    "out_row_splits_type": "int64",
}  # fmt: skip
NONE: list[Any] = []
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
IMAGE, FILTER, OUT = (sample("float32", shape) for shape in ((1, 5, 5, 4), (3, 3, 4, 6), (1, 5, 5, 6)))
#: what TensorFlow reads beyond the ends of, takes for a mistake of its own, or ends the process at
ALONE = [
    *(
        Case(f"{op}Input", [I32(sizes), FILTER, OUT], CONV)
        for op in ("Conv2DBackprop", "DepthwiseConv2dNativeBackprop")
        for sizes in (5, [[1, 5, 5, 4]])
    ),
    *(
        Case(f"{op}Filter", [IMAGE, I32(sizes), OUT], CONV)
        for op in ("Conv2DBackprop", "DepthwiseConv2dNativeBackprop")
        for sizes in (3, [[3, 3, 4, 6]])
    ),
    Case("DepthwiseConv2dNativeBackpropFilter", [F([1, 2]), I32([3, 3, 4, 6]), OUT], {**CONV, "data_format": "NCHW"}),
    Case("RaggedCross", [NONE, NONE, [I64([[0, 0]])], [texts(b"a", b"b")], [I64([4, 3])], NONE], CROSS),
    *(
        Case(op, [I64([[3, 1]]), F([1]), I64([3, 4]), I32([1])])
        for op in ("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse")
    ),
    *(
        Case(op, [np.zeros((0, 2), F), I32([0]), np.zeros((1, 2), F)])
        for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub")
    ),
]

CASES = [
    Case("InTopKV2", [sample("float32", (2, 3)), I32([0, 1]), I32([1])], error=BAD),
    Case("SparseAddGrad", [F(1), I64([[0, 0]]), I64([[0, 0]]), I64([[0, 0]])], error=BAD),
    Case("SparseAddGrad", [F([1]), I64([[0]]), I64([[0, 0]]), I64([[0, 0]])], error=BAD),
    Case("RequantizationRangePerChannel", [np.zeros((0, 2, 4, 5), I32), F([-1] * 5), F([1] * 5)],
         {"T": "qint32", "clip_value_max": 100.0}, error=BAD),
    Case("RaggedCountSparseOutput", [I64([0, 2]), I32(1), np.zeros(0, F)], {"binary_output": False}, error=BAD),
    *(
        Case("Svd", [F([[[1, 2], [3, 4]], [[1, bad], [3, 4]]])], {"compute_uv": vectors}, skip_outputs=(1, 2))
        for bad in (np.nan, np.inf)
        for vectors in (True, False)
    ),
    Case("UniqueWithCountsV2", [np.zeros((0, 2, 1), F), I32([0])]),
    Case("Bucketize", [F([1, 2])], {"boundaries": [-np.inf, np.inf, np.inf]}),
    Case("StringNGrams", [texts(b"a", b"b", b"c").reshape(3, 1), I64([0, 3])], GRAMS),
    Case("UnicodeTranscode", [texts(b"a")], {"input_encoding": b"\0", "output_encoding": b"UTF-8"}, error=BAD),
    *(
        Case("TensorScatterUpdate", [F([1, 2]), I64([[0], [2]]), F([3, 4])], {"bad_indices_policy": policy}, error=SAME)
        for policy in (b"", b"DEFAULT", b"ERROR", b"IGNORE", b"ab")
    ),
    Case("ComplexAbs", [np.complex64([3 + 4j])], {"Tout": "float64"}, error=BAD),
    Case("CheckNumerics", [F([1])], {"message": b"\xff"}),
    Case("QuantizedMul", [np.uint8([1]), np.uint8([2]), F(0), F([1]), F(0), F(1)],
         {"T1": "quint8", "T2": "quint8", "Toutput": "qint32"}, error=BAD),
    *(
        Case("RequantizationRange", [I32([-100000, 5]), F(low), F(high)], {"Tinput": "qint32"})
        for low, high in ((np.nan, 1), (0, np.nan), (-np.inf, np.inf), (0, np.inf))
    ),
    Case("RequantizationRange", [I32([]), F(0), F(1)], {"Tinput": "qint32"}),
    Case("QuantizeDownAndShrinkRange", [I32([]), F(0), F(1)], {"Tinput": "qint32", "out_type": "quint8"}),
    *(
        Case("Requantize", [I32([4]), F(0), F(1), F(low), F(high)], {"Tinput": "qint32", "out_type": "quint8"},
             error=BAD)
        for low, high in ((np.nan, 1), (0, np.nan), (np.inf, 0))
    ),
    *(
        Case("SampleDistortedBoundingBoxV2", [I32([10, 10, 3]), F([[box]]), F(0.1)], {"seed": 1, "seed2": 2, **ranges},
             error=BAD)
        for box, ranges in (
            ([np.nan, 0, 1, 1], {}),
            ([0.1, 0.1, 0.5, 0.6], {"aspect_ratio_range": [np.nan, 1.0]}),
            ([0.1, 0.1, 0.5, 0.6], {"aspect_ratio_range": [0.5, np.nan]}),
            ([0.1, 0.1, 0.5, 0.6], {"area_range": [0.1, np.nan]}),
        )
    ),
    Case("SampleDistortedBoundingBoxV2", [I32([10, 10, 3]), F([[[0.1, 0.1, 0.5, 0.6]]]), F(0.1)],
         {"seed": 1, "seed2": 2, "aspect_ratio_range": [0.5, np.inf]}),
    *(
        Case("ImageProjectiveTransformV2", [np.zeros(shape, F), F([[1, 0, 0, 0, 1, 0, 0, 0]]), I32([3, 3])],
             {"interpolation": way})
        for shape in ((0, 2, 2, 1), (1, 0, 2, 1))
        for way in ("NEAREST", "BILINEAR")
    ),
    *(
        Case("QuantizedInstanceNorm", [np.zeros(shape, np.uint8), F(0), F(1)], {"T": "quint8"})
        for shape in ((0, 2, 2, 1), (1, 0, 2, 1))
    ),
    *(
        Case("QuantizedResizeBilinear", [np.zeros(shape, np.uint8), I32([3, 3]), F(0), F(1)], {"T": "quint8"},
             error=BAD)
        for shape in ((1, 0, 2, 1), (1, 2, 2, 0))
    ),
    *(
        Case("MaxPool", [np.zeros(shape, F)], {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2], "padding": "VALID"})
        for shape in ((0, 5, 6, 2), (1, 5, 0, 2))
    ),
    *(
        Case("MaxPoolWithArgmax", [np.zeros(shape, F)],
             {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}, error=BAD)
        for shape in ((0, 4, 4, 2), (1, 0, 4, 2), (1, 4, 4, 0))
    ),
    *(
        Case(op, [np.zeros(x, F), F([1, 2]), F([1, 2]), np.zeros(mean, F), np.zeros(variance, F)],
             {"is_training": True}, error=BAD)
        for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
        for x in ((0, 4, 4, 2), (1, 4, 4, 2))
        for mean, variance in (((1, 0), (0,)), ((2,), (0, 1)), ((), ()))
    ),
    *(Case("UnravelIndex", [I32([]), I32(dims)], error=BAD) for dims in ([3, 4], [])),
    *(
        Case("RandomIndexShuffle", [np.array(index, dt), I32([1, 2, 3]), np.array(most, dt)], {"rounds": 4}, error=SAME)
        for dt in (I32, I64, np.uint32)
        for index, most in (([5, 9], 9), ([5, 9], 3), ([5, 9], [5, 8]), (4, 3), (0, 0), (1, 0))
    ),
    *(
        Case("RandomIndexShuffle", [I64(index), I32([1, 2, 3]), I64(most)], {"rounds": 4}, error=BAD)
        for index, most in ((0, -1), (-1, 3), ([1, -1], [3, 3]))
    ),
    *(
        Case(f"SparseSegment{kind}Grad{version}", [sample("float32", (3, 2)), I32([0, 4]), I32(ids), I32(rows)],
             error=SAME)
        for kind in ("Sum", "Mean", "SqrtN")
        for version in ("", "V2")
        for ids, rows in (([0, 7], 0), ([0, 1], 0), ([0, 1], 3), ([0, 7], 5), ([0, 1], 5))
    ),
    *(
        Case("SparseSlice", [np.zeros((0, len(sizes)), I64), np.zeros(0, F), I64(sizes), I64([0] * len(sizes)),
             I64([1] * len(sizes))], error=SAME)
        for sizes in ([3, 4], [2**62, 4], [2**62, 4, 0], [-1, 3])
    ),
    *(
        Case("SparseAdd", [I64(a), F(range(1, 1 + len(a))), I64([3, 3]), I64(b), F(range(-1, len(b) - 1)), I64([3, 3]),
             F(thresh)], error=SAME, id=f"{a}{b}{thresh}")
        for a, b in (
            ([[0, 1], [2, 0]], [[0, 0], [0, 1]]), ([[2, 0], [0, 1]], [[0, 1], [2, 0]]),
            ([[0, 1], [0, 1]], [[0, 1]]), ([[1, 1], [0, 0], [2, 2]], [[0, 0], [1, 1], [1, 1]]),
            ([[0, 9], [1, -1]], [[0, 9], [1, 0]]),
        )
        for thresh in (0, 2)
    ),
    *(
        Case("ReverseSequence", [np.zeros(shape, F), I32([1, 2])], {"seq_dim": seq, "batch_dim": batch}, error=BAD)
        for shape, seq, batch in (((2,), -1, 0), ((2, 3), -1, 0), ((3, 2), 0, -1), ((2, 3), -2, -1))
    ),
    *(
        Case("StatelessShuffle", [np.zeros(shape, F), np.uint64(key), np.uint64(counter), I32(algorithm)], error=BAD)
        for shape in ((), (1,), (0,), (3,))
        for key, counter, algorithm in (([1], [1, 2], 0), (1, [1, 2], 1), ([1], [1, 2], [1]), ([1], [[1, 2]], 1))
    ),
    Case("InplaceAdd", [F(1), I32([0]), F(1)], error=BAD),
    Case("InplaceAdd", [F([1, 2]), I32([0]), F([1])]),
    *(Case("LRN", [sample("float32", (1, 2, 2, 8))], {"depth_radius": n}, error=BAD) for n in (-1, 1 << 40)),
    Case("StringFormat", [np.uint8([1, 2])], {"template": b"<%s>", "placeholder": b"%s", "summarize": 1 << 40},
         error=BAD),
    *(
        Case(op, [F([[1]]) if op == "RFFT" else np.complex64([[1]]), I32([1])], {"Tcomplex": "complex128"}, error=SAME)
        for op in ("RFFT", "IRFFT")
    ),
    Case("SparseReduceSum", [I64([[0, 0]]), F([1]), I64([3, 4]), I32([[1]])], error=BAD),
    Case("Bincount", [I32([3, 1, 3]), I32(5), I64([[-2, 4, 1]])]),
    Case("FractionalMaxPool", [np.zeros((0, 4, 4, 1), F)], {"pooling_ratio": [1, 1.44, 1.73, 1]}, error=BAD),
    Case("FractionalAvgPoolGrad",
         [I64([1, 4, 4, 1]), sample("float32", (1, 2, 2, 1)), I64([[0, 2, 4]]), I64([0, 2, 4])]),
    Case("MaxPoolGradV2", [sample("float32", (1, 4, 4, 1)), sample("float32", (1, 4, 4, 1)),
         sample("float32", (1, 4, 4, 1)), I32([[1, 1, 1, 1]]), I32([1, 1, 1, 1])], {"padding": "SAME"}),
    *(
        Case("QuantizedMul", [np.uint8(values), np.uint8([2]), F(0), F(high), F(0), F(1)],
             {"T1": "quint8", "T2": "quint8", "Toutput": "qint32"}, error=BAD)
        for values, high in (([], 0), ([1], 0))
    ),
    *(
        Case("Range", [F(start), F(limit), F(delta)], error=BAD)
        for start, limit, delta in (
            (np.nan, 3, 1), (0, 3, np.nan), (0, np.inf, 1), (np.inf, np.inf, 1), (0, 1, 1e-30), (-3e38, 3e38, 1e-38)
        )
    ),
]  # fmt: skip


@suite(CASES)
def test_wrong(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.op)
def test_what_tensorflow_does_not_refuse(case: Case) -> None:
    with pytest.raises(InvalidArgumentError):
        run_ours(case)


def test_faster_kernels_take_no_types_that_no_kernel_defines() -> None:
    """Else what runs would depend on which libraries are installed."""
    faster = [entry for entry in registry.all_kernels("CPU") if not entry.defines]
    defining = {entry.op: [] for entry in faster}
    for entry in registry.all_kernels("CPU"):
        if entry.defines and entry.op in defining:
            defining[entry.op].append(entry)
    for entry in faster:
        taken = {
            name: frozenset(entry.types.get(name) or attr.allowed or dtypes.ALL)
            for name, attr in opdefs.get(entry.op).attrs.items()
        }
        defined = [slow.types for slow in defining[entry.op]]
        assert any(all(taken[name] <= allowed for name, allowed in types.items()) for types in defined), (
            f"{entry.op} {dict(entry.types)}"
        )


def test_rounds_without_end() -> None:
    """NumPy refuses the words that they would need, and a step makes RESOURCE_EXHAUSTED or INVALID_ARGUMENT of it."""
    shuffle = Case("RandomIndexShuffle", [I64([0, 3]), I64([1, 2, 3]), I64(9)], {"rounds": 1 << 60})
    with pytest.raises((MemoryError, ValueError)):
        run_ours(shuffle)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16-BE", "UTF-32-BE"])
@pytest.mark.parametrize("errors", ["replace", "ignore"])
@pytest.mark.parametrize("shift", range(4))
def test_long_texts_are_decoded_piece_by_piece(encoding: str, errors: str, shift: int) -> None:
    """What begins in one piece and ends in the next is one character."""
    bad = {"UTF-8": b"\xff", "UTF-16-BE": b"\xdc\x00", "UTF-32-BE": b"\xff\xff\xff\xff"}[encoding]
    part = "a\xe9\u20ac\U0001f600".encode(encoding) + bad
    attrs = {"input_encoding": encoding.encode(), "errors": errors.encode(), "Tsplits": "int64"}
    times = 20_000 // len(part)
    start = ("b" * shift).encode(encoding)
    splits, codes, offsets = run_ours(Case("UnicodeDecodeWithOffsets", [texts(start + part * times)], attrs))
    _, once, at = run_ours(Case("UnicodeDecodeWithOffsets", [texts(part)], attrs))
    assert codes.tolist() == [98] * shift + once.tolist() * times
    first = np.arange(shift) * (len(start) // max(shift, 1))
    assert offsets.tolist() == [*first, *(len(start) + len(part) * i + o for i in range(times) for o in at.tolist())]
    assert splits.tolist() == [0, len(codes)]
