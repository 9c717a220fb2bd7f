"""The ways in which one graph can be run; all of them must agree."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests import perturbation
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


def check_modes(
    graph: Any,
    fetches: Sequence[Any],
    feeds: Mapping[Any, Any],
    modes: Sequence[str] = (),
    *,
    exact: bool = False,
    large: bool = False,
) -> list[Any]:
    """Run in every mode, twice each; returns what node by node gives.

    Args:
        exact: floats are the same, too.
        large: the graph is a whole network.
    """

    def work(running: Session) -> list[Any]:
        return running.run(list(fetches), feeds)

    far = perturbation.of_network if large else perturbation.of_work
    return check_steps(graph, work, modes, exact=exact, far=lambda: 2 * far(graph, work))


def check_steps(
    graph: Any,
    work: Callable[[Session], list[Any]],
    modes: Sequence[str] = (),
    times: int = 2,
    *,
    exact: bool = False,
    far: Callable[[], list[Any]] | None = None,
) -> list[Any]:
    """Let `work` use a session of every mode, `times` times each: its results agree as far as rounding explains.

    Args:
        exact: floats are the same, too.
        far: how far results may be apart, else what `perturbation.of_work` says.
    """

    def all_of(running: Session) -> list[Any]:
        return [value for _ in range(times) for value in work(running)]

    results: dict[str, list[Any]] = {}
    for mode in modes or MODES:
        with session(graph, mode) as running:
            results[mode] = all_of(running)
    first, *others = results
    names = [f"result {index}" for index in range(len(results[first]))]
    reaches: list[Any] = []

    def allowed() -> list[Any]:
        if not reaches:
            derived = far or (lambda: perturbation.of_work(graph, all_of))
            reaches.extend([0.0] * len(names) if exact else derived())
        return reaches

    for mode in others:
        labels = [f"{mode}, {name}" for name in names]
        perturbation.assert_agree([results[mode], results[first]], allowed, labels)
        if exact:
            for label, got, wanted in zip(labels, results[mode], results[first], strict=True):
                np.testing.assert_array_equal(got, wanted, err_msg=label)
    return results[first][: len(names) // times]
