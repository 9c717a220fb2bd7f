"""Candidate samplers: classes drawn for sampled losses, with their expected counts."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable

from toolkit.errors import InvalidArgumentError, os_status
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.native import samplers
from toolkit.kernels.cpu.random.basic import guarded
from toolkit.kernels.random.philox import Philox, doubles
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array
from toolkit.policy.access import Files

#: words set aside for each sample
_RESERVED = 2048
#: draws made at once, of which the last ones may be for nothing
_LARGEST_BATCH = 1 << 16


class _Sampler:
    """A distribution over classes [0, range).

    Attributes:
        words: how many random words a draw takes.
        draw: from words uint32 [n, words] to classes int64 [n].
        probability: of each of the classes given.
        native: the kind and numbers that `native.samplers.sample` knows it by.
        learn: told the true classes after each sampling, where the distribution learns.
    """

    def __init__(self, words: int, draw: Callable[[Array], Array], probability: Callable[[Array], Array]):
        self.words = words
        self.draw = draw
        self.probability = probability
        self.learn: Callable[[Array], None] | None = None
        self.native: tuple[str, int, float] | None = None


def _uniform(count: int) -> _Sampler:
    each = np.float32(1 / count)

    def draw(words: Array) -> Array:
        both = words[:, 0] | words[:, 1].astype(np.uint64) << np.uint64(32)
        return (both % np.uint64(count)).astype(np.int64)

    sampler = _Sampler(2, draw, lambda classes: np.full(classes.shape, each))
    sampler.native = ("uniform", count, 0.0)
    return sampler


def _log_uniform(count: int) -> _Sampler:
    """P(class) = log((class + 2) / (class + 1)) / log(range + 1): Zipf's law, nearly."""
    scale = math.log1p(count)

    def draw(words: Array) -> Array:
        # the C library's exp: another's last bit could be another class
        raised = np.fromiter(map(math.exp, (doubles(words) * scale).tolist()), np.float64, len(words))
        return (raised.astype(np.int64) - 1) % count

    def probability(classes: Array) -> Array:
        return (np.log((classes + 2.0) / (classes + 1.0)) / scale).astype(np.float32)

    sampler = _Sampler(2, draw, probability)
    sampler.native = ("log uniform", count, scale)
    return sampler


def _weighted(weights: Array) -> _Sampler:
    """Fixed float32 weights, by the alias method (Walker 1977) as TensorFlow's DistributionSampler builds it."""
    count = len(weights)
    total = sum(map(float, weights))
    share = [float(w * np.float32(count)) / total for w in weights]
    alias = list(range(count))
    high = [i for i in range(count) if share[i] >= 1]
    low = [i for i in range(count) if share[i] < 1]
    while high and low:
        small, large = low.pop(), high.pop()
        alias[small] = large
        share[large] -= 1 - share[small]
        (high if share[large] >= 1 else low).append(large)
    for i in (*high, *low):  # what rounding left over
        share[i], alias[i] = 1.0, i
    chances = np.array(share, np.float32)

    aliases = np.array(alias, np.int64)

    def draw(words: Array) -> Array:
        # a float in [0, 1), then which pair
        point = (words[:, 0] & np.uint32(0x7FFFFF) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)
        chosen = words[:, 1].astype(np.int64) % count
        return np.where(point < chances[chosen], chosen, aliases[chosen])

    table = np.array(weights, np.float32) / np.array(weights, np.float32).sum(dtype=np.float32)

    def probability(classes: Array) -> Array:
        known = (classes >= 0) & (classes < count)
        return np.where(known, table[np.clip(classes, 0, count - 1)], np.float32(0))

    return _Sampler(2, draw, probability)


def _learned(count: int) -> _Sampler:
    """Weights that start at 1 and count the true classes seen."""
    weights = np.ones(count, np.int64)

    def draw(words: Array) -> Array:
        sums = np.cumsum(weights)
        return np.searchsorted(sums, words[:, 0].astype(np.int64) % sums[-1], side="right")

    def learn(classes: Array) -> None:
        np.add.at(weights, classes.ravel(), 1)

    def probability(classes: Array) -> Array:
        return (weights[classes] / np.float32(weights.sum())).astype(np.float32)

    sampler = _Sampler(1, draw, probability)
    sampler.learn = learn
    return sampler


def _expected(probability: Array, count: int, tries: int) -> Array:
    """How often each class is expected among the samples; with unique ones, 1 - (1 - p)^tries. All in float32."""
    if tries == count:
        return probability * np.float32(count)
    return -np.expm1(np.float32(tries) * np.log1p(-probability))


def _draw(sampler: _Sampler, source: Philox, count: int) -> Array:
    return sampler.draw(source.words(count * sampler.words).reshape(count, sampler.words))


