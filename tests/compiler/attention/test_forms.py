"""Attention as models write it, in TensorFlow's graphs: its numbers, and whether it becomes one operation."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.compiler.attention.forms import MODELS, Form, Written, numbers
from tests.compiler.attention.more_forms import MORE
from toolkit.formats.models.model import read_model
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.tensorflow
FORMS: dict[str, Form] = {form.__name__: form for form in (*MODELS, *MORE)}
#: forms that stay parts, and why: (in inference, in training)
_AXES, _SHARED = "a softmax of another axis", "keys that a product broadcasts"
APART: dict[str, tuple[str, str]] = {
    "transformer_xl": (_AXES, _AXES),
    "t5": ("", "the gradient by a bias is that by the scores"), "grouped_products": (_SHARED, _SHARED),
    "grouped_einsum": (_SHARED, _SHARED), "multi_query": (_SHARED, _SHARED),
    "fed_temperature": ("a scale that is fed", "a scale that is fed"), "capped": ("bounded scores", "bounded scores"),
}  # fmt: skip
_PRECISIONS = ("tf32", "bf16", "fp16")
_SIZES: dict[str, dict[str, int]] = {"cached": {"rows": 1, "keys": 6}}


def graph_of(tf: ModuleType, form: Form, folder: Path, *, learning: bool, **sizes: int) -> tuple[Any, list[str], Any]:
    """A form as TensorFlow's graph, read by us; the names that are fetched and what is fed; TensorFlow's numbers."""
    v1 = tf.compat.v1
    with v1.Graph().as_default() as made:
        to = Written(v1, **sizes)
        result = form(to)
        fetched = [result]
        if learning:
            loss = v1.reduce_sum(v1.square(result) * numbers(*map(int, result.shape), seed=40))
            fetched += [v1.convert_to_tensor(each) for each in v1.gradients(loss, to.by)]
        with v1.Session(graph=made) as session:
            expected = session.run(fetched, to.feeds)
        (folder / "graph.pb").write_bytes(made.as_graph_def().SerializeToString())
    feeds = {each.name: value for each, value in to.feeds.items()}
    return read_model(folder / "graph.pb").graph, [each.name for each in fetched], (feeds, expected)


def compared(graph: Any, fetched: list[str], feeds: Any, expected: Any, precision: str) -> list[str]:
    """Run a graph three times on a GPU (launched, recorded, replayed), beside what TensorFlow gives.

    Returns:
        what the GPU's backend made, in lines.
    """
    narrow = {"tf32": "fp16"}.get(precision, precision)  # factors have the 10 bits of float16
    allowed = perturbation.allowed(graph, fetched, feeds, precision=narrow)
    with Session(graph, devices={"GPU": 1}, precision=precision) as session:
        for _ in range(3):
            found = session.run(fetched, feeds)
            for one, other, apart, name in zip(found, expected, allowed, fetched, strict=True):
                tolerance.assert_within(one, other, apart, name)
        return [line for line in session.explain(fetched, feeds) if "gpu_" in line and not line.startswith("  %")]


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", FORMS)
def test_forms(tf: ModuleType, name: str, learning: bool, tmp_path: Path) -> None:
    precision = _PRECISIONS[(list(FORMS).index(name) + learning) % len(_PRECISIONS)]
    _check(tf, name, tmp_path, learning, precision)


@pytest.mark.long
@pytest.mark.parametrize("precision", _PRECISIONS)
@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", FORMS)
def test_forms_in_all_precisions(tf: ModuleType, name: str, learning: bool, precision: str, tmp_path: Path) -> None:
    _check(tf, name, tmp_path, learning, precision)


def _check(tf: ModuleType, name: str, folder: Path, learning: bool, precision: str) -> None:
    graph, fetched, (feeds, expected) = graph_of(tf, FORMS[name], folder, learning=learning, **_SIZES.get(name, {}))
    lines = compared(graph, fetched, feeds, expected, precision)
    formed = not APART.get(name, ("", ""))[learning]
    assert sum("gpu_attention " in line for line in lines) == formed, lines
    assert sum("gpu_attention_gradient" in line for line in lines) == (formed and learning), lines


#: batch, heads, rows, keys, numbers of a key and of a value; precision
_OF_SIZES = [
    ((1, 2, 1, 129, 64, 64), "tf32"), ((1, 1, 7, 7, 256, 256), "tf32"), ((1, 2, 33, 1, 160, 192), "bf16"),
    ((2, 1, 129, 129, 32, 48), "fp16"), ((1, 1, 1, 1000, 128, 128), "bf16"), ((1, 1, 1000, 3, 16, 16), "tf32"),
    ((2, 2, 5, 9, 24, 20), "tf32"), ((1, 2, 7, 7, 8, 8), "fp16"), ((1, 1, 7, 9, 256, 64), "fp16"),
]  # fmt: skip


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize(("sizes", "precision"), _OF_SIZES, ids=str)
def test_sizes(tf: ModuleType, sizes: tuple[int, ...], precision: str, learning: bool, tmp_path: Path) -> None:
    """Of heads, of one query over what came before, and odd lengths."""
    names = ("batch", "heads", "rows", "keys", "size", "value_size")
    by_name = dict(zip(names, sizes, strict=True))
    graph, fetched, (feeds, expected) = graph_of(tf, FORMS["bert"], tmp_path, learning=learning, **by_name)
    lines = compared(graph, fetched, feeds, expected, precision)
    assert sum("gpu_attention " in line for line in lines) == 1, lines
    assert sum("gpu_attention_gradient" in line for line in lines) == learning, lines


def test_what_stays_apart_is_a_form() -> None:
    assert set(APART) <= set(FORMS) and all(any(each) for each in APART.values())


def _hidden(low: float, *, chosen: bool) -> Form:
    """The first image sees no key."""

    def form(to: Written) -> Any:
        there = to.padding().astype(bool)
        there[0] = False
        mask, number, v1 = to.fed(there)[:, None, None, :], np.float32(low), to.tf
        if chosen:
            return to.around(lambda scores: v1.where_v2(mask, scores, number))
        return to.around(lambda scores: scores + v1.where_v2(mask, np.float32(0), number))

    return form


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("hidden", [-np.inf, -1e9, -1e4, float(np.finfo(np.float32).min)], ids=str)
@pytest.mark.parametrize("precision", _PRECISIONS)
@pytest.mark.parametrize("chosen", [False, True], ids=["added", "chosen"])
def test_rows_without_keys(
    tf: ModuleType, chosen: bool, precision: str, hidden: float, learning: bool, tmp_path: Path
) -> None:
    """Shares are equal, or what of scores is left beside the mask; NaN of -inf, in all that it reaches and no more.

    The library keeps one number of a row, which has lost the logarithm of the sum of shares beside -1e9
    (`Attention.apart`): of rows without a key, gradients of its attentions are not TensorFlow's.
    """
    graph, fetched, (feeds, expected) = graph_of(tf, _hidden(hidden, chosen=chosen), tmp_path, learning=learning)
    with Session(graph, devices={"GPU": 1}, precision=precision) as session:
        found = session.run(fetched, feeds)
        lines = session.explain(fetched, feeds)
    assert any("gpu_attention " in line for line in lines), lines
    # the roundings of rows whose keys are all seen, with numbers that are as large: what is moved beside -1e9 is not
    # a rounding of what a score has left there
    seen, _, _ = graph_of(tf, _hidden(0.0, chosen=False), tmp_path, learning=learning)
    narrow = {"tf32": "fp16"}.get(precision, precision)
    allowed = perturbation.allowed(seen, fetched, feeds, precision=narrow)
    by_library = precision != "tf32" and not chosen and abs(hidden) > 1e5 and hidden != -np.inf
    for one, other, apart, name in zip(found, expected, allowed, fetched, strict=True):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other), name)
        there = ~np.isnan(other)
        if by_library and name != fetched[0]:
            there[0] = False
        tolerance.assert_within(one[there], other[there], np.max(apart), name)
