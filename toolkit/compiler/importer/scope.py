"""The values of one program, or of one iteration of a loop in it, while it is imported."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.compiler.ir.conditions import NONE, Conditions, Impossible, both
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program import Program
from toolkit.compiler.steps import Step

#: of outputs that are on no branch, as nearly all are
_ALWAYS: Sequence[Conditions] = (NONE,)


class Scope:
    """The values of one program's steps while it is lifted into a block.

    Args:
        around: the scope that a loop is met in, when this one is of its iterations: of the same program.
    """

    def __init__(self, program: Program, around: Scope | None = None):
        self.program = program
        self.values: dict[int, list[Value]] = {}
        self.conditions: dict[int, Sequence[Conditions]] = {}
        #: of what runs whichever of its outputs is taken: under which conditions a Switch decides
        self.deciding: dict[int, Conditions] = {}
        #: steps of whose second output something is made: of a Merge, which side came
        self.asked_for_sides: frozenset[int] = (
            frozenset(src for step in program.steps for src, index in step.inputs if index == 1)
            if around is None
            else around.asked_for_sides
        )

    def inputs(self, step: Step) -> list[Value]:
        return [self.values[src][index] for src, index in step.inputs]

    def of(self, item: int, index: int) -> Conditions:
        """Under which conditions a step put out one of its outputs."""
        conditions = self.conditions[item]
        return conditions[index] if index < len(conditions) else NONE

    def conditions_of(self, step: Step) -> Conditions:
        """Under which a step runs: all those of what it takes and waits for."""
        found = NONE
        for src, index in step.inputs:
            if (conditions := self.of(src, index)) is not NONE:
                found = both(found, conditions)
        for src in step.controls:
            if src in self.deciding:
                found = both(found, self.deciding[src])
            elif src in self.conditions and (conditions := self.of(src, 0)) is not NONE:
                found = both(found, conditions)
        return found

    def reached(self, step: Step) -> Conditions:
        """As `conditions_of`; impossible where these contradict each other."""
        try:
            return self.conditions_of(step)
        except Impossible:
            return Conditions(impossible=True)

    def set(self, item: int, values: list[Value], conditions: Conditions) -> None:
        """What a step put out, and under which conditions."""
        self.values[item] = values
        self.conditions[item] = _ALWAYS if conditions is NONE else [conditions] * max(1, len(values))
