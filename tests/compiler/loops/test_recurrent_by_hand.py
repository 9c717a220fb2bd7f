"""Cells spelled in many ways, and what is nearly a cell, in loops written by hand."""

# TensorFlow has no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.loops.recurrent_cases import FORMS, array, check_function

pytestmark = pytest.mark.tensorflow


def _cell(tf: ModuleType, name: str, x: Any, h: Any, c: Any, w: Any) -> tuple[Any, Any]:
    """The next h and c of a cell that is spelled, or wrong, in a way of its own."""
    s, t = tf.sigmoid, tf.tanh
    a = [x @ w["w"][g] + h @ w["u"][g] + w["b"][g] for g in range(4)]
    u, r = s(a[0]), s(a[1])
    after = x @ w["w"][2] + r * (h @ w["u"][2] + w["b"][3]) + w["b"][2]
    before = x @ w["w"][2] + (r * h) @ w["u"][2] + w["b"][2]
    kept = s(a[1]) * c + s(a[0]) * t(a[2])
    peeping = s(a[1] + c * w["b"][0]) * c + s(a[0] + c * w["b"][1]) * t(a[2])
    joined = tf.concat([h, x], 1) @ np.concatenate([np.hstack(w["u"]), np.hstack(w["w"])])
    i, f, g, o = (joined[:, n * h.shape[1] : (n + 1) * h.shape[1]] for n in range(4))
    joined_kept = t(g) * s(i) + c * s(0.5 + f)
    return {
        "lstm": lambda: (t(kept) * s(a[3]), kept),
        "lstm, slices": lambda: (s(o) * t(joined_kept), joined_kept),
        "lstm, negated": lambda: ((1 - s(-a[3])) * t(kept), kept),
        "lstm, old memory": lambda: (s(a[3]) * t(c), kept),
        "lstm, memory": lambda: (s(a[3]) * kept, kept),
        "lstm, scaled": lambda: (s(a[3]) * t(kept) * 2.0, kept),
        "lstm, scaled memory": lambda: (s(a[3]) * t(0.5 * kept), kept),
        "lstm, coupled": lambda: (lambda k: (s(a[3]) * t(k), k))(u * c + (1 - u) * t(a[2])),
        "lstm, of the memory": lambda: (s(x @ w["w"][3] + c @ w["u"][3]) * t(kept), kept),
        "lstm, no input": lambda: (s(h @ w["u"][3]) * t(kept), kept),
        "lstm, sum": lambda: (s(a[3]) * t(kept), kept + x @ w["w"][0]),
        "lstm, rows": lambda: (s(a[3] + w["rows"]) * t(kept), kept),
        "lstm, peepholes": lambda: (s(a[3] + w["b"][2] * peeping) * t(peeping), peeping),
        "lstm, old peephole": lambda: (s(a[3] + w["b"][2] * c) * t(peeping), peeping),
        "lstm, one peephole": lambda: (s(a[3] + w["b"][2] * kept) * t(kept), kept),
        "gru": lambda: (u * h + (1 - u) * t(before), c),
        "gru, turned": lambda: (t(before) * u + h - u * h, c),
        "gru, difference": lambda: (t(before) + u * (h - t(before)), c),
        "gru, after": lambda: ((1 - u) * t(after) + h * u, c),
        "gru, both": lambda: (u * h + t(after + (r * h) @ w["u"][3]) - u * t(after + (r * h) @ w["u"][3]), c),
        "gru, ungated": lambda: (u * h + (1 - u) * t(a[2] + r * w["b"][3]), c),
        "gru, same gate": lambda: (u * h + (1 - u) * t(x @ w["w"][2] + (u * h) @ w["u"][2]), c),
        "gru, two gates": lambda: (u * h + (1 - r) * t(before), c),
        "gru, plus": lambda: (u * h + (1 + u) * t(before), c),
        "gru, input reset": lambda: (u * h + (1 - u) * t(r * (x @ w["w"][2]) + h @ w["u"][2]), c),
        "gru, one column": lambda: (u * h + (1 - u) * t(before * r[:, 0][:, None]), c),
        "gru, deep": lambda: (u * h + (1 - u) * functools.reduce(lambda y, _: t(y), range(400), before), c),
        "gru, twice": lambda: (u * h + (1 - u) * t(x @ w["w"][2] + (r * r * h) @ w["u"][2]), c),
    }[name]()


