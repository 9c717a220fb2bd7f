"""Findings as JUnit XML: a suite for each file, a test case for each finding; those that fail the validation fail."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from toolkit.passes.validate.finding import Finding
from toolkit.passes.validate.reports import Report
from toolkit.printable import printable, text_of


def render(report: Report) -> str:
    by_file: dict[str, list[Finding]] = {file: [] for file in report.files}
    for finding in report.findings:
        by_file.setdefault(finding.file, []).append(finding)
    root = ET.Element("testsuites", name="graphmill validate")
    tests = failures = 0
    for file, findings in by_file.items():
        failed = sum(1 for finding in findings if finding.severity >= report.fail_on)
        count = max(1, len(findings))
        tests, failures = tests + count, failures + failed
        suite = ET.SubElement(
            root, "testsuite", name=printable(file), tests=str(count), failures=str(failed), errors="0", skipped="0"
        )
        if not findings:
            ET.SubElement(suite, "testcase", classname=printable(file), name="no findings")
        for finding in findings:
            _case(suite, finding, fails=finding.severity >= report.fail_on)
    root.set("tests", str(tests))
    root.set("failures", str(failures))
    root.set("errors", "0")
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, finding: Finding, *, fails: bool) -> None:
    name = f"{finding.rule} {finding.place}".strip()
    case = ET.SubElement(suite, "testcase", classname=printable(finding.file), name=printable(name))
    text = text_of([f"{finding.file}: {finding.place}: {finding.message}", f"fix: {finding.fix}"]).rstrip()
    if fails:
        failure = ET.SubElement(case, "failure", message=printable(finding.message), type=finding.severity.label)
        failure.text = text
    else:
        ET.SubElement(case, "system-out").text = f"{finding.severity.label}: {text}"
