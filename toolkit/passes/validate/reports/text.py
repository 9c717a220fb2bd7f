"""Findings for a terminal: one line each, which begins with the file as compilers do."""

from __future__ import annotations

from collections import Counter

from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.reports import Report
from toolkit.printable import text_of

#: of one rule in one file so many are shown; the other formats have all
LIMIT = 20


def render(report: Report) -> str:
    shown: Counter[tuple[str, str]] = Counter()
    lines: list[str] = []
    fixes: set[str] = set()
    for finding in sorted(report.findings, key=lambda f: (report.files.index(f.file), -f.severity)):
        key = (finding.file, finding.rule)
        shown[key] += 1
        if shown[key] > LIMIT:
            continue
        place = f"{finding.place}: " if finding.place else ""
        fix = "" if finding.rule in fixes else f" [fix: {finding.fix}]"
        fixes.add(finding.rule)
        message = " ".join(finding.message.split())
        lines.append(f"{finding.file}: {finding.severity.label} {finding.rule}: {place}{message}{fix}")
    for (file, rule), count in shown.items():
        if count > LIMIT:
            lines.append(f"{file}: ... {count - LIMIT:,} more of {rule} (--format json has all)")
    lines.append(_summary(report))
    return text_of(lines)


def _summary(report: Report) -> str:
    counts = Counter(finding.severity for finding in report.findings)
    parts = [
        f"{counts[severity]:,} {severity.label}{'' if counts[severity] == 1 else 's'}"
        for severity in sorted(Severity, reverse=True)
        if counts[severity]
    ]
    files = f"{len(report.files):,} file{'' if len(report.files) == 1 else 's'}"
    accepted = f", {report.accepted:,} accepted by the baseline" if report.accepted else ""
    return f"{', '.join(parts) or 'no findings'} in {files}{accepted}"
