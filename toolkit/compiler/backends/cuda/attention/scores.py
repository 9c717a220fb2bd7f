"""Scores of attention: the product that makes them, and what is done to them before their softmax, put together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from toolkit.compiler.backends.cuda.attention.known import Known
from toolkit.compiler.backends.cuda.attention.links import (
    Added,
    Chosen,
    Link,
    Multiplied,
    Scaled,
    links_of_scores,
    links_of_shares,
)
from toolkit.compiler.backends.cuda.attention.sides import Sides, sides_of
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value

#: links between a product and its softmax, or between this and the next product
_MOST = 12


class Term(NamedTuple):
    """Attributes:
    mask: what is added.
    subtracted: it is taken off instead.
    factor: times which.
    shape: of the scores to which it is, with the same last two axes as those of the softmax.
    """

    mask: Value
    subtracted: bool
    factor: float
    shape: tuple[int, ...]


class Choice(NamedTuple):
    """Attributes:
    condition: where scores stay, or (inverse) where they do not.
    instead: what is there else; not 0.
    shape: of the scores.
    """

    condition: Value
    inverse: bool
    instead: float
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Scores:
    """Attributes:
    product: of queries and keys.
    links: what is done to it, the first one first.
    factor: that it is multiplied with.
    terms: what is added.
    causal: row r sees keys 0 to r.
    choice: what is in the place of some.
    """

    product: Call
    links: tuple[Link, ...]
    factor: float
    terms: tuple[Term, ...]
    causal: bool
    choice: Choice | None


def scores_of(softmax: Call, known: Known) -> Scores | None:
    """What a softmax is of, if that is a product whose numbers nobody else sees."""
    given = softmax.inputs[0]
    found = _linked(given, softmax, _MOST)
    if found is None or given.shape != softmax.output.shape:
        return None
    return _put_together(*found, known)


def _linked(value: Value, user: Operation, most: int) -> tuple[Call, tuple[Link, ...]] | None:
    producer = value.producer
    if not isinstance(producer, Call) or producer.step.deref or value.sole_user is not user:
        return None
    if sides_of(producer, value) is not None:
        return producer, ()
    for link in links_of_scores(producer) if most else ():
        found = _linked(link.given, producer, most - 1)
        if found is not None:
            return found[0], (*found[1], link)
    return None


def _put_together(product: Call, links: tuple[Link, ...], known: Known) -> Scores | None:
    """All scales as one, and all masks as what is added to scores that are scaled."""
    factor, choice = 1.0, None
    terms: list[Term] = []
    outer: Link | None = None
    causal = _is_causal(links, known)
    for link in reversed(links):
        match link:
            case Scaled():
                factor *= link.factor
            case Added():
                if not (causal and link.is_causal(known)) and known.single(link.mask) != 0:
                    terms.append(Term(link.mask, link.subtracted, factor, link.shape))
            case Multiplied():
                if not _is_nothing(link, outer, known):
                    return None
            case Chosen() if not causal:
                instead = known.single(link.instead)
                if choice is not None or terms or not instead or math.isnan(instead):
                    return None
                choice = Choice(link.condition, link.inverse, instead * factor, link.shape)
            case _:
                pass
        outer = link
    if not math.isfinite(factor) or (choice is not None and _is_nil(choice.instead)):
        return None
    return Scores(product, links, factor, tuple(terms), causal, choice)


def _is_nil(number: float) -> bool:
    """Whether float32 has 0 for a number."""
    return abs(number) < float(np.finfo(np.float32).smallest_normal)


def _is_causal(links: Sequence[Link], known: Known) -> bool:
    """Whether keys behind the query's own are hidden, and no others.

    Where another mask hides more, a row may have no key left before its query: shares are then of what is hidden, by
    how much each mask takes off. What is chosen instead outside of a mask is not hidden by it.
    """
    found, factor = False, 1.0
    for link in reversed(links):
        if isinstance(link, Scaled):
            factor *= link.factor
        elif isinstance(link, (Added, Chosen)):
            if factor == 1 and link.is_causal(known):
                found = True
            elif isinstance(link, Chosen) or not known.hides_nothing(link.mask, factor):
                return False
    return found


def _is_nothing(link: Multiplied, outer: Link | None, known: Known) -> bool:
    """Whether what scores are multiplied with is 1, or 0 where what is added next hides them."""
    if known.single(link.numbers) == 1:
        return True
    if not isinstance(outer, Added) or outer.given is not link.operation.output:
        return False
    if outer.is_causal(known) and link.is_causal(known):
        return True
    return known.hides(outer.mask, link.numbers, link.shape, subtracted=outer.subtracted)


class Used(NamedTuple):
    """Attributes:
    second: the product of shares and values.
    sides: of it.
    links: what is done to shares before.
    shares: what it takes.
    """

    second: Operation
    sides: Sides
    links: tuple[Link, ...]
    shares: Value


def uses_of(shares: Value) -> list[Used]:
    """The products by which shares may become a result, with a dropout before them or without one."""
    direct = [Used(user, sides, (), shares) for user in shares.users if (sides := _forward(user, shares))]
    return direct or [used for user in shares.users for used in _behind(user, shares, (), _MOST)]


def _forward(user: Operation, shares: Value) -> Sides | None:
    sides = sides_of(user, shares)
    return sides if sides is not None and sides.rows.value is user.output else None


def _behind(user: Operation, shares: Value, before: Sequence[Link], most: int) -> list[Used]:
    found: list[Used] = []
    for link in links_of_shares(user, shares) if most else ():
        given, links = link.operation.output, (*before, link)
        for following in given.users:
            sides = _forward(following, given)
            if sides is not None:
                found.append(Used(following, sides, links, given))
            else:
                found += _behind(following, given, links, most - 1)
    return found


class Dropped(NamedTuple):
    """Attributes:
    keep: what shares are multiplied with, numbers or (of conditions) 1 where it is true; None where nothing is.
    inverse: 1 where the condition is not true.
    factor: by which as well.
    """

    keep: Value | None
    inverse: bool
    factor: float


def dropped_of(links: Sequence[Link], known: Known) -> Dropped | None:
    """What links do to shares; None where no kernel does it."""
    keep: Value | None = None
    inverse, factor = False, 1.0
    for link in links:
        match link:
            case Scaled():
                factor *= link.factor
            case Multiplied() if keep is None:
                keep = link.numbers
            case Chosen() if keep is None and known.single(link.instead) == 0:
                keep, inverse = link.condition, link.inverse
            case _:
                return None
    return Dropped(keep, inverse, factor) if keep is not None or not links else None
