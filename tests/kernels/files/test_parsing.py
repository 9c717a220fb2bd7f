"""Parsing of examples, CSV and raw bytes against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import example_pb2
from tests.kernels.op_suite import SAME, Case, check, compare, run_ours, run_tensorflow, sample, suite
from tests.kernels.strings.test_string import s

pytestmark = pytest.mark.tensorflow

BAD = {"error": "INVALID_ARGUMENT"}
F, I = np.float32, np.int64
NONE = np.zeros(0, object)


def feature(values: Any) -> dict[str, Any]:
    """Keyword arguments of a Feature with these values."""
    first = values[0] if len(values) else None
    kind = "bytes_list" if isinstance(first, bytes) else "float_list" if isinstance(first, float) else "int64_list"
    return {kind: {"value": values}}


def example(**features: Any) -> bytes:
    message = example_pb2.Example()
    for key, values in features.items():
        message.features.feature[key].MergeFrom(type(message.features.feature[key])(**feature(values)))
    return message.SerializeToString()


def sequence(context: dict[str, Any], lists: dict[str, list[Any]]) -> bytes:
    message = example_pb2.SequenceExample()
    for key, values in context.items():
        target = message.context.feature[key]
        target.MergeFrom(type(target)(**feature(values)))
    for key, steps in lists.items():
        target_list = message.feature_lists.feature_list[key]
        target_list.SetInParent()
        for values in steps:
            target_list.feature.add(**feature(values))
    return message.SerializeToString()


ROWS = [
    example(a=[1, 2, 3], b=[0.5, 1.5], c=[b"x"], d=[7], e=[1.0, 2.0, 3.0, 4.0]),
    example(b=[2.5, 3.5], c=[b"yy", b""], d=[8]),
    example(a=[4], b=[1.0, 2.0], d=[9], e=[5.0, 6.0]),
]
ONE = ROWS[0]


def v2(rows: Any, sparse: Any = (), dense: Any = (), ragged: Any = (), names: Any = NONE, **case: Any) -> Case:
    """ParseExampleV2; sparse: (key, type), dense: (key, default, shape), ragged: (key, type, splits)."""
    keys = [s(*(row[0] for row in form), shape=(-1,)) if form else NONE for form in (sparse, dense, ragged)]
    attrs = {
        "num_sparse": len(sparse), "sparse_types": [t for _, t in sparse], "dense_shapes": [d[2] for d in dense],
        "ragged_value_types": [r[1] for r in ragged], "ragged_split_types": [r[2] for r in ragged],
    }  # fmt: skip
    if not dense:
        attrs["Tdense"] = []
    serialized = s(*rows, shape=(-1,)) if isinstance(rows, list) else s(rows)
    return Case("ParseExampleV2", [serialized, names, *keys, [d[1] for d in dense]], attrs, **case)


DENSE = [("b", np.zeros(0, F), (2,)), ("d", np.array([5], I), (1,))]


def examples() -> Iterator[Case]:
    yield v2(ROWS, [("a", "int64"), ("c", "string"), ("b", "float32"), ("no", "int64")])
    yield v2(
        ROWS, dense=[("b", np.zeros(0, F), (2,)), ("d", np.array(5, I), ()), ("no", np.array([[1, 2]], I), (1, 2))]
    )
    yield v2(
        ROWS, dense=[("e", np.array(-1, F), (None,)), ("a", np.array([0], I), (None, 1)), ("no", s(b"p"), (None,))]
    )
    yield v2(ROWS, dense=[("e", np.array(-1, F), (None, 2))])
    yield v2(ROWS, ragged=[("a", "int64", "int32"), ("c", "string", "int64"), ("no", "float32", "int64")])
    yield v2(ROWS, [("a", "int64")], [("d", np.zeros(0, I), (1,))], [("e", "float32", "int32")], id="all-forms")
    yield v2([], [("a", "int64")], [("d", np.zeros(0, I), (1,))], [("e", "float32", "int32")], id="no-examples")
    yield v2(ONE, [("a", "int64"), ("no", "string")], [("b", np.zeros(0, F), (2,))], id="scalar")
    yield v2(ONE, dense=[("e", np.array(0, F), (None,)), ("no", np.array(0, F), (None,))], id="scalar-variable")
    yield v2(ROWS, dense=[("a", np.zeros(0, I), (1,))], id="required", **BAD)
    yield v2(ROWS, dense=[("b", np.zeros(0, F), (3,))], id="count", **BAD)
    yield v2(ROWS, dense=[("b", np.zeros(0, I), (2,))], id="type", **BAD)
    yield v2(ROWS, [("a", "float32")], id="sparse-type", **BAD)
    yield v2(ROWS, ragged=[("c", "int64", "int32")], id="ragged-type", **BAD)
    yield v2(ROWS, dense=[("e", np.array(0, F), (None, 3))], id="stride", **BAD)
    yield v2(ROWS, dense=[("e", np.zeros(2, F), (None,))], id="padding", **BAD)
    yield v2(ROWS, dense=[("b", np.zeros(3, F), (2,))], id="default", **BAD)
    yield v2([b"garbage"], [("a", "int64")], id="garbage", **BAD)
    yield v2(ROWS, [("a", "int64")], names=s("one", "two", shape=(2,)), id="names", **BAD)
    old = {"sparse_types": ["int64"], "dense_shapes": [(2,), (1,)]}
    rows = s(*ROWS, shape=(-1,))
    keys = [[s("a")], [s("b"), s("d")], [d[1] for d in DENSE]]
    yield Case("ParseExample", [rows, NONE, *keys], old)
    yield Case("ParseExample", [s(ONE), NONE, *keys], old, **BAD)
    single = {
        "sparse_keys": ["a", "no"], "dense_keys": ["b", "d"], "num_sparse": 2, "sparse_types": ["int64", "string"],
        "dense_shapes": [(2,), (1,)],
    }  # fmt: skip
    yield Case("ParseSingleExample", [s(ONE), keys[2]], single)
    yield Case("ParseSingleExample", [s(b"garbage"), keys[2]], single, **BAD)
    yield Case("ParseSingleExample", [s(example(a=[1])), keys[2]], single, **BAD)


STEPS = [
    sequence(
        {"id": [1], "w": [0.5], "x": [8, 9]},
        {"t": [[1, 2], [], [3]], "v": [[1.0, 2.0], [3.0, 4.0]], "u": [[5], [], [6, 7]], "z": [[0.5]]},
    ),
    sequence({"id": [2]}, {"t": [[4]], "v": []}),
]


def sequences() -> Iterator[Case]:
    common = {
        "Ncontext_sparse": 1, "context_sparse_types": ["float32"], "Nfeature_list_sparse": 1, "Nfeature_list_dense": 1,
        "feature_list_sparse_types": ["int64"], "feature_list_dense_types": ["float32"],
        "feature_list_dense_shapes": [(2,)], "context_dense_shapes": [(1,)],
    }  # fmt: skip
    v1 = {
        **common, "context_sparse_keys": ["w"], "context_dense_keys": ["id"], "Ncontext_dense": 1,
        "feature_list_sparse_keys": ["t"], "feature_list_dense_keys": ["v"],
        "feature_list_dense_missing_assumed_empty": ["v"],
    }  # fmt: skip
    both = s(*STEPS, shape=(2,))
    default = [np.zeros(0, I)]
    yield Case("ParseSequenceExample", [both, NONE, default], v1)
    missing = s(sequence({"id": [3]}, {}), STEPS[0], shape=(2,))
    yield Case("ParseSequenceExample", [missing, NONE, default], v1, id="missing")
    strict = {**v1, "feature_list_dense_missing_assumed_empty": []}
    yield Case("ParseSequenceExample", [missing, NONE, default], strict, id="required", **BAD)
    yield Case(
        "ParseSequenceExample", [both, NONE, default], {**v1, "feature_list_dense_shapes": [(3,)]}, id="n", **BAD
    )
    huge = {**v1, "feature_list_dense_shapes": [(1 << 62,)]}  # refused before there is room for it
    yield Case("ParseSequenceExample", [both, NONE, default], huge, id="huge", **BAD)
    yield Case("ParseSequenceExample", [s(b"garbage", shape=(1,)), NONE, default], v1, id="garbage", **BAD)
    for row in STEPS:
        inputs = [s(row), s("v", shape=(1,)), [s("w")], [s("id")], [s("t")], [s("v")], default, s("name")]
        yield Case("ParseSingleSequenceExample", inputs, common)
    v2_attrs = {
        **common, "context_ragged_value_types": ["int64"], "context_ragged_split_types": ["int32"],
        "feature_list_ragged_value_types": ["int64", "float32"], "feature_list_ragged_split_types": ["int64", "int32"],
    }  # fmt: skip
    keys = [s(*k, shape=(-1,)) for k in (["w"], ["id"], ["x"], ["t"], ["v"], ["u", "z"])]
    yield Case("ParseSequenceExampleV2", [both, NONE, *keys, np.array([True]), default], v2_attrs)
    yield Case("ParseSequenceExampleV2", [missing, NONE, *keys, np.array([True]), default], v2_attrs)
    keys[2] = keys[0]
    yield Case("ParseSequenceExampleV2", [both, NONE, *keys, np.array([True]), default], v2_attrs, id="twice", **BAD)


def raw() -> Iterator[Case]:
    for dtype, little in product(
        (
            "float32",
            "float16",
            "bfloat16",
            "float64",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "int64",
            "complex64",
        ),
        (True, False),
    ):
        data = sample("uint8", (2, 16), 0, 60)
        texts = s(*(row.tobytes() for row in data), shape=(2, 1))
        attrs = {"out_type": dtype, "little_endian": little}
        yield Case("DecodeRaw", [texts], attrs)
        if dtype not in ("complex64", "float16"):  # TensorFlow has no kernels for these
            yield Case("DecodePaddedRaw", [s(b"\x01\x02\x03", b"", b"x" * 40), np.int32(16)], attrs)
    yield Case("DecodeRaw", [s(b"\x01\x00")], {"out_type": "bool"})
    yield Case("DecodeRaw", [s(b"\x01\x00\x02")], {"out_type": "int16"}, **BAD)
    yield Case("DecodeRaw", [s(b"\x01", b"ab")], {"out_type": "int8"}, **BAD)
    yield Case("DecodeRaw", [NONE], {"out_type": "int8"})
    yield Case("DecodeRaw", [s(b"")], {"out_type": "int32"})
    yield Case("DecodePaddedRaw", [s(b"abc"), np.int32(3)], {"out_type": "int16"}, **BAD)
    for value in (sample("float32", (2, 3)), np.int64(7), s("a", "bc"), np.array([True]), sample("complex64", (2,))):
        yield Case("SerializeTensor", [value])
        text = run_ours(Case("SerializeTensor", [value]))[0]
        yield Case("ParseTensor", [text], {"out_type": "string" if value.dtype == object else str(value.dtype)})
    yield Case("ParseTensor", [text], {"out_type": "int32"}, **BAD)
    yield Case("ParseTensor", [s(b"garbage")], {"out_type": "int32"}, **BAD)
    import gzip
    import zlib

    for kind, pack in (("", bytes), ("ZLIB", zlib.compress), ("GZIP", gzip.compress)):
        yield Case("DecodeCompressed", [s(pack(b"hello" * 9), pack(b""))], {"compression_type": kind})
    yield Case("DecodeCompressed", [s("x")], {"compression_type": "LZO"}, **BAD)


def csv() -> Iterator[Case]:
    lines = s("1,2.5,abc", '-3,,"q,""x"""', " 7 ,1e3,", shape=(3,))
    defaults: list[Any] = [np.int32([]), np.float32([9]), s("d", shape=(1,))]
    yield Case("DecodeCSV", [lines, defaults])
    yield Case("DecodeCSV", [lines[:1].reshape(1, 1), defaults])
    yield Case("DecodeCSV", [s("1;2"), [np.int64([0]), np.float64([0])]], {"field_delim": ";"})
    yield Case("DecodeCSV", [s("NA,2"), [np.int64([5]), np.float64([0])]], {"na_value": "NA"})
    yield Case("DecodeCSV", [s("a,b,c,d"), [s("", shape=(1,)), s("", shape=(1,))]], {"select_cols": [1, 3]})
    yield Case("DecodeCSV", [s('a"b,c'), [s("", shape=(1,))] * 2], {"use_quote_delim": False})
    yield Case("DecodeCSV", [s("5"), [np.int32(3)]], id="scalar-default")
    for text in (
        ",x",
        "x,y",
        "1",
        "1,2,3",
        '"a"b,2',
        '"a,2',
        'a"b,2',
        "1.5,2",
        "99999999999,2",
        "1_0,2",
        ",",
        "1,2,",
        '"1",2',
        "1,\n2",
    ):
        yield Case("DecodeCSV", [s(text), [np.int32([]), np.float32([])]], error=SAME, id=f"{text!a}")
    yield Case("DecodeCSV", [s("1,2"), [np.int32([1, 2]), np.float32([])]], **BAD)
    yield Case("DecodeCSV", [s("1"), [np.int32([1])]], {"field_delim": ""}, **BAD)


CASES = [*examples(), *sequences(), *raw(), *csv()]


@suite(CASES)
def test_parsing(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_json(tf: ModuleType) -> None:
    text = s('{"features": {"feature": {"a": {"int64List": {"value": ["1", "2"]}}}}}')
    mine, theirs = (run(Case("DecodeJSONExample", [text]))[0].item() for run in (run_ours, run_tensorflow))
    assert tf.train.Example.FromString(mine) == tf.train.Example.FromString(theirs)
    check(Case("DecodeJSONExample", [s("{")], error="INVALID_ARGUMENT"))


@settings(max_examples=40, deadline=None, print_blob=True)
@given(rows=st.lists(st.lists(st.integers(-(2**40), 2**40), max_size=4), min_size=1, max_size=5))
def test_any_lengths(rows: list[list[int]], tf: ModuleType) -> None:
    texts = [example(a=row, b=[float(v) for v in row], c=row) if row else example() for row in rows]
    dense = [("b", np.array(-1, F), (None,))]
    case = v2(texts, [("a", "int64")], dense, [("c", "int64", "int32")])
    for mine, theirs in zip(run_ours(case), run_tensorflow(case), strict=True):
        compare(mine, theirs)
