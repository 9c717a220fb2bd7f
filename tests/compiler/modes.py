"""The ways in which one graph can be run; all of them must agree."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.compiler.targets import EAGER
from toolkit.runtime.session import Session

#: name -> environment, session settings; the first is what the others are held against
MODES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "node by node": ({"GRAPHMILL_SEGMENTS": "off", "GRAPHMILL_ONEDNN": "off"}, {}),
    "dataflow": ({"GRAPHMILL_SEGMENTS": "off", "GRAPHMILL_ONEDNN": "off"}, {"force_tokens": True}),
    "node by node with oneDNN": ({"GRAPHMILL_SEGMENTS": "off"}, {}),
    "compiled": ({"GRAPHMILL_SEGMENTS": "strict"}, {}),
    "compiled without LLVM": ({"GRAPHMILL_SEGMENTS": "strict", "GRAPHMILL_NATIVE": "off"}, {}),
    "compiled without oneDNN": ({"GRAPHMILL_SEGMENTS": "strict", "GRAPHMILL_ONEDNN": "off"}, {}),
}


@contextmanager
def session(graph: Any, mode: str) -> Generator[Session]:
    """A session that runs in a mode; kernels on oneDNN take what is small too."""
    environment, settings = MODES[mode]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with Session(graph, processor=EAGER, **settings) as running:
            yield running


def agree(got: Any, wanted: Any, what: str, rtol: float = 1e-4, least: float = 0.0) -> None:
    """Floats are within `rtol` of themselves or of the largest finite number beside them, all else is the same.

    Args:
        least: the largest number counts as this at least: differences of numbers about 1 have few digits left.
    """
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype, f"{what}: {got.dtype}, not {wanted.dtype}"
    assert got.shape == wanted.shape, f"{what}: {got.shape}, not {wanted.shape}"
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted, err_msg=what)
        return
    finite = np.abs(wanted[np.isfinite(wanted)].astype(np.float64))
    scale = max(least, float(finite.max()) if finite.size else 0.0)
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol * min(scale, 1e30), err_msg=what)


def check_modes(
    graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], rtol: float = 1e-4, modes: Sequence[str] = ()
) -> list[Any]:
    """Run in every mode, twice each; returns what node by node gives."""
    return check_steps(graph, lambda running: running.run(list(fetches), feeds), rtol, modes)


def check_steps(
    graph: Any,
    work: Callable[[Session], list[Any]],
    rtol: float = 1e-4,
    modes: Sequence[str] = (),
    times: int = 2,
    least: float = 0.0,
) -> list[Any]:
    """Let `work` use a session of every mode, `times` times each: its results agree, time by time."""
    wanted: list[list[Any]] = []
    for mode in modes or MODES:
        with session(graph, mode) as running:
            results = [work(running) for _ in range(times)]
        if not wanted:
            wanted = results
            continue
        for turn, (mine, reference) in enumerate(zip(results, wanted, strict=True)):
            for index, (value, right) in enumerate(zip(mine, reference, strict=True)):
                agree(value, right, f"{mode}, run {turn}, result {index}", rtol, least)
    return wanted[0]
