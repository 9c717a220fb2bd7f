"""Under which conditions something is computed: the branches that an operation is on."""

from __future__ import annotations

from toolkit.compiler.ir.value import Value


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
