"""Recurrent block cells and their gradients against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, check, run_ours, sample, suite
from toolkit.errors import InvalidArgumentError

pytestmark = pytest.mark.tensorflow

BATCH, INPUTS, CELL, TIME = 3, 4, 5, 6
BAD = "INVALID_ARGUMENT"


def some(dtype: str, *shape: int, seed: int = 0) -> Any:
    return sample(dtype, shape, -1, 1, seed)


def weights(dtype: str) -> list[Any]:
    peepholes = [some(dtype, CELL, seed=n) for n in (1, 2, 3)]
    return [some(dtype, INPUTS + CELL, 4 * CELL), *peepholes, some(dtype, 4 * CELL)]


def states(dtype: str) -> list[Any]:
    return [some(dtype, BATCH, CELL, seed=4), some(dtype, BATCH, CELL, seed=5)]


def until(steps: int) -> Callable[[list[Any]], list[Any]]:
    """Leaves the steps that were computed, and of cs and h all: TensorFlow does not set the others' memory."""

    def normalize(outputs: list[Any]) -> list[Any]:
        return [value if position in (1, 6) else value[:steps] for position, value in enumerate(outputs)]

    return normalize


def lstm_cases() -> Iterator[Case]:
    for dtype, peephole in product(("float32", "float16"), (False, True)):
        tag = f"{dtype}-{peephole}"
        one = [some(dtype, BATCH, INPUTS), *states(dtype), *weights(dtype)]
        base = {"use_peephole": peephole}
        for more in ({}, {"forget_bias": 0.0, "cell_clip": 0.3}, {"cell_clip": -1.0}):
            yield Case("LSTMBlockCell", one, base | more, id=f"{tag}-{more}")
        saved = run_ours(Case("LSTMBlockCell", one, base))[:6]
        grads = [some(dtype, BATCH, CELL, seed=6), some(dtype, BATCH, CELL, seed=7)]
        yield Case("LSTMBlockCellGrad", [*one, *saved, *grads], base, id=tag)
        many = [some(dtype, TIME, BATCH, INPUTS), *one[1:]]
        grads = [some(dtype, TIME, BATCH, CELL, seed=6), some(dtype, TIME, BATCH, CELL, seed=7)]
        for op, steps in product(("BlockLSTM", "BlockLSTMV2"), (TIME, 4, 0)):
            case = Case(op, [np.int64(steps), *many], base, id=f"{tag}-{steps}", normalize=until(steps))
            yield case
            outputs = run_ours(case)
            gradient = op.replace("LSTM", "LSTMGrad")
            yield Case(gradient, [np.int64(steps), *many, *outputs, *grads], base, id=f"{tag}-{steps}")
        yield Case("BlockLSTM", [np.int64(TIME), *many], base | {"cell_clip": 0.2, "forget_bias": 0.5},
                   id=f"{tag}-clip")  # fmt: skip
        yield Case("BlockLSTMV2", [np.int64(TIME), *many], base | {"cell_clip": 0.2}, id=f"{tag}-clip")
    one = [some("float32", BATCH, INPUTS), *states("float32"), *weights("float32")]
    for position, wrong in (
        (0, one[0][:2]), (1, one[1][:, :3]), (2, one[2][:2]), (3, one[3][:4]), (3, one[3][:, :3]),
        (7, one[7][:3]),
    ):  # fmt: skip
        inputs = [*one]
        inputs[position] = wrong
        yield Case("LSTMBlockCell", inputs, error=BAD, id=f"{position}-{wrong.shape}")
    many = [np.int64(TIME), some("float32", TIME, BATCH, INPUTS), *one[1:]]
    for position, wrong in ((1, many[1][0]), (2, many[2][:2]), (4, many[4][:4]), (8, many[8][:3])):
        inputs = [*many]
        inputs[position] = wrong
        yield Case("BlockLSTM", inputs, error=BAD, id=f"{position}-{wrong.shape}")


def gru_cases() -> Iterator[Case]:
    x, h = some("float32", BATCH, INPUTS), some("float32", BATCH, CELL)
    rest = [some("float32", INPUTS + CELL, 2 * CELL), some("float32", INPUTS + CELL, CELL),
            some("float32", 2 * CELL), some("float32", CELL)]  # fmt: skip
    case = Case("GRUBlockCell", [x, h, *rest])
    yield case
    r, u, c, _ = run_ours(case)
    yield Case("GRUBlockCellGrad", [x, h, *rest, r, u, c, some("float32", BATCH, CELL, seed=9)])
    yield Case("GRUBlockCell", [x[:0], h[:0], *rest], id="empty")
    inputs = [x, h, *rest]
    for position, wrong in ((0, x[:2]), (1, h[:, :3]), (2, rest[0][:4]), (3, rest[1][:4]), (4, rest[2][:3])):
        changed = [*inputs]
        changed[position] = wrong
        yield Case("GRUBlockCell", changed, error=BAD, id=f"{position}-{wrong.shape}")


CASES = [*lstm_cases(), *gru_cases()]


@suite(CASES)
def test_rnn(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_input_of_one_dimension() -> None:
    """TensorFlow aborts the process here; ours says what is wrong."""
    inputs = [some("float32", INPUTS), *states("float32"), *weights("float32")]
    with pytest.raises(InvalidArgumentError, match="x must have 2 dimensions"):
        run_ours(Case("LSTMBlockCell", inputs))
