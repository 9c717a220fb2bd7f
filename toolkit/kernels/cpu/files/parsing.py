"""Parsing Example and SequenceExample messages."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas import example_pb2
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, shape_text, text, texts
from toolkit.kernels.encodings import examples
from toolkit.kernels.encodings.examples import Dense, Ragged, Sparse, Wanted, parse_message
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def _names(value: Array, count: int) -> list[str]:
    """The examples' names for messages, or "<unknown>"."""
    if not value.size:
        return ["<unknown>"] * count
    require(value.size == count, f"Expected {count} names, got {value.size}")
    return texts(value, "a key")


def _dense(keys: Sequence[str], types: Sequence[Any], shapes: Sequence[Any], defaults: Sequence[Array]) -> list[Dense]:
    require(len(keys) == len(types), f"Expected {len(types)} dense keys, got {len(keys)}")
    return [Dense(*row) for row in zip(keys, types, shapes, map(np.asarray, defaults), strict=True)]


def _features(example: Any) -> Any:
    return example.features.feature


def _run(wanted: Wanted, serialized: Array, names: Array) -> examples.Columns:
    wanted.check()
    texts: list[bytes] = serialized.ravel().tolist()
    labels = _names(names, len(texts))
    parsed = [parse_message(t, example_pb2.Example, n) for t, n in zip(texts, labels, strict=True)]
    return wanted.read_all(parsed, labels, _features)


@kernel("ParseExample")
def parse_example(op: KernelNode) -> Compute:
    sparse_types, dense_types, shapes = op.attr("sparse_types"), op.attr("Tdense"), op.attr("dense_shapes")
    sparse_count, dense_count = op.attr("Nsparse"), op.attr("Ndense")

    def compute(serialized: Array, names: Array, *rest: Array) -> list[Array]:
        require(serialized.ndim == 1, f"Expected serialized to be a vector, got shape: {shape_text(serialized)}")
        sparse_keys = [text(key, "sparse_keys") for key in rest[:sparse_count]]
        dense_keys = [text(key, "dense_keys") for key in rest[sparse_count : sparse_count + dense_count]]
        wanted = Wanted(
            [Sparse(*pair) for pair in zip(sparse_keys, sparse_types, strict=True)],
            _dense(dense_keys, dense_types, shapes, rest[sparse_count + dense_count :]),
            [],
        )
        outputs = _run(wanted, serialized, names).outputs()
        return [array for group in outputs[:4] for array in group]

    return compute


@kernel("ParseExampleV2")
def parse_example_v2(op: KernelNode) -> Compute:
    sparse_types, dense_types, shapes = op.attr("sparse_types"), op.attr("Tdense"), op.attr("dense_shapes")
    ragged_types, split_types = op.attr("ragged_value_types"), op.attr("ragged_split_types")

    def compute(
        serialized: Array, names: Array, sparse_keys: Array, dense_keys: Array, ragged_keys: Array, *defaults: Array
    ) -> list[Array]:
        require(serialized.ndim <= 1, f"serialized must be a scalar or vector, got shape: {shape_text(serialized)}")
        for what, keys, types in (("sparse", sparse_keys, sparse_types), ("ragged", ragged_keys, ragged_types)):
            require(keys.size == len(types), f"Expected {len(types)} {what} keys, got {keys.size}")
        wanted = Wanted(
            [Sparse(*pair) for pair in zip(texts(sparse_keys, "a key"), sparse_types, strict=True)],
            _dense(texts(dense_keys, "a key"), dense_types, shapes, defaults),
            [Ragged(*row) for row in zip(texts(ragged_keys, "a key"), ragged_types, split_types, strict=True)],
        )
        outputs = _run(wanted, serialized, names).outputs(single=serialized.ndim == 0)
        return [array for group in outputs for array in group]

    return compute


@kernel("ParseSingleExample")
def parse_single_example(op: KernelNode) -> Compute:
    sparse_keys = texts(op.attr("sparse_keys"), "sparse_keys")
    dense_keys = texts(op.attr("dense_keys"), "dense_keys")
    sparse = [Sparse(*pair) for pair in zip(sparse_keys, op.attr("sparse_types"), strict=True)]
    dense_types, shapes = op.attr("Tdense"), op.attr("dense_shapes")

    def compute(serialized: Array, *defaults: Array) -> list[Array]:
        require(serialized.ndim == 0, f"Expected serialized to be a scalar, got shape: {shape_text(serialized)}")
        wanted = Wanted(sparse, _dense(dense_keys, dense_types, shapes, defaults), [])
        outputs = _run(wanted, serialized, np.zeros(0, object)).outputs(single=True)
        return [array for group in outputs[:4] for array in group]

    return compute


