"""`graphmill checkpoint diff`: what changed between two checkpoints?"""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from commands.checkpoint.complete import complete_prefix
from commands.checkpoint.shared import Only, plural, reporting, table
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()
FINDINGS_EXIT = 1


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="The old one.", autocompletion=complete_prefix)],
    b: Annotated[str, typer.Argument(metavar="B", help="The new one.", autocompletion=complete_prefix)],
    rtol: Annotated[float, typer.Option("--rtol", min=0, help="Relative tolerance.")] = 0.0,
    atol: Annotated[float, typer.Option("--atol", min=0, help="Absolute tolerance.")] = 0.0,
    only: Only = None,
    json: Json = False,
) -> None:
    """Compare two checkpoints by name: tensors added, removed and changed.

    Elements are equal when |a - b| <= atol + rtol * |a|; NaN equals NaN. Exit code 1 when anything differs.

    graphmill checkpoint diff ckpt-7 ckpt-8 --only '*/kernel' --rtol 1e-3
    """
    from toolkit.errors import about_option
    from toolkit.formats.bundle import compare
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.bundle.patterns import matcher, require_matches

    with open_tensors(a) as old, open_tensors(b) as new, reporting("comparing"):
        with about_option("--only"):
            require_matches(only or [], {*old, *new}, old.prefix)
        found = list(compare.compare(old, new, rtol, atol, matcher(only) if only else None))
    different = [d for d in found if d.status != compare.EQUAL]
    counts = {
        s: sum(d.status == s for d in found) for s in (compare.ADDED, compare.REMOVED, compare.CHANGED, compare.EQUAL)
    }
    if json:
        print_json({"a": a, "b": b, **counts, "tensors": {d.name: _as_json(d) for d in different}})
    else:
        if different:
            show(
                *table([_row(d) for d in different], ["", "name", "what", "elements", "max abs", "max rel"], [3, 4, 5])
            )
        show(
            f"{counts['added']} added, {counts['removed']} removed, {counts['changed']} changed, "
            f"{plural(counts['equal'], 'tensor')} equal"
        )
    if different:
        raise typer.Exit(FINDINGS_EXIT)


def _row(d: Any) -> list[str]:
    sign = {"added": "+", "removed": "-", "changed": "~"}[d.status]
    old = f"{d.old.dtype}{d.old.shape}" if d.old else ""
    new = f"{d.new.dtype}{d.new.shape}" if d.new else ""
    what = old if old == new else " -> ".join(part for part in (old, new) if part)
    cells = [f"{d.count:,}" if d.count else "", *("" if x is None else f"{x:.3g}" for x in (d.max_abs, d.max_rel))]
    return [sign, d.name, what, *cells]


def _as_json(d: Any) -> dict[str, Any]:
    def number(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    report: dict[str, Any] = {"status": d.status}
    for key, entry in (("a", d.old), ("b", d.new)):
        if entry is not None:
            report[key] = {"dtype": entry.dtype.name, "shape": list(entry.dims)}
    if d.status == "changed":
        report |= {"elements": d.count, "max_abs": number(d.max_abs), "max_rel": number(d.max_rel)}
    return report