BY_HAND = {
    "lstm": "lstm", "lstm, slices": "lstm", "gru": "gru", "gru, turned": "gru", "gru, difference": "gru",
    "gru, after": "lbr_gru", "lstm, peepholes": "lstm", "gru, same gate": "gru",
}  # fmt: skip
WRONG = [
    "lstm, negated", "lstm, old memory", "lstm, memory", "lstm, scaled", "lstm, scaled memory", "lstm, coupled",
    "lstm, of the memory", "lstm, no input", "lstm, sum", "lstm, rows", "lstm, old peephole",
    "lstm, one peephole", "gru, both", "gru, ungated", "gru, two gates",
    "gru, plus", "gru, input reset", "gru, twice", "gru, one column", "gru, deep",
]  # fmt: skip
#: what else a loop may do: which step it reads and writes, how many it makes
LOOPS: dict[str, dict[str, Any]] = {
    "reads ahead": {"read": lambda i: i + 1, "steps": 4},
    "reads backwards": {"read": lambda i: 4 - i},
    "reads one": {"read": lambda i: 0 * i + 2},
    "writes backwards": {"write": lambda i: 4 - i},
    "asks for more": {"size": 7},
    "stops early": {"until": lambda tf, h: tf.reduce_all(tf.abs(h) < 0.7)},
}


def _by_hand(tf: ModuleType, name: str, units: int, **loop: Any) -> Callable[[Any], Any]:
    """A loop over x[time, batch, units] of such a cell."""
    random = np.random.default_rng(6)
    shapes = {"w": (4, units, units), "u": (4, units, units), "b": (4, units), "rows": (3, units)}
    w = {key: random.standard_normal(shape).astype(np.float32) / np.float32(2) for key, shape in shapes.items()}
    read, write = loop.get("read", lambda i: i), loop.get("write", lambda i: i)

    def call(x: Any) -> Any:
        x = tf.convert_to_tensor(x)
        steps = loop.get("steps", x.shape[0])
        given = tf.TensorArray(tf.float32, x.shape[0], clear_after_read=False).unstack(x)
        made = tf.TensorArray(tf.float32, loop.get("size", steps), element_shape=x.shape[1:])

        def goes_on(i: Any, h: Any, *_: Any) -> Any:
            return tf.logical_and(i < steps, loop["until"](tf, h)) if "until" in loop else i < steps

        def turn(i: Any, h: Any, c: Any, made: Any) -> Any:
            h, c = _cell(tf, name, given.read(read(i)), h, c, w)
            return i + 1, h, c, made.write(write(i), h)

        state = tf.reverse(x[0], [0])
        last, h, c, made = tf.while_loop(goes_on, turn, [0, state, tf.tanh(state), made])
        return [made.stack(), h, c, last]

    return call


@FORMS
@pytest.mark.parametrize("name", [*BY_HAND, *WRONG])
def test_cells_by_hand(tf: ModuleType, tmp_path: Path, name: str, lowered: bool) -> None:
    layers = [BY_HAND[name]] if name in BY_HAND else []
    check_function(
        tf,
        tmp_path,
        _by_hand(tf, name, 8),
        [array(5, 3, 8)],
        lowered,
        layers,
        "" if layers else "not an LSTM or GRU layer",
    )


@FORMS
@pytest.mark.parametrize("name", LOOPS)
def test_loops_by_hand(tf: ModuleType, tmp_path: Path, name: str, lowered: bool) -> None:
    check_function(
        tf, tmp_path, _by_hand(tf, "gru", 8, **LOOPS[name]), [array(5, 3, 8)], lowered, [], "not an LSTM or GRU layer"
    )


@settings(max_examples=12, deadline=None)
@given(
    kind=st.sampled_from(["lstm", "gru", "gru, after"]), units=st.integers(1, 70), batch=st.integers(1, 9),
    steps=st.integers(1, 12), lowered=st.booleans(),
)  # fmt: skip
def test_cells_of_any_size(tf: ModuleType, kind: str, units: int, batch: int, steps: int, lowered: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_function(
            tf, Path(folder), _by_hand(tf, kind, units), [array(steps, batch, units) / 4], lowered, [BY_HAND[kind]]
        )
