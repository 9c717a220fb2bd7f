"""Findings as workflow commands, which GitHub Actions shows as annotations."""

from __future__ import annotations

from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.reports import Report
from toolkit.printable import printable

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: Report) -> str:
    lines: list[str] = []
    for finding in report.findings:
        place = f"{finding.place}: " if finding.place else ""
        message = _escape(f"{place}{finding.message} (fix: {finding.fix})")
        lines.append(
            f"::{_COMMANDS[finding.severity]} file={_property(finding.file)},title={_property(finding.rule)}::{message}"
        )
    return "".join(line + "\n" for line in lines)


def _escape(text: str) -> str:
    return printable(text, keep="\r\n").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