def _draw_unique(sampler: _Sampler, source: Philox, count: int) -> tuple[Array, int]:
    """The first `count` different classes in the order drawn, and how many draws they took."""
    found: dict[int, None] = {}
    tries = 0
    # batches are whole numbers of blocks, so that the next one begins where this one ends
    batch = 4 * -(-(count + count // 4 + 8) // 4)
    while len(found) < count:
        for value in _draw(sampler, source, batch).tolist():
            tries += 1
            found[value] = None
            if len(found) == count:
                break
        source = source.skip(batch * sampler.words // 4)
        batch = min(2 * batch, _LARGEST_BATCH)
    return np.fromiter(found, np.int64, count), tries


def _sample(op: KernelNode, sampler: _Sampler, limit: int) -> Compute:
    generator = guarded(op)
    num_true, count, unique = op.attr("num_true"), op.attr("num_sampled"), op.attr("unique")
    if unique and count > limit:
        raise InvalidArgumentError(
            f"Sampler's range is too small: cannot draw {count} unique classes of {limit}", node=op.name
        )

    def compute(step: StepContext, true_classes: Array) -> tuple[Array, Array, Array]:
        _check_true(true_classes, num_true)
        source = generator(step).reserve(-(-_RESERVED * count // 4))
        if sampler.native is not None:
            name, classes, scale = sampler.native
            released = op.target.threads.released_by_samplers
            found = samplers.sample(name, source, classes, scale, true_classes, count, released, unique=unique)
            if found is not None:
                return found
        sampled, tries = _draw_unique(sampler, source, count) if unique else (_draw(sampler, source, count), count)
        classes = np.concatenate([true_classes.reshape(-1), sampled])
        expected = _expected(sampler.probability(classes), count, tries)
        if sampler.learn is not None:
            sampler.learn(true_classes)
        known = true_classes.size
        return sampled, expected[:known].reshape(true_classes.shape), expected[known:]

    return compute


def _check_true(true_classes: Array, num_true: int) -> None:
    if true_classes.ndim != 2:
        raise InvalidArgumentError(f"true_classes must be a matrix, not of shape {shape_text(true_classes)}")
    if true_classes.shape[1] != num_true:
        raise InvalidArgumentError(
            f"true_classes must have num_true columns, expected: {true_classes.shape[1]} was: {num_true}"
        )


@kernel("UniformCandidateSampler", kind=Kind.STATEFUL)
def uniform_sampler(op: KernelNode) -> Compute:
    return _sample(op, _uniform(op.attr("range_max")), op.attr("range_max"))


@kernel("LogUniformCandidateSampler", kind=Kind.STATEFUL)
def log_uniform_sampler(op: KernelNode) -> Compute:
    return _sample(op, _log_uniform(op.attr("range_max")), op.attr("range_max"))


@kernel("LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler", kind=Kind.STATEFUL)
def learned_sampler(op: KernelNode) -> Compute:
    return _sample(op, _learned(op.attr("range_max")), op.attr("range_max"))


@kernel("FixedUnigramCandidateSampler", kind=Kind.STATEFUL)
def fixed_sampler(op: KernelNode) -> Compute:
    """Weights from a vocabulary file (the last column of each line) or the attribute, raised to `distortion`."""
    file, unigrams = op.text("vocab_file"), op.attr("unigrams")
    if bool(file) == bool(unigrams):
        raise InvalidArgumentError("Must provide either vocab_file or unigrams.", node=op.name)
    reserved, distortion = op.attr("num_reserved_ids"), op.attr("distortion")
    shards, shard = op.attr("num_shards"), op.attr("shard")
    raw = _file_weights(op.files, file) if file else [float(w) for w in unigrams]
    first = len(range(shard, reserved, shards)) if 0 <= shard < shards else 0
    given = [np.float32(np.float32(w) ** distortion) for i, w in enumerate(raw, first) if i % shards == shard]
    size = first + len(given)
    if size != op.attr("range_max"):
        raise InvalidArgumentError(
            f"range is {op.attr('range_max')} must be equal to weights size {size}", node=op.name
        )
    weights = np.zeros(size, np.float32)
    weights[first:] = given
    if not ((weights >= 0) & np.isfinite(weights)).all() or not weights.any():
        raise InvalidArgumentError("weights must be finite and not negative, and one of them positive", node=op.name)
    drawn = int(np.count_nonzero(weights))  # the others never come
    return _sample(op, _weighted(weights), drawn)


def _file_weights(files: Files, path: str) -> list[float]:
    try:
        lines = files.read(path).decode().splitlines()
    except OSError as error:
        raise os_status(error)(f"{path}; {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"the vocabulary {path} is no text") from None
    out: list[float] = []
    for line in lines:
        try:
            out.append(float(line.split(",")[-1]))
        except ValueError:
            raise InvalidArgumentError(f"Wrong vocabulary format at line: {line}") from None
    return out


@kernel("AllCandidateSampler", kind=Kind.STATEFUL)
def all_sampler(op: KernelNode) -> Compute:
    num_true, count = op.attr("num_true"), op.attr("num_sampled")

    def compute(step: StepContext, true_classes: Array) -> tuple[Array, Array, Array]:
        _check_true(true_classes, num_true)
        ones = np.ones(true_classes.shape, np.float32)
        return np.arange(count, dtype=np.int64), ones, np.ones(count, np.float32)

    return compute


@kernel("ComputeAccidentalHits")
def compute_accidental_hits(op: KernelNode) -> Compute:
    """Where sampled candidates are true classes: rows, positions among the samples, and the weight -FLT_MAX."""
    num_true = op.attr("num_true")

    def compute(true_classes: Array, sampled: Array) -> tuple[Array, Array, Array]:
        _check_true(true_classes, num_true)
        require(
            sampled.ndim == 1, "sampled_candidates must be a vector, which is typically an output from CandidateSampler"
        )
        position = {int(c): i for i, c in enumerate(sampled.tolist())}
        hits = [
            (row, position[c]) for row, classes in enumerate(true_classes.tolist()) for c in classes if c in position
        ]
        table = np.array(hits, np.int64).reshape(-1, 2)
        weights = np.full(len(hits), -np.finfo(np.float32).max, np.float32)
        return table[:, 0].astype(np.int32), table[:, 1].copy(), weights

    return compute
