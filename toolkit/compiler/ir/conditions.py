"""Under which conditions something is computed: the branches that an operation is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.compiler.ir.value import Value

if TYPE_CHECKING:
    from toolkit.compiler.ir.operation import Operation


class Impossible(Exception):  # noqa: N818 -- a state, not an error
    """Conditions that contradict each other: never reached."""


class Conditions:
    """What must hold for something to be computed: for each predicate, whether it must be true or false.

    Attributes:
        terms: (predicate, wanted) pairs, the outermost branch first.
        impossible: it can never be computed.
    """

    __slots__ = ("impossible", "terms")

    def __init__(self, terms: tuple[tuple[Value, bool], ...] = (), *, impossible: bool = False):
        self.terms = terms
        self.impossible = impossible

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conditions) and self.terms == other.terms and self.impossible == other.impossible

    def __hash__(self) -> int:
        return hash((self.terms, self.impossible))

    def bind(self, operation: Operation) -> None:
        """An operation runs under these from now on."""
        for predicate, _ in self.terms:
            if predicate.decides is None:
                predicate.decides = {}
            predicate.decides[operation] = None

    def release(self, operation: Operation) -> None:
        """It does not any more."""
        for predicate, _ in self.terms:
            if predicate.decides is not None:
                predicate.decides.pop(operation, None)

    def replaced(self, old: Value, new: Value) -> Conditions:
        """The same of another predicate."""
        return Conditions(tuple((new if value is old else value, wanted) for value, wanted in self.terms))


NONE = Conditions()


def both(first: Conditions, second: Conditions) -> Conditions:
    """Both conditions.

    Raises:
        Impossible: they contradict each other.
    """
    if first.impossible or second.impossible:
        raise Impossible
    if not second.terms or first.terms == second.terms:
        return first
    if not first.terms:
        return second
    terms = dict(first.terms)
    for predicate, wanted in second.terms:
        if terms.setdefault(predicate, wanted) is not wanted:
            raise Impossible
    return Conditions(tuple(terms.items()))
