"""The same graph compiled and run node by node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests import rounding, tolerance
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


def check(
    graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], rtol: float = 1e-4, **session: Any
) -> list[Any]:
    """Both agree, as far as the rounding of the graph's nodes explains: oneDNN adds in another order.

    Args:
        rtol: of each result's largest number, instead, in lower precision and for graphs with nodes for which
            `tests.rounding` has no rules.
    """
    got = compiled(graph, fetches, feeds, **session)
    reference = node_by_node(graph, fetches, feeds)
    derived = rounding.allowed(graph, fetches, feeds) if "precision" not in session else None
    for index, (mine, wanted) in enumerate(zip(got, reference, strict=True)):
        assert np.asarray(mine).dtype == np.asarray(wanted).dtype
        if derived is not None:
            tolerance.assert_within(mine, wanted, derived[index], str(fetches[index]))
            continue
        scale = float(np.abs(wanted).max()) if np.size(wanted) and np.asarray(wanted).dtype.kind == "f" else 0.0
        np.testing.assert_allclose(mine, wanted, rtol=rtol, atol=rtol * scale)
    return got


def explained(graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], **session: Any) -> str:
    """The report that `--explain` prints, without the programs in their text form."""
    with Session(graph, **session) as running:
        text = "\n".join(running.explain(list(fetches), feeds))
    return re.sub(r"^program\(.*?^}", "", text, flags=re.MULTILINE | re.DOTALL)
