"""Types and shapes along every edge: static shape inference over everything that conforms."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject


@family(
    "shapes",
    Rule("contradiction", Severity.ERROR, "shapes that do not fit together", "correct the shape of one of the inputs"),
    Rule("noted", Severity.ERROR, "'_output_shapes' says another shape than the op gives", "remove the attribute"),
)
def shapes(subject: Subject) -> Iterator[Problem]:
    for body in subject.bodies:
        for name, message in body.contradictions.items():
            rule = "shapes/noted" if "'_output_shapes' says" in message else "shapes/contradiction"
            yield Problem(rule, message, name or None, body.function)
