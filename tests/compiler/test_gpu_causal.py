"""Causal masks as graphs write them are recognised, with the CPU's values; what is not surely one stays a mask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.compiler.layers import normal
from tests.compiler.test_gpu_attention import tf32
from tests.compiler.test_gpu_precision import lowered
from tests.kernels.gpu.without_libraries import without_libraries
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.compiler.backends.cuda.attention import known as known_numbers
from toolkit.compiler.importer import facts
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
ops = gm.ops
TOKENS, SIZE = 6, 16
_SEEN = np.tri(TOKENS, dtype=bool)


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


def _compared() -> Any:
    """1 where a key is not behind its query, out of ranges."""
    numbers = gm.range(TOKENS)
    return gm.cast(gm.reshape(numbers, [TOKENS, 1]) >= numbers, gm.float32)


def _ranges(scores: Any) -> Any:
    return scores + (_compared() - 1) * 1e9


def _added_minimum(scores: Any) -> Any:
    return gm.constant(np.where(_SEEN, np.float32(0), np.finfo(np.float32).min)) + scores


def _band(scores: Any) -> Any:
    return scores + (1.0 - ops.matrix_band_part(gm.ones([TOKENS, TOKENS]), -1, 0)) * -1e9


def _gpt2(scores: Any) -> Any:
    seen = gm.reshape(_compared(), [1, 1, TOKENS, TOKENS])
    return scores * seen - gm.constant(np.float32(1e10)) * (1 - seen)


def _where(scores: Any) -> Any:
    shape = [2, 2, TOKENS, TOKENS]
    return gm.where(gm.constant(np.broadcast_to(_SEEN, shape)), scores, gm.fill(shape, np.float32(-1e9)))


def _select(scores: Any) -> Any:
    return ops.select_v2(gm.constant(~_SEEN), gm.constant(np.float32(-np.inf)), scores)


FORMS: dict[str, Callable[[Any], Any]] = {
    "the smallest number added": _added_minimum, "a band": _band, "ranges compared": _ranges,
    "as GPT-2 has it": _gpt2, "chosen": _where, "chosen by a broadcast condition": _select,
}  # fmt: skip


def _attention(
    mask: Callable[[Any], Any], *, learning: bool = False, size: int = SIZE
) -> Callable[[Any], list[Any]]:  # fmt: skip
    """Two images with heads of so many numbers."""
    width = 2 * SIZE

    def build(x: Any) -> list[Any]:
        weights = [gm.constant(normal(width, width, seed=at) / np.float32(width**0.5)) for at in range(3)]
        q, k, v = (
            gm.transpose(gm.reshape(gm.matmul(x, each), [2, TOKENS, -1, size]), [0, 2, 1, 3]) for each in weights
        )
        shares = gm.softmax(mask(gm.matmul(q, k, transpose_b=True) * size**-0.5))
        y = gm.reshape(gm.transpose(gm.matmul(shares, v), [0, 2, 1, 3]), [-1, width])
        if not learning:
            return [y]
        loss = gm.reduce_sum(gm.square(y) * normal(2 * TOKENS, width, seed=30))
        return [y, *gradients([loss], [x, *weights])]

    return build


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str, learning: bool) -> None:
    lines, launched = tf32(_attention(FORMS[form], learning=learning), normal(2 * TOKENS, 2 * SIZE))
    assert sum("keys up to the query's own" in line and "a mask" not in line for line in lines) == 1, lines
    assert launched and all(name.endswith("_causal") for name in launched), launched


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
def test_parts_are_recorded(learning: bool) -> None:
    """What hides later keys is made on the device: heads of 8 numbers have no kernel but the library's."""
    x = normal(2 * TOKENS, 2 * SIZE)
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))
        wanted = _attention(_band, learning=learning, size=8)(given)
    with without_libraries(), Session(graph, devices={"GPU": 1}, precision="bf16") as session:
        for _ in range(3):
            session.run(wanted, {given: x})
        assert any("keys up to the query's own" in line for line in session.explain(wanted, {given: x}))
        assert not any("launch by launch" in note for note in session.notes())


