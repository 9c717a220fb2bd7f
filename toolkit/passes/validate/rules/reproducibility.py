"""Whether two runs give the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from toolkit.graph.node import Node
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Body, Subject


@family(
    "reproducibility",
    Rule("unseeded", Severity.NOTE, "a random op without a seed", "set its seed, or use a stateless random op"),
    Rule("clock", Severity.NOTE, "an op whose result depends on the time", "feed the time instead"),
)
def reproducibility(subject: Subject) -> Iterator[Problem]:
    is_random = dict[tuple[int, str], bool]()  # by body and op

    def differs(body: Body, node: Node) -> Iterator[Problem]:
        key = (id(body), node.op)
        found = is_random.get(key)
        if found is None:
            found = is_random[key] = _is_random(node)
        if node.op == "Timestamp":
            yield Problem("reproducibility/clock", "its result is the time", node.name, body.function)
        elif found and not node.attr_or("seed", 0) and not node.attr_or("seed2", 0):
            message = f"{node.op} has no seed: every run gives other numbers"
            yield Problem("reproducibility/unseeded", message, node.name, body.function)

    for body in subject.bodies:
        for node in body.candidates(partial(differs, body)):
            yield from differs(body, node)


def _is_random(node: Node) -> bool:
    op_def = node.graph.find_op_def(node.op)
    return op_def is not None and "seed" in op_def.attrs and "seed2" in op_def.attrs and op_def.is_stateful