# -- sequences -----------------------------------------------------------------------------------------------


class _Sequences:
    """What the sequence ops share once their keys are known."""

    def __init__(self, op: KernelNode, has_ragged: bool):
        self.op = op
        self.sparse_types = op.attr("feature_list_sparse_types")
        self.dense_types = op.attr("feature_list_dense_types")
        self.dense_shapes = op.attr("feature_list_dense_shapes")
        self.context_sparse_types = op.attr("context_sparse_types")
        self.context_dense_types = op.attr("Tcontext_dense")
        self.context_dense_shapes = op.attr("context_dense_shapes")
        self.context_ragged: list[tuple[Any, Any]] = []
        self.ragged: list[tuple[Any, Any]] = []
        if has_ragged:
            self.context_ragged = _pairs(op, "context_ragged_value_types", "context_ragged_split_types")
            self.ragged = _pairs(op, "feature_list_ragged_value_types", "feature_list_ragged_split_types")

    def run(
        self, serialized: Array, names: Array, context_sparse: list[str], context_dense: list[str],
        sparse: list[str], dense: list[str], missing_allowed: set[str], defaults: Sequence[Array],
        context_ragged: Sequence[str] = (), ragged: Sequence[str] = (), *, single: bool,
    ) -> list[list[Array]]:  # fmt: skip
        """Groups of outputs: context sparse indices, values, shapes, dense values, ragged values, splits; then the
        lists' sparse indices, values, shapes, dense values, dense lengths, ragged values, outer and inner splits."""
        for what, forms in (
            ("Context feature", (context_sparse, context_dense, context_ragged)),
            ("Sequence feature", (sparse, dense, ragged)),
        ):
            keys = [key for form in forms for key in set(form)]
            twice = {key for key in keys if keys.count(key) > 1}
            require(not twice, f"{what} {sorted(twice)} cannot be parsed in two forms at once")
        for what, keys, types in (
            ("context_sparse_keys", context_sparse, self.context_sparse_types),
            ("context_dense_keys", context_dense, self.context_dense_types),
            ("context_ragged_keys", context_ragged, self.context_ragged),
            ("feature_list_sparse_keys", sparse, self.sparse_types),
            ("feature_list_dense_keys", dense, self.dense_types),
            ("feature_list_ragged_keys", ragged, self.ragged),
        ):
            require(len(keys) == len(types), f"Expected {len(types)} {what}, got {len(keys)}")
        texts: list[bytes] = serialized.ravel().tolist()
        labels = _names(names, len(texts))
        parsed = [parse_message(t, example_pb2.SequenceExample, n) for t, n in zip(texts, labels, strict=True)]
        wanted = Wanted(
            [Sparse(*pair) for pair in zip(context_sparse, self.context_sparse_types, strict=True)],
            _dense(context_dense, self.context_dense_types, self.context_dense_shapes, defaults),
            [Ragged(key, *types) for key, types in zip(context_ragged, self.context_ragged, strict=True)],
        )
        wanted.check()
        columns = wanted.read_all(parsed, labels, lambda example: example.context.feature)
        groups = list(columns.outputs(single=single))

        def steps(key: str, dtype: Any, required: bool) -> list[list[Array]]:
            out: list[list[Array]] = []
            for example, name in zip(parsed, labels, strict=True):
                lists = example.feature_lists.feature_list
                if key not in lists:
                    if required:
                        raise InvalidArgumentError(
                            f"Name: {name}, Feature list '{key}' is required but could not be found.  Did you mean to "
                            "include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
                        )
                    out.append([])
                else:
                    out.append(examples.steps_of(lists[key], dtype, key, name))
            return out

        triples = [
            examples.sparse_steps(steps(key, dtype, False), dtype, single=single)
            for key, dtype in zip(sparse, self.sparse_types, strict=True)
        ]
        groups += [[t[i] for t in triples] for i in range(3)]
        values: list[Array] = []
        lengths: list[Array] = []
        for key, dtype, shape in zip(dense, self.dense_types, self.dense_shapes, strict=True):
            batch = steps(key, dtype, key not in missing_allowed)
            array = examples.dense_steps(batch, dtype, shape, key, labels)
            values.append(array[0] if single else array)
            lengths.append(np.array([len(row) for row in batch], np.int64))
        groups += [values, lengths]
        rows: list[list[Array]] = [[], [], []]
        for key, (dtype, splits) in zip(ragged, self.ragged, strict=True):
            batch = steps(key, dtype, False)
            inner = [step for row in batch for step in row]
            rows[0].append(np.concatenate(inner) if inner else np.zeros(0, dtype.numpy))
            rows[1].append(np.cumsum([0, *map(len, batch)]).astype(splits.numpy))
            rows[2].append(np.cumsum([0, *map(len, inner)]).astype(splits.numpy))
        return groups + rows


