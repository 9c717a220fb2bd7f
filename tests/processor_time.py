"""Where the suite's time goes: `python -m pytest -p tests.processor_time [ARGUMENT ...]` lists the costliest files.

What is counted is processor time of the test's process and of the children that it has waited for, which a busy
machine hardly changes, where the durations of pytest grow severalfold. Models that `tests.models` has TensorFlow
build are not counted: with an empty cache they add about a second each.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

_SHOWN = 40
_last = 0.0


def _used() -> float:
    return sum(os.times()[:4])


def pytest_collection_finish() -> None:
    global _last
    _last = _used()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    """Each of a test's reports, of its set-up, call and tear-down, has what was used since the one before."""
    global _last
    report = yield
    now = _used()
    report.user_properties.append((f"{call.when}_seconds", now - _last))  # which pytest-xdist hands on
    _last = now
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    files: dict[str, float] = defaultdict(float)
    tests: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds = dict(report.user_properties).get(f"{report.when}_seconds", 0.0)
                files[report.nodeid.partition("::")[0]] += seconds
                tests[report.nodeid] += seconds
    for title, found in (("files", files), ("tests", tests)):
        terminalreporter.section(f"{sum(found.values()):.0f} seconds of processor time; the costliest {title}")
        for name, seconds in sorted(found.items(), key=lambda pair: -pair[1])[:_SHOWN]:
            terminalreporter.line(f"{seconds:8.1f}  {name}")
