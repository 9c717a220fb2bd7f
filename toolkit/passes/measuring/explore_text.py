"""The views of `toolkit.passes.measuring.explore` as text for a terminal."""

from __future__ import annotations

from typing import Any

from toolkit.formats.inspection.report import bytes_text, flops_text, peak_text, plural, table
from toolkit.printable import text_of

Report = dict[str, Any]


def nodes(found: list[Report]) -> str:
    """One line for each node: name, op, results, device."""
    rows = [
        [
            f"{n['function']}:{n['name']}" if n["function"] else n["name"],
            n["op"],
            ", ".join(f"{o['dtype']}{_shape(o['shape'])}" for o in n["outputs"]),
            f"{n['fan_in']} -> {n['fan_out']}",
            n["device"],
        ]
        for n in found
    ]
    return text_of([*table(rows), plural(len(found), "node")])


def _shape(dims: list[int | None] | None) -> str:
    return "<unknown>" if dims is None else "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


def path(found: list[Report]) -> str:
    """The nodes of a path, each with the output by which it goes on."""
    rows = [
        [n["name"], n["op"], "^ control" if n["control"] else "" if n["output"] is None else f":{n['output']}"]
        for n in found
    ]
    return text_of(table(rows))


def costs(report: Report) -> str:
    """Totals, costs by op, the largest constants."""
    total = report["total"]
    rows = [["signature", report["signature"]]] if report["signature"] else []
    rows += [
        ["operations", f"{flops_text({**total, 'unknown': report['unknown']})} for a batch of {report['batch']}"],
        ["parameters", f"{total['parameters']:,}, {bytes_text(report['weight_bytes'])}"],
        ["results", bytes_text(total["bytes"])],
        ["peak memory", f"{peak_text(report)} of results at once, beside the parameters"],
    ]
    rows += [["unknown", reason] for reason in report["unknown"]]
    lines = table(rows)
    others = {key: one for key, one in report["signatures"].items() if key != report["signature"]}
    for key, one in others.items():
        lines.append(f"signature {key}: {flops_text(one)}, peak {peak_text(one)}")
    lines += ["", *_cost_table("op", [(op, cost) for op, cost in report["by_op"].items()])]
    if report["largest_constants"]:
        rows = [
            [f"{c['function']}:{c['name']}" if c["function"] else c["name"], f"{c['bytes']:,}"]
            for c in report["largest_constants"]
        ]
        lines += ["", "largest constants", *("  " + line for line in table(rows, right=[1]))]
    return text_of(lines)


def tree(root: Report, depth: int) -> str:
    """The scopes to a depth, indented, with their costs."""
    rows: list[tuple[str, Report]] = []

    def walk(entry: Report, level: int, label: str) -> None:
        rows.append(("  " * level + label, entry))
        if level < depth:
            for child in entry["children"]:
                walk(child, level + 1, child["name"].rpartition("/")[2] + ("/" if child["children"] else ""))

    walk(root, 0, "(all)")
    return text_of([*_cost_table("scope", rows), *table([["unknown", reason] for reason in root["unknown"]])])


def _cost_table(title: str, rows: list[tuple[str, Report]]) -> list[str]:
    head = [title, "nodes", "parameters", "FLOPs", "bytes"]
    body = [
        [name, *(f"{cost[key]:,}" if cost[key] else "-" for key in ("nodes", "parameters", "flops", "bytes"))]
        for name, cost in rows
    ]
    return table([head, *body], right=[1, 2, 3, 4])
