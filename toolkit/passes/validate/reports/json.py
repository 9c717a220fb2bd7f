"""Findings as a JSON list; `Finding.as_json` is the schema of its objects."""

from __future__ import annotations

import json

from toolkit.passes.validate.reports import Report


def render(report: Report) -> str:
    return json.dumps([finding.as_json() for finding in report.findings], indent=1, ensure_ascii=False) + "\n"
