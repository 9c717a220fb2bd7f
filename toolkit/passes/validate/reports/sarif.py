"""Findings as SARIF 2.1.0 (OASIS standard, 2020), which code hosts and editors read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from toolkit.passes.validate import registry
from toolkit.passes.validate.finding import Finding
from toolkit.passes.validate.reports import Report
from toolkit.printable import json_printable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_FINGERPRINT = "graphmill/v1"


def render(report: Report) -> str:
    rules = registry.all_rules()
    positions = {identifier: position for position, identifier in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "graphmill",
                "version": report.version or "0",
                "rules": [
                    {
                        "id": identifier,
                        "shortDescription": {"text": rule.summary},
                        "help": {"text": rule.fix},
                        "defaultConfiguration": {"level": rule.severity.label},
                    }
                    for identifier, rule in rules.items()
                ],
            }
        },
        "artifacts": [{"location": {"uri": uri(file)}} for file in report.files],
        "results": [_result(finding, positions[finding.rule]) for finding in report.findings],
        "columnKind": "utf16CodeUnits",
    }
    return (
        json_printable(json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False))
        + "\n"
    )


def _result(finding: Finding, position: int) -> dict[str, Any]:
    location: dict[str, Any] = {
        # graphs have no lines; readers that show a file want one all the same
        "physicalLocation": {"artifactLocation": {"uri": uri(finding.file)}, "region": {"startLine": 1}}
    }
    if finding.node is not None or finding.function:
        name = finding.node if finding.node is not None else finding.function
        qualified = "::".join(part for part in (finding.graph, finding.function, finding.node or "") if part)
        kind = "member" if finding.node is not None else "function"
        location["logicalLocations"] = [{"name": name, "fullyQualifiedName": qualified, "kind": kind}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": position,
        "level": finding.severity.label,
        "message": {"text": f"{finding.message}. To fix it: {finding.fix}." if finding.fix else finding.message},
        "locations": [location],
        "partialFingerprints": {_FINGERPRINT: finding.fingerprint},
    }


def uri(file: str) -> str:
    """A file's name as a URI reference, relative where the name is."""
    path = Path(file)
    return ("file://" if path.is_absolute() else "") + quote(path.as_posix())
