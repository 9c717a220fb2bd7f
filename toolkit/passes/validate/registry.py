"""Rules, and the families that find their violations.

A family is one function over a `Subject`; its rules are a table beside it:

    @family(
        "devices",
        Rule("name", Severity.ERROR, "a device name cannot be read", "write it as /job:worker/task:0/device:CPU:0"),
    )
    def devices(subject: Subject) -> Iterator[Problem]:
        yield Problem("devices/name", "...", node="a")
"""

from __future__ import annotations

import fnmatch
import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import GraphError
from toolkit.passes.validate.finding import Severity

if TYPE_CHECKING:
    from toolkit.passes.validate.subject import Subject

#: the families in the order in which their findings are listed; each is a module of `rules`
FAMILIES = (
    "file", "structure", "opdef", "shapes", "functions", "control_flow", "devices", "variables", "checkpoint",
    "signatures", "numerics", "size", "coverage", "security", "budgets", "reproducibility",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be wrong.

    Attributes:
        name: within its family; the id is "family/name".
        severity: unless a configuration says otherwise.
        summary: what a violation is, in one line.
        fix: what to do about it.
    """

    name: str
    severity: Severity
    summary: str
    fix: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A violation as a family reports it.

    Attributes:
        rule: the id of the rule.
        fix: replaces the rule's where more is known.
    """

    rule: str
    message: str
    node: str | None = None
    function: str = ""
    fix: str = ""


Check = Callable[["Subject"], Iterator[Problem]]
_rules: dict[str, Rule] = {}
_checks: dict[str, Check] = {}


def family(name: str, *rules: Rule) -> Callable[[Check], Check]:
    """Register a family's check and its rules.

    Raises:
        GraphError: the family or one of the rules is registered already.
    """

    def register(check: Check) -> Check:
        if name in _checks:
            raise GraphError(f"the rule family '{name}' is registered twice")
        for rule in rules:
            identifier = f"{name}/{rule.name}"
            if identifier in _rules:
                raise GraphError(f"the rule '{identifier}' is registered twice")
            _rules[identifier] = rule
        _checks[name] = check
        return check

    return register


def _load() -> None:
    if len(_checks) < len(FAMILIES):
        for name in FAMILIES:
            importlib.import_module(f"toolkit.passes.validate.rules.{name}")


def all_rules() -> dict[str, Rule]:
    """Every rule by id, in the order of the families."""
    _load()
    order = {name: position for position, name in enumerate(FAMILIES)}
    return dict(sorted(_rules.items(), key=lambda item: order[item[0].partition("/")[0]]))


def get(identifier: str) -> Rule:
    """The rule of that id; it exists."""
    _load()
    return _rules[identifier]


def checks() -> Iterable[tuple[str, Check]]:
    """The families' checks, in order."""
    _load()
    return [(name, _checks[name]) for name in FAMILIES]


def matching(pattern: str) -> list[str]:
    """The ids of the rules that a pattern such as "security/*", "security" or "structure/cycle" means."""
    ids = all_rules()
    if pattern in FAMILIES:
        pattern += "/*"
    return [identifier for identifier in ids if fnmatch.fnmatchcase(identifier, pattern)]
