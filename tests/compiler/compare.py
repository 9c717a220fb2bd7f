"""The same graph compiled and run node by node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests import perturbation, rounding
from toolkit.runtime.session import Session


def compiled(graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], **session: Any) -> list[Any]:
    """What the compiled segments give, run twice to see that nothing of the first run is left in the second."""
    with Session(graph, **session) as running:
        first = running.run(list(fetches), feeds)
        second = running.run(list(fetches), feeds)
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)
    return first


def node_by_node(graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any]) -> list[Any]:
    """What the NumPy kernels give."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHMILL_SEGMENTS", "off")
        patch.setenv("GRAPHMILL_ONEDNN", "off")
        with Session(graph) as running:
            return running.run(list(fetches), feeds)


def check(graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], **session: Any) -> list[Any]:
    """Both agree, as far as the rounding of the graph's nodes explains: oneDNN adds in another order."""
    got = compiled(graph, fetches, feeds, **session)
    assert_close(graph, fetches, feeds, got, **session)
    return got


def assert_close(
    graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], got: Sequence[Any], precision: str = "f32", **_: Any
) -> None:
    """Raise AssertionError unless results are node by node's, as far as rounding explains.

    Args:
        precision: that they were computed in.
    """

    def far() -> list[Any]:
        derived = rounding.allowed(graph, fetches, feeds) if precision == "f32" else None
        if derived is not None:
            return derived
        return perturbation.of_work(graph, lambda running: running.run(list(fetches), feeds), precision=precision)

    names = [str(each) for each in fetches]
    perturbation.assert_agree([got, node_by_node(graph, fetches, feeds)], far, names)


def explained(graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], **session: Any) -> str:
    """The report that `--explain` prints, without the programs in their text form."""
    with Session(graph, **session) as running:
        text = "\n".join(running.explain(list(fetches), feeds))
    return re.sub(r"^program\(.*?^}", "", text, flags=re.MULTILINE | re.DOTALL)
