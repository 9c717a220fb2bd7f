"""Limits that the user sets: nodes, parameters, floating-point operations, bytes."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject

_WHAT = {
    "nodes": "nodes, functions included",
    "params": "parameters",
    "flops": "floating-point operations for a batch of 1",
    "bytes": "bytes",
}


@family(
    "budgets",
    *(
        Rule(name, Severity.ERROR, f"more {what} than allowed", f"make the model smaller, or raise --max-{name}")
        for name, what in _WHAT.items()
    ),
    Rule(
        "flops-unknown",
        Severity.WARNING,
        "operations cannot all be counted before a run, so they may be more than --max-flops allows",
        "give inputs their shapes; call no function from itself",
    ),
)
def budgets(subject: Subject) -> Iterator[Problem]:
    for name, limit in subject.options.budgets.items():
        found: int = getattr(subject.sizes, name)
        if found > limit:
            yield Problem(f"budgets/{name}", f"{found:,} {_WHAT[name]}; {limit:,} are allowed")
        elif name == "flops" and subject.sizes.uncounted:
            reasons = "; ".join(subject.sizes.uncounted)
            yield Problem("budgets/flops-unknown", f"at least {found:,} {_WHAT[name]}; {reasons}")
