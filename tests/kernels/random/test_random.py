"""Random numbers: the same as TensorFlow's for the same seeds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.op_suite import FLOATS, SAME, Case, check, compare, run_ours, run_tensorflow, sample, suite
from tests.kernels.state_suite import StateCase, Var, check_state
from tests.kernels.step import FakeStep
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.random import libm
from toolkit.kernels.random.philox import Philox, WordStream

pytestmark = pytest.mark.tensorflow

SHAPES = [(), (1,), (7,), (3, 5), (0, 2), (2, 500)]
SEEDS = [(1, 2), (87654321, -5), (2**40 + 3, 0), (0, 9)]
#: all numbers are the same bits
EXACT = {"exact": True}


def stateful() -> Iterator[Case]:
    for op, dtype, shape in product(("RandomUniform", "RandomStandardNormal", "TruncatedNormal"), FLOATS, SHAPES):
        for seed, seed2 in SEEDS if shape in ((7,), (2, 500)) else SEEDS[:1]:
            attrs = {"dtype": dtype, "seed": seed, "seed2": seed2}
            yield Case(op, [np.int32(shape)], attrs, graph=True, **EXACT)
    for index, shape in product((np.int32, np.int64), SHAPES):
        attrs = {"seed": 5, "seed2": 6}
        for low, high in ((0, 10), (-7, 1 << 30), (np.iinfo(index).min, np.iinfo(index).max)):
            yield Case("RandomUniformInt", [np.int32(shape), index(low), index(high)], attrs, graph=True)
    yield Case("RandomUniformInt", [np.int32([2]), 3, 3], {"seed": 5}, graph=True, error="INVALID_ARGUMENT")
    yield Case("RandomUniformInt", [np.int32([2]), [3], 3], {"seed": 5}, graph=True, error="INVALID_ARGUMENT")
    yield Case("RandomUniformInt", [np.int32([0]), 3, 3], {"seed": 5}, graph=True, error=SAME)
    yield Case("RandomUniform", [np.int32([-1])], {"dtype": "float32"}, graph=True, error="INVALID_ARGUMENT")
    yield Case("RandomUniform", [np.int32([[1]])], {"dtype": "float32"}, graph=True, error="INVALID_ARGUMENT")
    for value in (np.arange(10), np.arange(1), np.zeros((0,)), sample("float32", (37, 2, 3)), sample("string", (6,))):
        yield Case("RandomShuffle", [value], {"seed": 3, "seed2": 4}, graph=True)
    for dtype, index in product(FLOATS, ("int32", "int64")):
        for shape, count in (((1, 5), 3), ((3, 7), 10), ((2, 1), 4), ((0, 3), 2), ((2, 3), 0)):
            attrs = {"seed": 3, "seed2": 4, "output_dtype": index}
            yield Case("Multinomial", [sample(dtype, shape, -2, 2), np.int32(count)], attrs, graph=True)
    holes = np.float32([[0, -np.inf, 1, np.nan], [np.inf, 1, 2, -np.inf]])
    yield Case("Multinomial", [holes, 20], {"seed": 3, "seed2": 4}, graph=True)
    for logits, count in ((np.float32([1, 2]), 1), (np.float32([[1]]), -1), (np.zeros((2, 0), np.float32), 1)):
        yield Case("Multinomial", [logits, np.int32(count)], {"seed": 1}, graph=True, error="INVALID_ARGUMENT")


def stateless() -> Iterator[Case]:
    for shape, (seed, seed2) in product(SHAPES, SEEDS):
        seeds = np.int64([seed, seed2])
        generator = Philox.scrambled(seed, seed2)
        key, counter = np.uint64([generator.key]), np.uint64([generator.counter & (2**64 - 1), generator.counter >> 64])
        for dtype in FLOATS if shape == (7,) else ("float32", "float64"):
            for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
                yield Case(op, [np.int32(shape), seeds], {"dtype": dtype}, **EXACT)
                yield Case(f"{op}V2", [np.int32(shape), key, counter, np.int32(1)], {"dtype": dtype}, **EXACT)
        for dtype in ("int32", "int64", "uint32", "uint64"):
            attrs = {"dtype": dtype}
            yield Case("StatelessRandomUniformFullInt", [np.int32(shape), seeds], attrs)
            yield Case("StatelessRandomUniformFullIntV2", [np.int32(shape), key, counter, np.int32(3)], attrs)
            low, high = np.array(2, dtype), np.array(1000, dtype)
            if dtype.startswith("int"):
                yield Case("StatelessRandomUniformInt", [np.int32(shape), seeds, low, high])
                yield Case("StatelessRandomUniformIntV2", [np.int32(shape), key, counter, np.int32(1), low, high])
        yield Case("StatelessRandomGetKeyCounter", [seeds])
        yield Case("StatelessRandomGetKeyCounterAlg", [seeds])
    yield Case("StatelessRandomGetAlg", [])
    yield Case("StatelessMultinomial", [sample("float32", (3, 7), -2, 2), 10, np.int64([4, 5])])
    yield Case("StatelessMultinomial", [sample("float64", (1, 4), -2, 2), 5, np.int32([4, 5])])
    bad = {"error": "INVALID_ARGUMENT"}
    yield Case("StatelessRandomUniform", [np.int32([2]), np.int64([1, 2, 3])], {"dtype": "float32"}, **bad)
    yield Case("StatelessRandomUniformInt", [np.int32([2]), np.int64([1, 2]), 4, 4], **bad)
    key, counter = np.uint64([5]), np.uint64([1, 2])
    for case in ([[2], key, counter, 2], [[2], np.uint64([1, 2]), counter, 1]):
        yield Case("StatelessRandomUniformV2", [np.int32(case[0]), *case[1:]], {"dtype": "float32"}, **bad)


@suite([*stateful(), *stateless()])
def test_random(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("RandomUniform", [np.int32([5])], {"dtype": "float32"}),
        ("RandomStandardNormal", [np.int32([3])], {"dtype": "float64"}),
        ("TruncatedNormal", [np.int32([9])], {"dtype": "float32"}),
        ("RandomUniformInt", [np.int32([5]), np.int32(0), np.int32(1000)], {}),
        ("RandomShuffle", [np.arange(11)], {}),
        ("Multinomial", [np.float32([[1, 2, 3], [0, 0, 0]]), np.int32(5)], {}),
    ],
)
def test_executions_go_on(op: str, inputs: list[Any], attrs: dict[str, Any], tf: ModuleType) -> None:
    """A stateful op moves its generator on as TensorFlow's does: run three times in one session."""
    from tests.kernels.op_suite import build, prepare

    v1 = tf.compat.v1
    case = Case(op, inputs, {**attrs, "seed": 11, "seed2": 22})
    ready = prepare(case)
    proto = v1.GraphDef.FromString(build(case, ready).graph.to_proto().SerializeToString())
    step = FakeStep()
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(proto, name="")
        feeds = {graph.get_tensor_by_name(f"in{i}:0"): value for i, value in enumerate(ready.inputs)}
        with v1.Session() as session:
            for _ in range(3):
                expected = session.run("node:0", feeds)
                compare(run_ours(case, step=step, ready=ready)[0], expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["StatelessRandomNormal", "StatelessTruncatedNormal"])
