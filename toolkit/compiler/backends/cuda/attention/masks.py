"""Masks of attention as its kernels take them: in the softmax's shape, put together, made once for all layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.attention.scores import Choice, Dropped, Scores, Term
from toolkit.compiler.backends.cuda.layout.stored_axes import Axes, packed
from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes, host_numbers
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.graph import dtypes
from toolkit.kernels.tensors import F32
from toolkit.kernels.types import Array

Shape = tuple[int, ...]
#: masks that a kernel of ours adds
_MASKS = 2


class Masks:
    """What is computed of a block's masks, once for all attentions that have one.

    Args:
        times: how many operations before each one may have changed variables, which masks may be read from.
        to_device: an array in the memory of the device.
    """

    def __init__(self, block: Block, times: Mapping[Operation, int], to_device: Callable[[Array], Any]):
        self._block, self._times, self._to_device = block, times, to_device
        self._numbers: dict[float, Value] = {}
        self._made: dict[Any, Call] = {}
        self._fresh: list[Call] = []

    def begin(self, user: Operation) -> None:
        """From now on masks are for this operation, which is there before it takes them."""
        self._user, self._fresh = user, []

    def undo(self) -> None:
        """Nobody takes what was made since `begin`."""
        gone = set(self._fresh)
        self._made = {key: call for key, call in self._made.items() if call not in gone}
        for call in reversed(self._fresh):
            self._block.erase(call)
        self._fresh = []

    def added(self, scores: Scores, whole: Shape) -> list[Value] | None:
        """What is added to the scores of a softmax, at most so many as kernels take; None where shapes are broadcast.

        Args:
            whole: the shape of the softmax.
        """
        if any(mask_axes(term.mask, term.shape) is None for term in scores.terms):
            return None
        terms = [self._at(self._term(term), term.shape, whole) for term in scores.terms]
        while len(terms) > _MASKS or (len(terms) > 1 and self._is_within(*terms[:2])):
            terms.sort(key=lambda value: value.size)
            terms[:2] = [self.sum(*terms[:2])]
        return terms

    def sum(self, one: Value, other: Value) -> Value:
        """Of two masks."""
        shape = np.broadcast_shapes(relations.shape(one), relations.shape(other))
        return self._call("AddV2", [one, other], shape, {"T": dtypes.float32})

    def chosen(self, choice: Choice, whole: Shape) -> Value | None:
        """What is in the place of scores, 0 where they stay; None where these would be broadcast."""
        if mask_axes(choice.condition, choice.shape) is None:
            return None
        numbers = [self._number(number) for number in (0.0, choice.instead)]
        pair = numbers[::-1] if choice.inverse else numbers
        shape = relations.shape(choice.condition)
        made = self._call("SelectV2", [choice.condition, *pair], shape, {"T": dtypes.float32})
        return self._at(made, choice.shape, whole)

    def kept(self, dropped: Dropped) -> Value | None:
        """What shares are multiplied with, but for the factor: numbers, or 1 where a condition is true."""
        keep = dropped.keep
        if keep is None or not dropped.inverse:
            return keep
        return self._call("LogicalNot", [keep], relations.shape(keep), {})

    def with_every_row(self, mask: Value, scores: Shape) -> Value:
        """A mask under scores [..., rows, keys] with all rows and keys; axes before these stay one place."""
        own = relations.shape(mask)
        return self._spread(mask, (*((1,) * (2 - len(own)) + own)[:-2], *scores[-2:]))

    def _at(self, mask: Value, shape: Shape, scores: Shape) -> Value:
        """A mask of scores in one shape for the same scores in another one."""
        if shape == scores:
            return mask
        own = relations.shape(mask)
        given = (1,) * (len(shape) - len(own)) + own
        lead = _lead(given[:-2], shape[:-2], scores[:-2])
        whole = tuple(size for each, _ in lead for size in each)
        mask = self._spread(mask, (*whole, *given[-2:]))
        wanted = (*(size for _, each in lead for size in each), *given[-2:])
        if relations.shape(mask) == wanted:
            return mask
        attributes = {"T": dtypes.float32, "Tshape": dtypes.int32}
        return self._call("Reshape", [mask], wanted, attributes, beside=[host_numbers(*wanted)])

    def _term(self, term: Term) -> Value:
        mask, shape = term.mask, relations.shape(term.mask)
        if term.factor != 1 or term.subtracted:
            factor = -term.factor if term.subtracted else term.factor
            mask = self._call("Mul", [mask, self._number(factor)], shape, {"T": dtypes.float32})
        return mask

    def _is_within(self, one: Value, other: Value) -> bool:
        """Whether the sum of two masks is no larger than the larger one."""
        shape = np.broadcast_shapes(relations.shape(one), relations.shape(other))
        return math.prod(shape) <= max(one.size, other.size)

    def _spread(self, mask: Value, shape: Shape) -> Value:
        own = relations.shape(mask)
        if (1,) * (len(shape) - len(own)) + own == shape:
            return mask
        attributes = {"T": dtypes.float32, "Tidx": dtypes.int32}
        return self._call("BroadcastTo", [mask], shape, attributes, beside=[host_numbers(*shape)])

    def _number(self, number: float) -> Value:
        """A number in the memory of the device."""
        if number not in self._numbers:
            self._numbers[number] = Value(F32, (), self._to_device(np.array(number, np.float32)))
        return self._numbers[number]

    def _call(
        self, op: str, of: Sequence[Value], shape: Shape, attributes: Mapping[str, Any], *,
        beside: Sequence[Value] = (),
    ) -> Value:  # fmt: skip
        """The result of an op, of the last one's type.

        Args:
            of: what it takes.
            beside: numbers behind these, which the shape tells.
        """
        user = self._user
        key = (op, tuple(of), shape, self._times.get(user))
        made, positions = self._made.get(key), self._block.positions()
        if made is None or made.conditions != user.conditions or positions[made] > positions[user]:
            made = MadeNodes(user).call(op, "mask", [*of, *beside], [Value(of[-1].dtype, shape)], attributes)
            made.conditions = user.conditions
            self._block.insert_before(user, [made])
            self._made[key] = made
            self._fresh.append(made)
        return made.output


def _lead(given: Shape, before: Shape, after: Shape) -> list[tuple[Shape, Shape]]:
    """Axes of one shape that become axes of another, run by run: to what a mask is spread, and what it has then."""
    found: list[tuple[Shape, Shape]] = []
    one, other = list(before), list(after)
    at = 0
    while one or other:
        left, right = [one.pop(0)] if one else [], [other.pop(0)] if other else []
        while math.prod(left) != math.prod(right):
            if math.prod(left) < math.prod(right):
                left.append(one.pop(0))
            else:
                right.append(other.pop(0))
        own = given[at : at + len(left)]
        at += len(left)
        alone = all(size == 1 for size in own)
        found.append((own, (1,) * len(right)) if alone else (tuple(left), tuple(right)))
    return found


def mask_axes(mask: Value, shape: Shape) -> Axes | None:
    """How a mask lies under scores, 0 where it is broadcast; None where it is not broadcast to them."""
    own = mask.shape
    if own is None or len(own) > len(shape):
        return None
    given = (1,) * (len(shape) - len(own)) + own
    if any(size not in (1, whole) for size, whole in zip(given, shape, strict=True)):
        return None
    places = zip(packed(given), given, shape, strict=True)
    return tuple(axis if size == whole else ((whole, 0),) for axis, size, whole in places)
