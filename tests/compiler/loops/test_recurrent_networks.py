"""cuDNN's recurrent networks on CPUs: layers where they can be, and the op's kernel where not."""

# the client's ops have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.nn import cudnn_networks
from toolkit import client as gm
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.onednn.library import library
from toolkit.kernels.recurrent_params import RecurrentModel
from toolkit.runtime.session import Session

#: with weights for which oneDNN is loaded
STEPS, BATCH, INPUTS, UNITS = 5, 3, 9, 17
#: roundings on the way of one number: a product over what a layer takes, ten or so of a cell, in each step and layer
ROUNDINGS = STEPS * 3 * (2 * UNITS + UNITS + 10)


def _graph(
    model: RecurrentModel, *, version: str = "", zeros: bool = False, outputs: Any = (0, 1, 2), constant: bool = True,
    dtype: str = "float32", lengths: Any = None, **attributes: Any,
) -> tuple[Any, Any, dict[Any, Any]]:  # fmt: skip
    """(graph, fetches, feeds) of one op whose weights are in the graph."""
    x, h, c, params = cudnn_networks.arguments(model, STEPS, BATCH, dtype)
    major = attributes.get("time_major", True)
    if not major:
        x, h, c = (np.ascontiguousarray(np.swapaxes(each, 0, 1)) if np.ndim(each) == 3 else each for each in (x, h, c))
    settings: dict[str, Any] = {
        "rnn_mode": model.mode, "direction": "bidirectional" if model.directions == 2 else "unidirectional",
        "input_mode": "skip_input" if model.skips else "linear_input", "is_training": False, **attributes,
    }  # fmt: skip
    with gm.Graph().as_default() as graph:
        feeds: dict[Any, Any] = {gm.placeholder(dtype, x.shape): x}
        given: list[Any] = list(feeds)
        for state in (h, c) if model.has_memory else (h,):
            if zeros:
                given.append(gm.constant(np.zeros_like(state)))
            else:
                given.append(gm.placeholder(dtype, state.shape))
                feeds[given[-1]] = state
        if not model.has_memory:
            given.append(gm.constant(np.zeros((), dtype)))
        if constant:
            given.append(gm.constant(params))
        else:
            given.append(gm.placeholder(dtype, params.shape))
            feeds[given[-1]] = params
        if version == "v3":
            given.append(gm.constant(lengths or [STEPS] * BATCH, gm.int32))
        made = list(getattr(gm.ops, f"cudnn_rnn{version}")(*given, **settings))
        fetches = [made[i] * 1.0 for i in outputs]
    return graph, fetches, feeds


def _check(model: RecurrentModel, layers: int, **how: Any) -> None:
    """The compiled step gives what the kernel gives, with so many layers in it."""
    graph, fetches, feeds = _graph(model, **how)
    with Session(graph, force_tokens=True) as session:
        wanted = session.run(fetches, feeds)
    with Session(graph) as session:
        for _ in range(2):
            got = session.run(fetches, feeds)
            for one, other in zip(got, wanted, strict=True):
                allowed = tolerance.likely(ROUNDINGS) * max(np.abs(other).max(), 1)
                np.testing.assert_allclose(one, other, rtol=0, atol=allowed)
        lines = "\n".join(session.explain(fetches, feeds))
    if library() is not None:
        assert len(re.findall(r"^ +\d+ (?:lstm|lbr_gru) ", lines, re.MULTILINE)) == layers, lines


MODES = ("lstm", "gru")


def _outputs(mode: str) -> tuple[int, ...]:
    return (0, 1, 2) if mode == "lstm" else (0, 1)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 1), (1, 2), (2, 2)], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_layers_in_both_directions(mode: str, sizes: tuple[int, int], zeros: bool) -> None:
    model = RecurrentModel(mode, sizes[0], UNITS, INPUTS, sizes[1])
    for outputs in (_outputs(mode), (0,)):
        _check(model, sizes[0] * sizes[1], zeros=zeros, outputs=outputs)


@pytest.mark.parametrize("mode", MODES)
def test_first_layers_that_add_their_inputs(mode: str) -> None:
    model = RecurrentModel(mode, 2, UNITS, UNITS, 1, skips=True)
    _check(model, 2, outputs=_outputs(mode))


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_examples_first(mode: str, directions: int) -> None:
    model = RecurrentModel(mode, 2, UNITS, INPUTS, directions)
    _check(model, 2 * directions, version="v3", time_major=False, zeros=True, outputs=(0,))
    _check(RecurrentModel(mode, 1, UNITS, INPUTS, 1), 1, version="v3", time_major=False, outputs=_outputs(mode))


def test_training_in_which_nothing_is_left_out() -> None:
    """So Keras wrote what it exported."""
    model = RecurrentModel("lstm", 2, UNITS, INPUTS, 1)
    _check(model, 2, version="v2", is_training=True)
    _check(model, 2, dropout=0.5)


STAYS: dict[str, tuple[RecurrentModel, dict[str, Any]]] = {
    "weights are fed": (RecurrentModel("lstm", 1, UNITS, INPUTS, 1), {"constant": False}),
    "in double": (RecurrentModel("gru", 1, UNITS, INPUTS, 1), {"dtype": "float64", "outputs": (0,)}),
    "plain cells": (RecurrentModel("rnn_tanh", 1, UNITS, INPUTS, 1), {"outputs": (0,)}),
    "a projection": (
        RecurrentModel("lstm", 1, UNITS, INPUTS, 1, 5), {"version": "v3", "num_proj": 5, "outputs": (0,)}
    ),
    "lengths": (RecurrentModel("lstm", 1, UNITS, INPUTS, 1), {"version": "v3", "lengths": [5, 2, 4]}),
    "what a gradient needs": (
        RecurrentModel("lstm", 1, UNITS, INPUTS, 1), {"outputs": (0, 3), "is_training": True}
    ),
    "states of several layers, examples first": (
        RecurrentModel("lstm", 2, UNITS, INPUTS, 1), {"version": "v3", "time_major": False}
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", STAYS)
def test_what_stays_a_call(why: str) -> None:
    model, how = STAYS[why]
    _check(model, 0, **how)


def test_what_does_not_fit_is_told_by_the_kernel() -> None:
    graph, fetches, feeds = _graph(RecurrentModel("lstm", 1, UNITS, INPUTS, 1), version="v3", lengths=[5, 6, 4])
    with Session(graph) as session, pytest.raises(InvalidArgumentError, match=r"sequence_lengths must be in \[0, 5\]"):
        session.run(fetches, feeds)