def test_normals_are_the_same_bits(op: str, dtype: str, tf: ModuleType) -> None:
    """So many that logarithms and sines one unit in the last place off would show."""
    case = Case(op, [np.int32([200_000]), np.int64([7, 8])], {"dtype": dtype})
    np.testing.assert_array_equal(run_ours(case)[0], run_tensorflow(case)[0])


def test_without_the_c_library_normals_are_nearly_the_same(monkeypatch: pytest.MonkeyPatch, tf: ModuleType) -> None:
    """NumPy's own functions differ from the C library's in the last place now and then; more would be a bug."""
    for name in ("log", "sin", "cos"):
        monkeypatch.setattr(libm, name, libm.rounded(getattr(np, name)))
    case = Case("StatelessRandomNormal", [np.int32([20000]), np.int64([7, 8])], {"dtype": "float32"})
    ours, theirs = run_ours(case)[0], run_tensorflow(case)[0]
    assert np.mean(ours == theirs) > 0.9
    np.testing.assert_array_max_ulp(ours, theirs, 4)


def test_no_seed_means_any_numbers() -> None:
    case = Case("RandomUniform", [np.int32([4])], {"dtype": "float32"})
    first, second = run_ours(case)[0], run_ours(case)[0]
    assert not np.array_equal(first, second)