def _pairs(op: KernelNode, first: str, second: str) -> list[tuple[Any, Any]]:
    return list(zip(op.attr(first), op.attr(second), strict=True))


def _decoded(keys: Sequence[bytes]) -> list[str]:
    return texts(keys, "a key")


@kernel("ParseSingleSequenceExample")
def parse_single_sequence_example(op: KernelNode) -> Compute:
    counts = [
        op.attr(name) for name in ("Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse", "Nfeature_list_dense")
    ]
    sequences = _Sequences(op, has_ragged=False)

    def compute(serialized: Array, missing: Array, *rest: Array) -> list[Array]:
        require(serialized.ndim == 0, f"Expected serialized to be a scalar, got shape: {shape_text(serialized)}")
        keys: list[list[str]] = []
        at = 0
        for count in counts:
            keys.append([text(key, "a key") for key in rest[at : at + count]])
            at += count
        defaults, name = rest[at:-1], rest[-1]
        groups = sequences.run(
            serialized,
            np.ravel(name),
            keys[0],
            keys[1],
            keys[2],
            keys[3],
            set(texts(missing, "a key")),
            defaults,
            single=True,
        )
        order = (0, 1, 2, 3, 6, 7, 8, 9)  # without ragged ones and lengths
        return [array for i in order for array in groups[i]]

    return compute


@kernel("ParseSequenceExample")
def parse_sequence_example(op: KernelNode) -> Compute:
    context_sparse, context_dense = _decoded(op.attr("context_sparse_keys")), _decoded(op.attr("context_dense_keys"))
    sparse, dense = _decoded(op.attr("feature_list_sparse_keys")), _decoded(op.attr("feature_list_dense_keys"))
    missing = set(_decoded(op.attr("feature_list_dense_missing_assumed_empty")))
    sequences = _Sequences(op, has_ragged=False)

    def compute(serialized: Array, names: Array, *defaults: Array) -> list[Array]:
        require(serialized.ndim == 1, f"Expected serialized to be a vector, got shape: {shape_text(serialized)}")
        groups = sequences.run(
            serialized, names, context_sparse, context_dense, sparse, dense, missing, defaults, single=False
        )
        return [array for i in (0, 1, 2, 3, 6, 7, 8, 9, 10) for array in groups[i]]

    return compute


@kernel("ParseSequenceExampleV2")
def parse_sequence_example_v2(op: KernelNode) -> Compute:
    sequences = _Sequences(op, has_ragged=True)

    def compute(
        serialized: Array, names: Array, context_sparse: Array, context_dense: Array, context_ragged: Array,
        sparse: Array, dense: Array, ragged: Array, missing: Array, *defaults: Array,
    ) -> list[Array]:  # fmt: skip
        require(serialized.ndim <= 1, f"serialized must be a scalar or vector, got shape: {shape_text(serialized)}")
        dense_keys = texts(dense, "a key")
        require(
            missing.shape == (len(dense_keys),),
            f"feature_list_dense_missing_assumed_empty must have {len(dense_keys)} elements, got {shape_text(missing)}",
        )
        allowed = {key for key, may in zip(dense_keys, missing.tolist(), strict=True) if may}
        groups = sequences.run(
            serialized, names, texts(context_sparse, "a key"), texts(context_dense, "a key"), texts(sparse, "a key"),
            dense_keys, allowed,
            defaults, texts(context_ragged, "a key"), texts(ragged, "a key"), single=serialized.ndim == 0,
        )  # fmt: skip
        return [array for group in groups for array in group]

    return compute