@pytest.mark.parametrize("form", ["a band", "as GPT-2 has it"])
def test_the_library_is_told(form: str) -> None:
    lines = lowered(_attention(FORMS[form], learning=True), normal(2 * TOKENS, 2 * SIZE), "bf16")
    assert sum("keys up to the query's own" in line for line in lines) == 1, lines
    assert sum("gpu_attention_gradient" in line for line in lines) == 1, lines


def test_what_was_too_large_to_be_known_is_computed_to_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is in the program no more."""
    monkeypatch.setattr(facts, "_FOLD_LIMIT", 32)
    lines, launched = tf32(_attention(_band, learning=True), normal(2 * TOKENS, 2 * SIZE))
    assert launched and all(name.endswith("_causal") for name in launched), launched
    assert not any("BandPart" in line for line in lines), lines


def _but(row: int, key: int, number: float) -> np.ndarray:
    mask = np.where(_SEEN, 0, -1e9).astype(np.float32)
    mask[row, key] = number
    return mask


@pytest.mark.parametrize(
    "mask",
    [
        np.where(_SEEN, 0, -1e4).astype(np.float32), np.where(_SEEN.T, 0, -1e9).astype(np.float32),
        np.where(np.tri(TOKENS, k=1, dtype=bool), 0, -1e9).astype(np.float32), _but(3, 1, -1.0), _but(1, 3, 0.0),
        np.stack([_but(0, 0, 0.0), _but(5, 0, -1e9)])[:, None],
    ],
    ids=["too little", "behind", "one further", "a seen one changed", "a hidden one seen", "another image"],
)  # fmt: skip
def test_what_stays_a_mask(mask: np.ndarray) -> None:
    lines, launched = tf32(_attention(lambda scores: scores + gm.constant(mask)), normal(2 * TOKENS, 2 * SIZE))
    assert len(launched) == 1 and not launched[0].endswith("_causal"), launched
    assert sum("with a mask" in line for line in lines) == 1, lines


def test_what_is_chosen_by_another_condition_is_a_choice() -> None:
    """Instead of scores there is a number that hides nothing, or keys behind a query are seen."""

    def low(scores: Any) -> Any:
        return ops.select_v2(gm.constant(_SEEN), scores, gm.constant(np.float32(-100)))

    def behind(scores: Any) -> Any:
        return ops.select_v2(gm.constant(_SEEN.T), scores, gm.constant(np.float32(-1e9)))

    for mask in (low, behind):
        lines, launched = tf32(_attention(mask), normal(2 * TOKENS, 2 * SIZE))
        assert [name.endswith("_chosen") for name in launched] == [True], launched
        assert sum("with a mask" in line for line in lines) == 1, lines


@pytest.mark.parametrize(("rows", "keys"), [(3, 5), (5, 3), (1, 4), (4, 1)])
def test_patterns_of_other_sizes(rows: int, keys: int) -> None:
    """Row r sees keys 0 to r; where the last row sees all of more keys, as behind a cache, it is none."""
    known, scores = known_numbers.Known(), (2, 2, rows, keys)
    seen = np.tri(rows, keys, dtype=bool)
    late = np.tri(rows, keys, keys - rows, dtype=bool)

    def is_pattern(array: Any, kind: str) -> bool:
        return known.is_pattern(Value(np.asarray(array).dtype, np.shape(array), np.asarray(array)), kind, scores)

    assert is_pattern(np.where(seen, 0, -np.inf), "added") and is_pattern(np.where(seen, 0, 1e9), "subtracted")
    assert is_pattern(seen, "condition") and is_pattern(~seen, "inverse") and is_pattern(seen.astype("f"), "factor")
    assert is_pattern(late, "condition") == np.array_equal(late, seen)
    assert not is_pattern(np.where(seen, np.nan, -np.inf), "added")
    assert is_pattern(np.zeros((1, keys)), "added") == (rows == 1 and keys == 1)
    assert not is_pattern(seen.astype("f"), "condition")
