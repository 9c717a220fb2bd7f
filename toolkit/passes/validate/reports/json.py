"""Findings as a JSON list; `Finding.as_json` is the schema of its objects."""

from __future__ import annotations

import json

from toolkit.passes.validate.reports import Report
from toolkit.printable import json_printable


def render(report: Report) -> str:
    return (
        json_printable(json.dumps([finding.as_json() for finding in report.findings], indent=1, ensure_ascii=False))
        + "\n"
    )
