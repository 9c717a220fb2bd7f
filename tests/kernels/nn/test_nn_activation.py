"""Activations, biases, softmaxes, losses and normalizations against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.op_suite import (
    COMPLEX,
    FLOATS,
    NUMBERS,
    REALS,
    SAME,
    Case,
    check,
    check_against,
    run_ours,
    run_tensorflow,
    sample,
    special,
    suite,
    table,
)

pytestmark = pytest.mark.tensorflow

SHAPES: list[tuple[int, ...]] = [(), (0, 3), (3, 4), (2, 3, 2, 5)]


def activations() -> Iterator[Case]:
    yield from table("Relu", REALS, SHAPES[:3])
    yield from table("Relu6", REALS, SHAPES[:3], high=9)
    yield from table("Relu", FLOATS, (), with_special=True)
    yield from table("Relu6", FLOATS, (), with_special=True)
    for op in ("Elu", "Selu", "Softplus", "Softsign"):
        yield from table(op, FLOATS, SHAPES)
    for alpha in (0.2, 0.0, 0.5):
        yield from table("LeakyRelu", FLOATS, SHAPES, [{"alpha": alpha}])
    for dtype in FLOATS:
        finite = special(dtype)
        finite = finite[np.isfinite(finite.astype(np.float64))]
        for op in ("Elu", "Selu", "Softplus", "LeakyRelu"):
            yield Case(op, [finite], id=f"{dtype}-finite")
    for op, types in (("ReluGrad", REALS), ("Relu6Grad", REALS)):
        yield from table(op, types, [[(3, 4), (3, 4)], [(0,), (0,)]], high=9)
    for op in ("EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"):
        yield from table(op, FLOATS, [[(3, 4), (3, 4)]])
    yield from table("LeakyReluGrad", FLOATS, [[(3, 4), (3, 4)]], [{"alpha": 0.2}, {"alpha": 0.0}])
    # float64: TensorFlow's oneDNN gradients do not check shapes
    for op in ("ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad"):
        yield Case(op, [sample("float64", (2, 3)), sample("float64", (3, 2))], error=SAME)


def biases() -> Iterator[Case]:
    for dtype in NUMBERS:
        more = {"data_format": "NCHW"}
        yield Case("BiasAdd", [sample(dtype, (2, 3)), sample(dtype, (3,))])
        yield Case("BiasAdd", [sample(dtype, (2, 3, 2, 4)), sample(dtype, (3,))], more)
        yield Case("BiasAddV1", [sample(dtype, (2, 2, 3)), sample(dtype, (3,))])
        yield Case("BiasAddGrad", [sample(dtype, (4, 3))])
        yield Case("BiasAddGrad", [sample(dtype, (2, 3, 2, 2))], more)
    yield Case("BiasAdd", [sample("float32", (2, 3, 4)), sample("float32", (4,))])
    yield Case("BiasAdd", [sample("float32", (2, 3, 4)), sample("float32", (3,))], {"data_format": "NCHW"})
    yield Case("BiasAdd", [sample("float32", (2, 3, 2, 2, 4)), sample("float32", (3,))], {"data_format": "NCHW"})
    yield Case("BiasAdd", [sample("float32", (0, 3)), sample("float32", (3,))])
    yield Case("BiasAdd", [sample("float32", (3,)), sample("float32", (3,))], error="INVALID_ARGUMENT")
    yield Case("BiasAdd", [sample("float32", (2, 3)), sample("float32", (4,))], error="INVALID_ARGUMENT")
    yield Case("BiasAdd", [sample("float32", (2, 3)), sample("float32", (1, 3))], error="INVALID_ARGUMENT")
    yield Case("BiasAddGrad", [sample("float32", (3,))], error="INVALID_ARGUMENT")
    yield Case("BiasAddGrad", [sample("float32", (0, 3))])


def losses() -> Iterator[Case]:
    for dtype in FLOATS:
        for shape in [(5,), (3, 4), (2, 0), (2, 3, 4)]:
            yield Case("Softmax", [sample(dtype, shape)])
            yield Case("LogSoftmax", [sample(dtype, shape)])
        for shape in [(), (0,), (7,), (3, 4)]:
            yield Case("L2Loss", [sample(dtype, shape)])
        labels = np.abs(sample(dtype, (3, 4), 0, 1)) / 2
        labels = labels.astype(sample(dtype).dtype)
        yield Case("SoftmaxCrossEntropyWithLogits", [sample(dtype, (3, 4)), labels])
        yield Case("SoftmaxCrossEntropyWithLogits", [sample(dtype, (1, 4)), labels])
        yield Case("SoftmaxCrossEntropyWithLogits", [sample(dtype, (3, 4)), labels[:1]])
        yield Case("SoftmaxCrossEntropyWithLogits", [sample(dtype, (0, 4)), sample(dtype, (0, 4))])
        yield Case("SoftmaxCrossEntropyWithLogits", [sample(dtype, (3, 4)), sample(dtype, (3, 5))], error=SAME)
        yield Case("SoftmaxCrossEntropyWithLogits", [sample(dtype, (3,)), sample(dtype, (3,))], error=SAME)
        for index in (np.int32, np.int64):
            op = "SparseSoftmaxCrossEntropyWithLogits"
            yield Case(op, [sample(dtype, (3, 4)), index([0, 3, 1])])
            yield Case(op, [sample(dtype, (0, 4)), index([])])
            yield Case(op, [sample(dtype, (3, 4)), index([0, 4, 1])], error="INVALID_ARGUMENT")
            yield Case(op, [sample(dtype, (3, 4)), index([0, -1, 1])], error="INVALID_ARGUMENT")
            yield Case(op, [sample(dtype, (3, 4)), index([0, 1])], error="INVALID_ARGUMENT")
            yield Case(op, [sample(dtype, (3,)), index([0, 1, 1])], error="INVALID_ARGUMENT")
            yield Case(op, [sample(dtype, (3, 4)), index([[0], [1], [1]])], error="INVALID_ARGUMENT")
    yield Case("Softmax", [np.float32([[1e30, -1e30, 0], [-np.inf, 0, 1]])], id="extreme")
    yield Case("LogSoftmax", [np.float32([[1e30, -1e30, 0], [-3e38, 0, 1]])], id="extreme")
    yield Case("Softmax", [np.float64(1)], error=SAME)


def norms() -> Iterator[Case]:
    scale, offset = sample("float32", (3,), 0.5, 2), sample("float32", (3,), seed=1)
    mean, variance = sample("float32", (3,), seed=2), sample("float32", (3,), 0.1, 4)
    for dtype, shape in product(("float32", "float16", "bfloat16"), [(2, 4, 5, 3), (1, 1, 1, 3), (0, 4, 5, 3)]):
        x, dy = sample(dtype, shape), sample(dtype, shape, seed=9)
        for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
            if op == "FusedBatchNorm" and dtype != "float32":
                continue
            # the reserve spaces are the kernel's private business: in TensorFlow not even their shapes are fixed
            more: dict[str, Any] = {"normalize": lambda outputs: outputs[:3]}
            for training, factor in ((True, 1.0), (True, 0.25), (False, 1.0)):
                if shape[:3] == (1, 1, 1) and training:
                    continue  # one element: the oneDNN variance is 0/0
                if 0 in shape and training and factor != 1:
                    continue
                attrs = {"is_training": training, "exponential_avg_factor": factor, "epsilon": 0.01}
                empty = np.zeros(0, np.float32)
                stats = [empty, empty] if training and factor == 1 else [mean, variance]
                yield Case(op, [x, scale, offset, *stats], attrs, **more)
            gradient = op.replace("Norm", "NormGrad")
            third = [np.zeros(0, np.float32)] if op.endswith("V3") else []
            if 0 in shape:
                continue
            for training in (True, False):
                rows = x.astype(np.float32).reshape(-1, 3)
                stats = [rows.mean(axis=0), rows.var(axis=0)] if training else [mean, variance]
                attrs = {"is_training": training, "epsilon": 0.01}
                yield Case(gradient, [dy, x, scale, *stats, *third], attrs, **more)
    x = sample("float32", (2, 4, 5, 3))
    five = sample("float32", (2, 2, 3, 2, 3))
    yield Case(
        "FusedBatchNormV3", [five, scale, offset, mean, variance], {"data_format": "NDHWC", "is_training": False},
        normalize=lambda outputs: outputs[:3],
    )  # fmt: skip
    for bad in ([x[0], scale, offset, mean, variance], [x, scale[:2], offset, mean, variance],
                [x, scale, offset[None], mean, variance], [x, scale, offset, mean[:1], variance]):  # fmt: skip
        yield Case("FusedBatchNormV2", bad, {"is_training": False}, error="INVALID_ARGUMENT")
    for dtype, attrs in product(
        ("float32", "float16"),  # TensorFlow has bfloat16 in XLA alone
        ({}, {"depth_radius": 2, "alpha": 0.3, "beta": 0.75, "bias": 2.0}, {"depth_radius": 1, "beta": 1.0}),
    ):
        x, dy = sample(dtype, (2, 3, 2, 7), -1, 1), sample(dtype, (2, 3, 2, 7), -1, 1, seed=3)
        y = run_ours(Case("LRN", [x], attrs))[0]
        yield Case("LRN", [x], attrs)
        yield Case("LRNGrad", [dy, x, y], attrs)
    yield Case("LRN", [sample("float32", (3, 4))], error="INVALID_ARGUMENT")
    x = sample("float32", (2, 3))
    vectors = [sample("float32", (3,), 0.5, 2, seed) for seed in range(4)]
    for scaled in (True, False):
        attrs = {"variance_epsilon": 0.01, "scale_after_normalization": scaled}
        x, dy = sample("float32", (2, 3, 2, 3)), sample("float32", (2, 3, 2, 3), seed=5)
        old = {"graph": True, "producer": 8}  # deprecated since producer 9
        yield Case("BatchNormWithGlobalNormalization", [x, *vectors], attrs, **old)
        yield Case("BatchNormWithGlobalNormalizationGrad", [x, *vectors[:3], dy], attrs, **old)


@suite([*activations(), *biases(), *losses(), *norms()])
def test_nn(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_complex_bias(tf: ModuleType) -> None:
    for dtype in COMPLEX:
        check(Case("BiasAdd", [sample(dtype, (3, 2)), sample(dtype, (2,))]))


@pytest.mark.parametrize("training", [True, False])
def test_channels_first_batch_norm(training: bool, tf: ModuleType) -> None:
    """TensorFlow's CPU transposes; so does the expectation here."""
    x, dy = sample("float32", (2, 4, 5, 3)), sample("float32", (2, 4, 5, 3), seed=1)
    stats = [sample("float32", (3,), 0.5, 2, seed) for seed in range(4)]
    attrs = {"is_training": training}
    empty = np.zeros(0, np.float32)
    inputs = [*stats[:2], *([empty, empty] if training else stats[2:])]
    expected = run_tensorflow(Case("FusedBatchNormV3", [x, *inputs], attrs))
    first = Case("FusedBatchNormV3", [np.moveaxis(x, -1, 1), *inputs], {**attrs, "data_format": "NCHW"},
                 normalize=lambda outputs: outputs[:3])  # fmt: skip
    check_against(first, [np.moveaxis(expected[0], -1, 1), *expected[1:3]])
    third = np.zeros(0, np.float32)
    inputs = [stats[0], *stats[2:], third]
    expected = run_tensorflow(Case("FusedBatchNormGradV3", [dy, x, *inputs], attrs))
    moved = [np.moveaxis(dy, -1, 1), np.moveaxis(x, -1, 1)]
    first = Case("FusedBatchNormGradV3", [*moved, *inputs], {**attrs, "data_format": "NCHW"},
                 normalize=lambda outputs: outputs[:3])  # fmt: skip
    check_against(first, [np.moveaxis(expected[0], -1, 1), *expected[1:3]])


@settings(max_examples=40, deadline=None, print_blob=True)
@given(data=st.data())
def test_cross_entropy_of_any_shape(data: st.DataObject, tf: ModuleType) -> None:
    batch, classes = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 6))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    scale = data.draw(st.sampled_from([1, 30, 1000]))
    logits = sample(dtype, (batch, classes), -scale, scale, seed=data.draw(st.integers(0, 99)))
    labels = np.int64(data.draw(st.lists(st.integers(-1, classes), min_size=batch, max_size=batch)))
    check(Case("SparseSoftmaxCrossEntropyWithLogits", [logits, labels], error=SAME))
    check(Case("Softmax", [logits]))