def test_known_answers() -> None:
    """The test vectors published with the algorithm (Random123, kat_vectors)."""
    assert Philox(0, 0).blocks(1)[0].tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = Philox(2**64 - 1, 2**128 - 1)
    assert ones.blocks(1)[0].tolist() == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    pi = Philox(0x299F31D0A4093822, 0x0370734413198A2E85A308D3243F6A88)
    assert pi.blocks(1)[0].tolist() == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


@settings(max_examples=30, deadline=None, print_blob=True)
@given(key=st.integers(0, 2**64 - 1), counter=st.integers(0, 2**128 - 1), skip=st.integers(0, 2**70))
def test_counters_carry(key: int, counter: int, skip: int) -> None:
    """Blocks taken together are the blocks taken one by one, over any carry."""
    start = Philox(key, (counter | (2**64 - 3)) & (2**128 - 1)).skip(skip)
    together = start.blocks(6)
    alone = [start.skip(i).blocks(1)[0] for i in range(6)]
    np.testing.assert_array_equal(together, alone)
    stream = WordStream(start)
    assert stream.take(5) + stream.take(19) == together.reshape(-1).tolist()


SAMPLERS: list[tuple[str, dict[str, Any]]] = [
    ("UniformCandidateSampler", {"range_max": 50}),
    ("LogUniformCandidateSampler", {"range_max": 50}),
    *(
        (f"{kind}CandidateSampler", {"range_max": classes, "num_sampled": samples, "seed": 2**40 + 1, "seed2": -5})
        for kind in ("Uniform", "LogUniform")
        for classes, samples in ((50_000, 300), (2**45, 64), (20, 20), (6, 1))
    ),
    ("LearnedUnigramCandidateSampler", {"range_max": 50}),
    ("FixedUnigramCandidateSampler", {"range_max": 6, "unigrams": [3.0, 1, 0.5, 7, 2, 2], "distortion": 0.75}),
    ("FixedUnigramCandidateSampler", {"range_max": 6, "unigrams": [1.0, 2, 3, 4], "num_reserved_ids": 2}),
]


