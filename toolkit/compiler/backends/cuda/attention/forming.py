"""Attention put together: product, scale, mask, softmax, product become one operation; so do their gradients.

Formed is what one kernel computes without the scores in memory: where nobody else takes the values between, or all that
do are the gradients by queries, keys and values. Transpositions and changes of shape around it, which split and join
heads, are taken into its strides. A dropout between softmax and product is in the way, and what is there stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.compiler.backends.cuda.attention.gradients import FoundGradients, factor_of, gradients_of
from toolkit.compiler.backends.cuda.attention.masks import SELECTS, Known, Masked, Widened, causal, mask_axes
from toolkit.compiler.backends.cuda.attention.operations import AttentionCall, AttentionGradientCall
from toolkit.compiler.backends.cuda.attention.sides import (
    Placed,
    Side,
    Sides,
    attention_of,
    is_read_in_rows,
    sides_of,
)
from toolkit.compiler.backends.cuda.fusion.chains import next_of, times_of
from toolkit.compiler.backends.cuda.layout.moved_axes import backward, is_of_axes, is_turned, through
from toolkit.compiler.backends.cuda.layout.stored_axes import Axes, packed, transposed
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS
from toolkit.kernels.cuda.libraries.attention import Attention, FourStrides
from toolkit.kernels.tensors import F32

Refused = Callable[[Operation], bool]


def form_attention(
    block: Block, refused: Refused, changes_variables: Refused, wanted: Callable[[Attention], Attention | None]
) -> None:
    """Put attention and its gradients together, in loops too.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation: nothing is moved
            beyond it.
        wanted: an attention as one kernel computes it (`kernels.gpu.nn.attention.as_one_kernel`), with statistics its
            gradients, too; None where it stays parts.
    """
    for operation in block.operations:
        for region in operation.regions():
            form_attention(region, refused, changes_variables, wanted)
    found = [operation for operation in block if operation.op == "Softmax"]
    if not found:
        return
    times, known, widened = times_of(block, changes_variables), Known(), Widened(block)
    for softmax in found:
        if not refused(softmax):
            _Forming(block, refused, times, known, widened, wanted, softmax).run()


@dataclass
class _Made:
    """A result of an attention: the value that is left behind the changes of its axes, and how it lies there."""

    value: Value
    axes: Axes
    path: list[Operation] = field(default_factory=list[Operation])


class _Forming:
    """One softmax, and what is around it."""

    def __init__(
        self, block: Block, refused: Refused, times: dict[Operation, int], known: Known,
        widened: Widened, wanted: Callable[[Attention], Attention | None], softmax: Operation,
    ):  # fmt: skip
        self._block, self._refused, self._times, self._known, self._wanted = block, refused, times, known, wanted
        self._widened = widened
        self._softmax = softmax

    def run(self) -> None:
        """Form it, if all of it is there."""
        softmax = self._softmax
        if not isinstance(softmax, Call) or softmax.output.shape is None or softmax.output.dtype != F32:
            return
        shares = softmax.output
        if shares.is_result or shares.is_predicate or not self._is_beside(softmax):
            return
        before = self._scores()
        if before is None:
            return
        first, masked, factor, members = before
        keys = sides_of(first, first.output)
        products = [(user, sides) for user in shares.users if (sides := sides_of(user, shares)) is not None]
        second = next(((user, sides) for user, sides in products if sides.rows.value is user.output), None)
        if keys is None or second is None or not all(map(self._is_beside, (first, *members, second[0]))):
            return
        gradients = None
        if len(shares.users) > 1:
            known = self._known if masked.causal else None
            gradients = gradients_of(shares, second[0], keys, second[1], factor, self._is_beside, known)
            if gradients is None or set(shares.users) - {second[0], *gradients.operations}:
                return
        elif shares.users[second[0]] != 1:
            return
        self._form([first, *members], second[0], keys, second[1], masked, factor, gradients)

    # -- what is there

    def _is_beside(self, operation: Operation) -> bool:
        """Whether it is computed where the softmax is, sees the same variables, and may be put together with it."""
        softmax = self._softmax
        if operation.block is not self._block or operation.conditions != softmax.conditions:
            return False
        return self._times.get(operation) == self._times.get(softmax) and not self._refused(operation)

    def _scores(self) -> tuple[Operation, Masked, float, list[Operation]] | None:
        """The product that makes the scores, the mask, the scale, and the operations from the scale to the softmax."""
        members: list[Operation] = [self._softmax]
        given = self._softmax.inputs[0]
        at, masked = self._alone(given, self._softmax), Masked(given, None, False, [])
        if at is not None and at.op in (*ADDS, "Sub", *SELECTS):
            found = self._masked(at)
            if found is None:
                return None
            masked = found
            members[:0] = masked.members
            at = self._alone(masked.scores, masked.members[0])
        factor = None if at is None else factor_of(at)
        if at is not None and factor is not None:
            members.insert(0, at)
            at = self._alone(factor[0], at)
        if at is None or at.output.shape != self._softmax.output.shape:
            return None
        return at, masked, 1.0 if factor is None else factor[1], members

    def _alone(self, value: Value, user: Operation) -> Call | None:
        """What makes a value that nobody else takes."""
        producer = value.producer
        return producer if isinstance(producer, Call) and value.sole_user is user else None

    def _masked(self, operation: Call) -> Masked | None:
        """Scores and their mask."""
        for scores, members in causal(operation, self._known):
            if self._is_score(scores, members[0]):
                return Masked(scores, None, True, members)
        if operation.op not in ADDS or len(operation.inputs) != 2:
            return None
        for scores, mask in (operation.inputs, operation.inputs[::-1]):
            if mask.dtype == F32 and mask.shape is not None and self._is_score(scores, operation):
                return Masked(scores, mask, False, [operation])
        return None

    def _is_score(self, value: Value, user: Operation) -> bool:
        """Whether a product, or a scale of one, makes it for this alone."""
        producer = self._alone(value, user)
        if producer is None or value.shape != user.output.shape:
            return False
        factor = factor_of(producer)
        inner = producer if factor is None else self._alone(factor[0], producer)
        return inner is not None and sides_of(inner, inner.output) is not None

    # -- how it lies

    def _read(self, side: Side) -> Placed:
        """Where an operand is read from: what it is made of by changes of axes, as far as it lies in rows there."""
        value = side.value
        best = Placed(value, transposed(packed(value.shape or ()), side.order))
        path: list[Operation] = []
        producer = value.producer
        while producer is not None and is_of_axes(producer) and self._is_beside(producer):
            path.insert(0, producer)
            root = producer.inputs[0]
            axes = through(path, packed(root.shape or ()))
            axes = None if axes is None else transposed(axes, side.order)
            if axes is None:
                break
            if is_read_in_rows(axes):
                best = Placed(root, axes)
            producer = root.producer
        return best

    def _written(self, operation: Operation, side: Side) -> _Made:
        """Where a result is written: behind the changes of axes that follow, as far as it lies in rows there."""
        best = _Made(operation.output, transposed(packed(operation.output.shape or ()), side.order))
        path: list[Operation] = []
        at = operation
        while (user := next_of(at, self._refused, self._times)) is not None and is_of_axes(user):
            path.append(user)
            at = user
            if not is_turned(user):
                continue
            axes: Axes | None = packed(user.output.shape or ())
            for each in reversed(path):
                axes = None if axes is None else backward(each, axes)
            if axes is None or not is_read_in_rows(transposed(axes, side.order)):
                break
            best = _Made(user.output, transposed(axes, side.order), list(path))
        return best

    # -- what it becomes

    def _form(
        self, members: list[Operation], second: Operation, first: Sides, values: Sides, seen: Masked,
        factor: float, gradients: FoundGradients | None,
    ) -> None:  # fmt: skip
        mask = seen.mask
        q, k, v = self._read(first.rows), self._read(first.keys), self._read(values.keys)
        out = self._written(second, values.rows)
        shape = relations.shape(self._softmax.output)
        size, value_size = first.rows.size, values.keys.size
        tensors = [(q.axes, size), (k.axes, size), (v.axes, value_size), (out.axes, value_size)]
        masked = mask_axes(mask, shape)
        if mask is not None and masked is None:
            return
        if gradients is not None and not self._can_be_together(second, gradients):
            return
        d_out = None if gradients is None else self._read(gradients.d_out)
        made: list[_Made] = []
        if gradients is not None and d_out is not None:
            made = self._made(gradients, first, (size, value_size))
            tensors += [
                (d_out.axes, value_size),
                *zip((each.axes for each in made), (size, size, value_size), strict=True),
            ]
        if not all(is_read_in_rows(axes) for axes, _ in tensors):
            return
        like = (shape[-2], shape[-1], size, value_size)
        dtype, learns = str(q.value.dtype), gradients is not None

        def asked(axes: Axes | None) -> tuple[Attention, list[FourStrides]] | None:
            return attention_of(tensors, axes, like, dtype, factor, causal=seen.causal, statistics=learns)

        found = asked(masked)
        chosen = None if found is None else self._wanted(found[0])
        if found is not None and chosen is not None and mask is not None and chosen.mask != found[0].mask:
            mask = self._widened.of(mask, shape, second)
            found = asked(mask_axes(mask, shape))
        if found is None or chosen is None:
            return
        one, strides = found
        place: dict[str, Any] = {
            "sizes": tuple(one.sizes), "q_strides": one.q, "k_strides": one.k, "v_strides": one.v,
            "out_strides": one.out, "mask_strides": one.mask or (0, 0, 0, 0), "scale": factor, "causal": seen.causal,
        }  # fmt: skip
        statistics = [] if gradients is None else [Value(F32, chosen.kept)]
        before = [*members, second, *out.path]
        call = AttentionCall(
            q=q.value, k=k.value, v=v.value, mask=mask, **place, outputs=[out.value, *statistics],
            steps=_steps(before), conditions=second.conditions,
        )  # fmt: skip
        self._block.insert_before(second, [call])
        gone = list(before)
        if gradients is not None and d_out is not None:
            behind = [*gradients.operations, *(each for one in made for each in one.path)]
            backward_call = AttentionGradientCall(
                q=q.value, k=k.value, v=v.value, out=out.value, d_out=d_out.value, statistics=statistics[0], mask=mask,
                **place, d_out_strides=strides[4], dq_strides=strides[5], dk_strides=strides[6], dv_strides=strides[7],
                outputs=[each.value for each in made], steps=_steps(behind), conditions=second.conditions,
            )  # fmt: skip
            self._block.insert_before(gradients.first(self._block.positions()), [backward_call])
            gone += behind
        self._remove(gone, call.inputs)

    def _made(self, gradients: FoundGradients, first: Sides, sizes: tuple[int, int]) -> list[_Made]:
        """The gradients by queries, keys and values; those that nobody wants are written all the same."""
        found: list[_Made] = []
        for operation, side, like in (
            (gradients.by_queries, gradients.dq, first.rows), (gradients.by_keys, gradients.dk, first.keys),
            (gradients.by_values, gradients.dv, None),
        ):  # fmt: skip
            if operation is not None and side is not None:
                found.append(self._written(operation, side))
            else:
                assert like is not None
                shape = like.value.shape or ()
                ordered = tuple(shape[axis] for axis in like.order)
                found.append(_Made(Value(F32, ordered), packed(ordered)))
        return found

    def _can_be_together(self, second: Operation, gradients: FoundGradients) -> bool:
        """Whether all that the gradients take is there before the first of them."""
        positions = self._block.positions()
        first = positions[gradients.first(positions)]
        d_out = gradients.d_out.value.producer
        return positions[second] < first and (d_out is None or positions.get(d_out, -1) < first)

    def _remove(self, gone: Sequence[Operation], kept: Sequence[Value]) -> None:
        """Take operations out, the last one first, and the changes of axes before them that nobody wants any more."""
        positions = self._block.positions()
        waiting = {value for operation in gone for value in operation.inputs}
        known = {operation for value in waiting for operation in self._known.made_of(value)}
        for operation in sorted(gone, key=positions.__getitem__, reverse=True):
            self._block.erase(operation)
        while waiting:
            value = waiting.pop()
            producer = value.producer
            if producer is None or producer.block is not self._block or value.is_needed:
                continue
            if not is_of_axes(producer) and producer not in known:
                continue
            waiting.update(producer.inputs)
            self._block.erase(producer)


def _steps(operations: Sequence[Operation]) -> list[Any]:
    return [step for operation in operations for step in operation.steps]
