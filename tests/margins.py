"""Which comparisons of floats come near what they allow: `python -m pytest -p tests.margins [ARGUMENT ...]`.

Each test's largest deviation in parts of what was allowed is kept; those above a fifth are listed at the end. What is
listed may fail on another processor, whose sums are added in another order: derive what it allows (`tests.tolerance`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from tests import tolerance

_THIN = 0.2
_found: dict[str, float] = defaultdict(float)
_running = ""
_original = np.testing.assert_allclose


# the defaults are NumPy's
def _measured(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0.0, **settings: Any) -> None:
    try:
        a, b = np.asarray(actual), np.asarray(desired)
        if a.dtype.kind in "fcV" and rtol + atol > 0:
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            a, b = a.astype(wide), b.astype(wide)
            with np.errstate(all="ignore"):
                tolerance.note(a - b, atol + rtol * np.abs(b))
    except (TypeError, ValueError):
        pass
    _original(actual, desired, rtol=rtol, atol=atol, **settings)


def _keep(ratio: float) -> None:
    _found[_running] = max(_found[_running], ratio)


def pytest_configure(config: pytest.Config) -> None:
    np.testing.assert_allclose = _measured  # type: ignore[assignment]
    tolerance.listeners.append(_keep)


def pytest_runtest_setup(item: pytest.Item) -> None:
    global _running
    _running = item.nodeid


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    report = yield
    if call.when == "call" and item.nodeid in _found:
        report.user_properties.append(("margin", _found[item.nodeid]))  # which pytest-xdist hands on
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, ()) if r.when == "call"]
    margins = {r.nodeid: dict(r.user_properties)["margin"] for r in reports if "margin" in dict(r.user_properties)}
    thin = sorted(((ratio, name) for name, ratio in margins.items() if ratio > _THIN), reverse=True)
    terminalreporter.section(f"{len(thin)} of {len(margins)} comparisons use more than {_THIN:.0%} of what they allow")
    for ratio, name in thin:
        terminalreporter.line(f"{ratio:6.2f}  {name}")
