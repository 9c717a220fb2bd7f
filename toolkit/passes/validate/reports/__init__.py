"""Findings as text, JSON, SARIF, JUnit XML or GitHub annotations."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import UsageError, did_you_mean
from toolkit.passes.validate.finding import Finding, Severity

#: format to module; each has `render(report) -> str`
FORMATS = ("text", "json", "sarif", "junit", "github")


@dataclass(frozen=True, slots=True)
class Report:
    """What a format renders.

    Attributes:
        files: every file looked at, those without findings included.
        fail_on: findings at or above it fail the validation.
        accepted: how many findings a baseline took away.
        version: graphmill's.
    """

    findings: Sequence[Finding]
    files: Sequence[str]
    fail_on: Severity
    accepted: int = 0
    version: str = ""

    @property
    def failures(self) -> int:
        return sum(1 for finding in self.findings if finding.severity >= self.fail_on)


def render(report: Report, format: str) -> str:
    """The report in one of FORMATS, with a newline at the end.

    Raises:
        UsageError: there is no such format.
    """
    if format not in FORMATS:
        raise UsageError(
            f"there is no format '{format}'" + did_you_mean(format, FORMATS, then=f"known: {', '.join(FORMATS)}")
        )
    return importlib.import_module(f"toolkit.passes.validate.reports.{format}").render(report)
