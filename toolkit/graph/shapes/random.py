"""Shapes of random ops."""

from __future__ import annotations

from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape, broadcast
from toolkit.graph.shapes.registry import ShapeContext, merge_dims, shape_function


@shape_function("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
def random_shape(c: ShapeContext) -> list[Shape]:
    c.rank_at_most(0, 1)
    return [c.constant_shape(0)]


@shape_function("RandomUniformInt")
def random_uniform_int(c: ShapeContext) -> list[Shape]:
    c.rank(1, 0)
    c.rank(2, 0)
    return [c.constant_shape(0)]


@shape_function("ParameterizedTruncatedNormal")
def parameterized_truncated_normal(c: ShapeContext) -> list[Shape]:
    for index in range(1, 5):
        c.rank_at_most(index, 1)
    return [c.constant_shape(0)]


def _check_seed(c: ShapeContext, index: int) -> None:
    merge_dims(c.rank(index, 1)[0], 2, "length of the seed and 2")


@shape_function("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
def stateless(c: ShapeContext) -> list[Shape]:
    _check_seed(c, 1)
    return [c.constant_shape(0)]


@shape_function("StatelessRandomUniformInt")
def stateless_int(c: ShapeContext) -> list[Shape]:
    _check_seed(c, 1)
    c.rank(2, 0)
    c.rank(3, 0)
    return [c.constant_shape(0)]


@shape_function("StatelessRandomUniformFullInt")
def stateless_full_int(c: ShapeContext) -> list[Shape]:
    _check_seed(c, 1)
    return [c.constant_shape(0)]


@shape_function(
    "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2",
    "StatelessRandomUniformFullIntV2", "StatelessRandomUniformIntV2",
)  # fmt: skip
def stateless_v2(c: ShapeContext) -> list[Shape]:
    c.rank(1, 1)
    c.rank(2, 1)
    c.rank(3, 0)
    return [c.constant_shape(0)]


@shape_function("StatelessParameterizedTruncatedNormal")
def stateless_parameterized(c: ShapeContext) -> list[Shape]:
    _check_seed(c, 1)
    return [c.constant_shape(0)]


@shape_function("StatelessRandomGetKeyCounterAlg")
def key_counter_alg(c: ShapeContext) -> list[Shape]:
    _check_seed(c, 0)
    return [Shape([1]), Shape([2]), SCALAR]


@shape_function("StatelessRandomGetKeyCounter")
def key_counter(c: ShapeContext) -> list[Shape]:
    _check_seed(c, 0)
    return [Shape([1]), Shape([2])]


@shape_function("StatelessRandomGetAlg")
def alg(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("RandomPoisson", "RandomGamma")
def random_with_parameters(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(0).concatenate(c.inputs[1])]


@shape_function("RandomPoissonV2")
def random_poisson_v2(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(0).concatenate(c.inputs[1])]


@shape_function("RandomGammaGrad")
def random_gamma_grad(c: ShapeContext) -> list[Shape]:
    return [broadcast(c.inputs[0], c.inputs[1])]


@shape_function("StatelessRandomGammaV2", "StatelessRandomPoisson", "StatelessRandomBinomial")
def stateless_gamma(c: ShapeContext) -> list[Shape]:
    _check_seed(c, 1)
    return [c.constant_shape(0)]


@shape_function("StatelessRandomGammaV3")
def stateless_gamma_v3(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(0)]


@shape_function("Multinomial", "StatelessMultinomial")
def multinomial(c: ShapeContext) -> list[Shape]:
    logits, count = c.rank(0, 2), c.integer(1)
    c.rank(1, 0)
    return [Shape([logits[0], count])]


@shape_function("RandomShuffle")
def random_shuffle(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("StatelessShuffle")
def stateless_shuffle(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("RandomIndexShuffle")
def random_index_shuffle(c: ShapeContext) -> list[Shape]:
    index, seed, limit = c.inputs
    if index.rank is None or seed.rank is None or limit.rank is None:
        return [UNKNOWN]
    batched: list[Dim] = [
        s.dims[0] for s, batch_rank in ((index, 1), (seed, 2), (limit, 1)) if s.dims and len(s.dims) == batch_rank
    ]
    if not batched:
        return [SCALAR]
    size: Dim = None
    for found in batched:
        size = merge_dims(size, found, "batch sizes")
    return [Shape([size])]


@shape_function(
    "StatefulStandardNormal", "StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniform",
    "StatefulUniformFullInt",
)  # fmt: skip
def stateful(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(1 if c.node.op == "StatefulStandardNormal" else 2)]


@shape_function("StatefulUniformInt")
def stateful_int(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(2)]


@shape_function("StatefulRandomBinomial")
def stateful_binomial(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(2)]


@shape_function("NonDeterministicInts")
def non_deterministic_ints(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(0)]


@shape_function("RngSkip")
def rng_skip(c: ShapeContext) -> list[Shape]:
    c.rank(1, 0)
    c.rank(2, 0)
    return []


@shape_function("RngReadAndSkip")
def rng_read_and_skip(c: ShapeContext) -> list[Shape]:
    """The state before the skip, padded to the length of the longest algorithm's."""
    c.rank(1, 0)
    c.rank(2, 0)
    return [Shape([3])]


@shape_function("AnonymousSeedGenerator", "AnonymousRandomSeedGenerator")
def seed_generator(c: ShapeContext) -> list[Shape]:
    return [SCALAR, SCALAR]


@shape_function(
    "UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
    "FixedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler", "AllCandidateSampler",
)  # fmt: skip
def candidate_sampler(c: ShapeContext) -> list[Shape]:
    true_classes, count = c.rank(0, 2), c.attr("num_true")
    sampled = Shape([c.attr("num_sampled")])
    return [sampled, Shape([true_classes[0], count]), sampled]


@shape_function("ComputeAccidentalHits")
def accidental_hits(c: ShapeContext) -> list[Shape]:
    true_classes = c.rank(0, 2)
    merge_dims(true_classes[1], c.attr("num_true"), "columns of true_classes and num_true")
    some = Shape([None])
    return [some, some, some]