@pytest.mark.parametrize(("op", "attrs"), SAMPLERS)
@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("native", ["", "off"])
def test_candidate_sampler(
    op: str, attrs: dict[str, Any], unique: bool, native: str, tf: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same classes as TensorFlow's, for several executions."""
    from tests.kernels.op_suite import build, prepare

    monkeypatch.setenv("GRAPHMILL_NATIVE", native)
    v1 = tf.compat.v1
    more = {"num_true": 2, "num_sampled": 4, "unique": unique, "seed": 3, "seed2": 8}
    case = Case(op, [np.int64([[1, 3], [5, 2]])], {**more, **attrs})
    ready = prepare(case)
    proto = v1.GraphDef.FromString(build(case, ready).graph.to_proto().SerializeToString())
    if op.startswith("Learned"):  # it keeps counts between executions, in the kernel
        from tests.kernels.graph_suite import run_ours as run_graph

        mine = run_graph(proto.SerializeToString(), [f"node:{i}" for i in range(3)], {"in0:0": case.inputs[0]}, 3)
    else:
        step = FakeStep()
        mine = [run_ours(case, step=step, ready=ready) for _ in range(3)]
    with tf.Graph().as_default():
        tf.graph_util.import_graph_def(proto, name="")
        with v1.Session() as session:
            for ours in mine:
                expected = session.run([f"node:{i}" for i in range(3)], {"in0:0": case.inputs[0]})
                for a, b in zip(ours, expected, strict=True):
                    compare(a, b)


def test_all_candidates_and_hits(tf: ModuleType) -> None:
    true = np.int64([[1, 3], [5, 2]])
    check(Case("AllCandidateSampler", [true], {"num_true": 2, "num_sampled": 6, "unique": True}))
    check(Case("ComputeAccidentalHits", [true, np.int64([2, 9, 5, 1])], {"num_true": 2}))
    check(Case("ComputeAccidentalHits", [true, np.int64([7])], {"num_true": 2}))
    bad = Case("UniformCandidateSampler", [true], {"num_true": 1, "num_sampled": 2, "unique": False, "range_max": 9},
               error="INVALID_ARGUMENT")  # fmt: skip
    check(bad)


def rejection() -> Iterator[Case]:
    alphas = np.array([0.3, 1, 1.5, 20, 0.01])
    rates = np.array([0.1, 3, 9.9, 10, 57, 1e4, 0])
    attrs = {"seed": 9, "seed2": 2}
    for dtype, shape in product(("float16", "float32", "float64"), ((), (3,), (50, 2), (0,))):
        alpha, rate = alphas.astype(dtype), rates[: 5 if dtype == "float16" else 7].astype(dtype)
        more = EXACT
        yield Case("RandomGamma", [np.int32(shape), alpha], attrs, graph=True, **more)
        yield Case("RandomPoisson", [np.int32(shape), rate], attrs, graph=True, producer=24)
        yield Case("RandomPoissonV2", [np.int32(shape), rate], {**attrs, "dtype": "int64"}, graph=True)
        seed = np.int64([5, 6])
        yield Case("StatelessRandomGammaV2", [np.int32([*shape, 5]), seed, alpha], **more)
        yield Case("StatelessRandomPoisson", [np.int32([*shape, rate.size]), seed, rate], {"dtype": "float64"})
    rate = np.int32([1, 40])
    yield Case("RandomPoissonV2", [np.int32([9]), rate], {**attrs, "dtype": "int32"}, graph=True)
    yield Case("StatelessRandomGammaV2", [np.int32([3, 4]), seed, np.float32([1, 2])], error="INVALID_ARGUMENT")
    key, counter = np.uint64([5]), np.uint64([1, 2])
    yield Case("StatelessRandomGammaV3", [np.int32([3, 2]), key, counter, np.int32(1), np.float32([1.5, 2])])
    bounds = [
        (0, 1, -1, 1), (0, 1, -5, 5), (0, 1, 3, 4), (0, 1, 8, np.inf), (2, 3, -np.inf, 1), (0, 1, -0.1, 0.1),
        (5, 0.1, 0, 4), (0, 2, 1, 1.5),
    ]  # fmt: skip
    for dtype, row in product((np.float16, np.float32, np.float64), bounds):
        for shape in ((7,), (3, 60), (250,)):
            inputs = [np.int32(shape), *(dtype(v) for v in row)]
            yield Case("ParameterizedTruncatedNormal", inputs, attrs, graph=True, **EXACT)
        rows = [np.array([v, v + (1 if np.isfinite(v) else 0)], dtype) for v in row]
        yield Case("ParameterizedTruncatedNormal", [np.int32([2, 30]), *rows], attrs, graph=True, **EXACT)
    for row in ((0, -1, -1, 1), (0, 1, 1, -1), (0, 1, -np.inf, np.inf)):
        inputs = [np.int32([2]), *(np.float32(v) for v in row)]
        yield Case("ParameterizedTruncatedNormal", inputs, attrs, graph=True, error="INVALID_ARGUMENT")
    wrong = [np.int32([2]), np.zeros((1, 1), np.float32), *(np.float32(v) for v in (1, 0, 1))]
    yield Case("ParameterizedTruncatedNormal", wrong, attrs, graph=True, error="INVALID_ARGUMENT")


def binomial() -> Iterator[Case]:
    counts = np.array([5, 100, 1000, 0, 40, 7, 12, -3, 1e6, 3])
    chances = np.array([0.3, 0.5, 0.01, 0.5, 0.9, 1, 0, 0.4, 0.7, 0.99])
    seed = np.int64([3, -4])
    for dtype, out in product(("float16", "float32", "float64"), ("float16", "float32", "float64", "int32", "int64")):
        top = 8 if dtype == "float16" or out == "float16" else 10
        rows = [counts[:top].astype(dtype), chances[:top].astype(dtype)]
        yield Case("StatelessRandomBinomial", [np.int32([60, top]), seed, *rows], {"dtype": out}, **EXACT)
    rows = [np.float32([[10], [50]]), np.float32([0.2, 0.6, 0.9])]
    for shape in ((2, 3), (5, 2, 3), (0, 2, 3), (4, 2, 2, 3)):
        yield Case("StatelessRandomBinomial", [np.int32(shape), seed, *rows], {"dtype": "int32"})
    yield Case("StatelessRandomBinomial", [np.int32([]), seed, np.float32(9), np.float32(0.5)], {"dtype": "int32"})
    yield Case(
        "StatelessRandomBinomial", [np.int32([4]), seed, np.float32(9), np.float32(np.nan)], {"dtype": "float32"}
    )
    bad = {"attrs": {"dtype": "int32"}, "error": "INVALID_ARGUMENT"}
    yield Case("StatelessRandomBinomial", [np.int32([3, 2]), seed, *rows], **bad)
    yield Case("StatelessRandomBinomial", [np.int32([3]), seed, *rows], **bad)
    yield Case("StatelessRandomBinomial", [np.int32([2]), seed, np.float32([1, 2]), np.float32([1, 0, 1])], **bad)
    yield Case("StatelessRandomBinomial", [np.int32([1]), np.int64([1]), np.float32(1), np.float32(1)], **bad)


def bounded_normals() -> Iterator[Case]:
    seed = np.int64([3, -4])
    bounds = [(0, 1, -1, 1), (0, 1, 3, 4), (2, 3, -np.inf, 1), (0, 1, -0.1, 0.1), (5, 0.1, 0, 4), (0, 2, 1, 1.5)]
    op = "StatelessParameterizedTruncatedNormal"
    for dtype, row in product((np.float16, np.float32, np.float64), bounds):
        for shape in ((7,), (3, 20), (0, 2), ()):
            yield Case(op, [np.int32(shape), seed, *(dtype(v) for v in row)], **EXACT)
        rows = [np.array([v, v + (1 if np.isfinite(v) else 0)], dtype) for v in row]
        yield Case(op, [np.int32([20, 2]), seed, *rows], **EXACT)
        yield Case(op, [np.int32([5, 3, 2]), seed, rows[0], dtype([[1], [2], [3]]), *rows[2:]], **EXACT)
    some = [np.float32(v) for v in (0, 1, -1, 1)]
    for row in ((0, -1, -1, 1), (0, 1, 1, -1), (0, 1, -np.inf, np.inf)):
        yield Case(op, [np.int32([2]), seed, *(np.float32(v) for v in row)], error="INVALID_ARGUMENT")
    yield Case(op, [np.int32([2]), np.int64([1, 2, 3]), *some], error="INVALID_ARGUMENT")
    yield Case(op, [np.int32([2]), seed, np.float32([1, 2, 3]), *some[1:]], error="INVALID_ARGUMENT")
    yield Case(
        op, [np.int32([2, 3]), seed, np.float32([1, 2, 3]), np.float32([1, 2]), *some[2:]], error="INVALID_ARGUMENT"
    )


def shuffles() -> Iterator[Case]:
    key, counter = np.uint64([77]), np.uint64([1, 2])
    for value in (np.arange(10), np.arange(1), np.zeros((0,)), sample("float32", (37, 2, 3)), sample("string", (6,)),
                  np.int8(3), sample("bool", (9,)), sample("complex64", (5, 2))):  # fmt: skip
        yield Case("StatelessShuffle", [value, key, counter, np.int32(1)])
    yield Case("StatelessShuffle", [np.arange(5), key, counter, np.int32(2)], error=SAME)
    yield Case("StatelessShuffle", [np.arange(5), key, counter, np.int32(3)], error=SAME)
    yield Case("StatelessShuffle", [np.arange(5), np.uint64([1, 2]), counter, np.int32(1)], error="INVALID_ARGUMENT")
    op = "RandomIndexShuffle"
    for dtype, most in product(("int32", "int64", "uint32", "uint64"), (0, 1, 9, 1000, 2**16, 2**17 + 1, 2**31 - 1)):
        index = np.minimum(np.arange(0, 30, 3), most).astype(dtype)
        yield Case(op, [index, np.array([1, 2, 3], dtype), np.array(most, dtype)], {"rounds": 4})
    for most in (2**32, 2**40 + 5, 2**62 + 1):
        yield Case(op, [np.int64([0, 5, most]), np.int64([9, -8, 2**40]), np.int64(most)], {"rounds": 8})
    seeds = np.int32([[1, 2, 3], [-4, 5, 6], [7, 8, 9]])
    yield Case(op, [np.int64([1, 2, 3]), seeds, np.int64([5, 70, 90000])])
    yield Case(op, [np.int64(1), seeds, np.int64([5, 70, 90000])])
    yield Case(op, [np.int64(1), seeds[0], np.int64(70)])
    bad = {"error": "INVALID_ARGUMENT"}
    yield Case(op, [np.int64([1, 2]), seeds, np.int64(70)], **bad)
    yield Case(op, [np.int64([1, 2]), seeds[0, :2], np.int64(70)], **bad)
    yield Case(op, [np.int64([1, 2]), seeds[0], np.int64([70, 3, 4])], **bad)


@suite([*binomial(), *bounded_normals(), *shuffles()])
def test_more_distributions(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@settings(max_examples=25, deadline=None, print_blob=True)
@given(most=st.integers(1, 300), seed=st.lists(st.integers(0, 2**32 - 1), min_size=3, max_size=3))
def test_index_shuffle_is_a_permutation(most: int, seed: list[int]) -> None:
    case = Case("RandomIndexShuffle", [np.arange(most + 1), np.uint32(seed), np.int64(most)])
    (found,) = run_ours(case)
    assert sorted(found.tolist()) == list(range(most + 1))


@pytest.mark.parametrize("most", [1, 2000])
def test_an_index_beyond_the_permutation_is_refused(most: int) -> None:
    """The walk from it may never come into range."""
    for index, third in product(range(most + 1, 2**16, 9999), range(8)):
        with pytest.raises(InvalidArgumentError, match="max_index must be >= index"):
            run_ours(Case("RandomIndexShuffle", [np.int64(index), np.uint32([1, 2, third]), np.int64(most)]))


@suite(list(rejection()))
def test_rejection(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_rates_that_are_no_rates() -> None:
    """NaN or infinity, where TensorFlow 2.21 never returns."""
    odd = np.float32([-1, np.nan, np.inf, 2])
    (values,) = run_ours(Case("RandomPoisson", [np.int32([3]), odd], {"seed": 1}))
    assert np.isnan(values[:, :2]).all() and np.isinf(values[:, 2]).all() and np.isfinite(values[:, 3]).all()


def generators() -> Iterator[StateCase]:
    state = np.int64([7, -3, 123456789012345])
    one = np.int64(1)
    for dtype, shape in product(FLOATS, ((), (5,), (2, 3))):
        for op in ("StatefulStandardNormalV2", "StatefulUniform", "StatefulTruncatedNormal"):
            yield StateCase(op, [Var(state), one, np.int64(shape)], {"dtype": dtype})
    for dtype in ("int32", "int64", "uint32", "uint64"):
        yield StateCase("StatefulUniformFullInt", [Var(state), one, np.int64([5])], {"dtype": dtype})
        if dtype.startswith("u"):
            continue  # TensorFlow has no bounded unsigned ones
        bounds = [np.array(2, dtype), np.array(90, dtype)]
        yield StateCase("StatefulUniformInt", [Var(state), one, np.int64([5]), *bounds])
    yield StateCase("RngSkip", [Var(state), one, np.int64(10)])
    yield StateCase("RngReadAndSkip", [Var(state), np.int32(1), np.uint64(10)])
    carry = np.int64([-1, 5, 6])
    yield StateCase("RngReadAndSkip", [Var(carry), np.int32(1), np.uint64(1)])
    bad = {"error": "INVALID_ARGUMENT"}
    inputs = [Var(state), np.int64(9), np.int32([2]), np.float32(5), np.float32(0.5)]
    yield StateCase("StatefulRandomBinomial", inputs, {"dtype": "int32"}, **bad)
    inputs = [Var(state), one, np.int32([2]), np.float32([1, 2, 3]), np.float32(0.5)]
    yield StateCase("StatefulRandomBinomial", inputs, {"dtype": "int32"}, **bad)
    yield StateCase(
        "StatefulUniform", [Var(state), np.int64(2), np.int64([5])], {"dtype": "float32"}, error="UNIMPLEMENTED"
    )
    yield StateCase("StatefulUniform", [Var(state), np.int64(9), np.int64([5])], {"dtype": "float32"}, **bad)
    yield StateCase("StatefulUniform", [Var(state[:2]), one, np.int64([5])], {"dtype": "float32"}, **bad)
    yield StateCase("StatefulUniform", [Var(state[None]), one, np.int64([5])], {"dtype": "float32"}, **bad)
    yield StateCase("StatefulUniformInt", [Var(state), one, np.int64([5]), np.int64(3), np.int64(3)], **bad)


@pytest.mark.parametrize("case", list(generators()), ids=lambda c: c.label)
def test_generator(case: StateCase, tf: ModuleType) -> None:
    check_state(case)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("shape", [(5,), (4, 2), (2, 3, 5)])
def test_binomial_of_a_generator(shape: tuple[int, ...], dtype: str, tf: ModuleType) -> None:
    """Eagerly: a graph's first run leaves a state that shares its array with the initial value as it was."""
    from tests.kernels.state_suite import run_ours as run_state

    state = np.int64([7, -3, 123456789012345])
    counts, chance = np.float32(range(30, 30 + shape[-1])), np.float32(0.4)
    variable = tf.Variable(tf.constant(state) + 0)  # its own buffer; an array might be shared
    for _ in range(2):
        case = StateCase(
            "StatefulRandomBinomial", [Var(state), np.int64(1), np.int32(shape), counts, chance], {"dtype": dtype}
        )
        (values,), (state,) = run_state(case)
        expected = tf.raw_ops.StatefulRandomBinomial(
            resource=variable.handle, algorithm=1, shape=shape, counts=counts, probs=chance, dtype=dtype
        )
        np.testing.assert_array_equal(values, expected.numpy())
        np.testing.assert_array_equal(state, variable.numpy())


def test_first_version_of_generators() -> None:
    """The state of StatefulStandardNormal has the algorithm in front; TensorFlow's own op is not made any more."""
    from tests.kernels.state_suite import run_ours as run_state

    state = np.int64([7, -3, 123456789012345])
    old = StateCase("StatefulStandardNormal", [Var(np.int64([1, *state])), np.int64([5])], {"dtype": "float32"})
    new = StateCase("StatefulStandardNormalV2", [Var(state), np.int64(1), np.int64([5])], {"dtype": "float32"})
    (values,), (after,) = run_state(old)
    (expected,), (expected_after,) = run_state(new)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(after[1:], expected_after)


def test_non_deterministic_ints() -> None:
    case = Case("NonDeterministicInts", [np.int32([4])], {"dtype": "int64", "shape_dtype": "int32"})
    first, second = run_ours(case)[0], run_ours(case)[0]
    assert first.shape == (4,) and not np.array_equal(first, second)
