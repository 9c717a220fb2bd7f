"""Attention put together: product, scale, mask, softmax, product become one operation; so do their gradients.

Formed is what one kernel computes without the scores in memory: where nobody else takes the values between, or all that
do are the gradients by queries, keys and values. Transpositions and changes of shape around it, which split and join
heads, are taken into its strides. What a dropout between softmax and product leaves is read as a mask is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.compiler.backends.cuda.attention.gradients import FoundGradients, gradients_of
from toolkit.compiler.backends.cuda.attention.known import Known
from toolkit.compiler.backends.cuda.attention.masks import Masks, mask_axes
from toolkit.compiler.backends.cuda.attention.operations import AttentionCall, AttentionGradientCall
from toolkit.compiler.backends.cuda.attention.scores import Dropped, Scores, Used, dropped_of, scores_of, uses_of
from toolkit.compiler.backends.cuda.attention.sides import (
    Beside,
    Placed,
    Side,
    Sides,
    attention_of,
    is_read_in_loops,
    is_read_in_rows,
    sides_of,
)
from toolkit.compiler.backends.cuda.attention.softmaxes import put_softmaxes
from toolkit.compiler.backends.cuda.fusion.chains import next_of, times_of
from toolkit.compiler.backends.cuda.layout.moved_axes import backward, is_of_axes, is_turned, through
from toolkit.compiler.backends.cuda.layout.stored_axes import Axes, packed, transposed
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.libraries.attention import Attention, FourStrides
from toolkit.kernels.tensors import F32
from toolkit.kernels.types import Array

Refused = Callable[[Operation], bool]
Wanted = Callable[[Attention, bool], Attention | None]


def form_attention(
    block: Block,
    refused: Refused,
    changes_variables: Refused,
    wanted: Wanted,
    to_device: Callable[[Array], Any],
) -> None:
    """Put attention and its gradients together, in loops too.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation: nothing is moved
            beyond it.
        wanted: an attention as one kernel computes it (`kernels.gpu.nn.attention.as_one_kernel`), with statistics its
            gradients, too; None where it stays parts. It is told whether the numbers of all rows lie one behind the
            other.
        to_device: an array in the memory of the device.
    """
    for operation in block.operations:
        for region in operation.regions():
            form_attention(region, refused, changes_variables, wanted, to_device)
    put_softmaxes(block, refused)
    found = [operation for operation in block if operation.op == "Softmax"]
    if not found:
        return
    times, known = times_of(block, changes_variables), Known()
    masks = Masks(block, times, to_device)
    for softmax in found:
        if not refused(softmax):
            _Forming(block, refused, times, known, masks, wanted, softmax).run()


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
        masks: Masks, wanted: Wanted, softmax: Operation,
    ):  # fmt: skip
        self._block, self._refused, self._times, self._known, self._wanted = block, refused, times, known, wanted
        self._masks = masks
        self._softmax = softmax

    def run(self) -> None:
        """Form it, if all of it is there."""
        softmax = self._softmax
        if not isinstance(softmax, Call) or softmax.output.shape is None or softmax.output.dtype != F32:
            return
        shares = softmax.output
        if shares.is_result or shares.is_predicate or not self._is_beside(softmax):
            return
        scores = scores_of(softmax, self._known)
        keys = None if scores is None else sides_of(scores.product, scores.product.output)
        if scores is None or keys is None:
            return
        if not all(map(self._is_beside, (scores.product, *(link.operation for link in scores.links)))):
            return
        for used in uses_of(shares):
            dropped = dropped_of(used.links, self._known)
            if dropped is None or not all(map(self._is_beside, (used.second, *(x.operation for x in used.links)))):
                continue
            gradients = None
            if len(shares.users) > 1:
                gradients = gradients_of(shares, used, scores, keys, self._is_beside, self._known)
                if gradients is None:
                    continue
            elif not self._is_alone(used):
                continue
            self._form(scores, keys, used, dropped, gradients)
            return

    # -- what is there

    def _is_beside(self, operation: Operation) -> bool:
        """Whether it is computed where the softmax is, sees the same variables, and may be put together with it."""
        softmax = self._softmax
        if operation.block is not self._block or operation.conditions != softmax.conditions:
            return False
        return self._times.get(operation) == self._times.get(softmax) and not self._refused(operation)

    def _is_alone(self, used: Used) -> bool:
        """Whether nobody else takes what is between the softmax and its product."""
        operations = [*(link.operation for link in used.links), used.second]
        values = [self._softmax.output, *(link.operation.output for link in used.links)]
        return all(value.sole_user is user for value, user in zip(values, operations, strict=True))

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
        self, scores: Scores, first: Sides, used: Used, dropped: Dropped, gradients: FoundGradients | None
    ) -> None:
        second, values = used.second, used.sides
        q, k, v = self._read(first.rows), self._read(first.keys), self._read(values.keys)
        out = self._written(second, values.rows)
        size, value_size = first.rows.size, values.keys.size
        tensors = [(q.axes, size), (k.axes, size), (v.axes, value_size), (out.axes, value_size)]
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
        if not all(is_read_in_loops(axes) for axes, _ in tensors):
            return
        self._masks.begin(second)
        asked = self._asked(scores, dropped, tensors, (size, value_size), str(q.value.dtype), gradients is not None)
        if asked is None:
            self._masks.undo()
            return
        beside, chosen, one, strides = asked
        place: dict[str, Any] = {
            "sizes": tuple(one.sizes), "q_strides": one.q, "k_strides": one.k, "v_strides": one.v,
            "out_strides": one.out, "mask": beside.mask, "mask_strides": one.mask or (0, 0, 0, 0),
            "scale": scores.factor, "causal": scores.causal,
        }  # fmt: skip
        if beside.bias is not None:
            place |= {"bias": beside.bias, "bias_strides": one.bias}
        if beside.keep is not None:
            place |= {"keep": beside.keep, "keep_strides": one.keep, "kept_scale": dropped.factor}
        if one.chosen:
            place["chosen"] = True
        if one.group > 1:
            place["group"] = one.group
        statistics = [] if gradients is None else [Value(F32, chosen.kept)]
        links = [*(link.operation for link in scores.links), self._softmax, *(link.operation for link in used.links)]
        before = [scores.product, *links, second, *out.path]
        call = AttentionCall(
            q=q.value, k=k.value, v=v.value, **place, outputs=[out.value, *statistics], steps=_steps(before),
            conditions=second.conditions,
        )  # fmt: skip
        self._block.insert_before(second, [call])
        gone = list(before)
        if gradients is not None and d_out is not None:
            behind = [*gradients.operations, *(each for one in made for each in one.path)]
            backward_call = AttentionGradientCall(
                q=q.value, k=k.value, v=v.value, out=out.value, d_out=d_out.value, statistics=statistics[0], **place,
                d_out_strides=strides[4], dq_strides=strides[5], dk_strides=strides[6], dv_strides=strides[7],
                outputs=[each.value for each in made], steps=_steps(behind), conditions=second.conditions,
            )  # fmt: skip
            self._block.insert_before(gradients.first(self._block.positions()), [backward_call])
            gone += behind
        self._remove(gone)

    def _asked(
        self, scores: Scores, dropped: Dropped, tensors: Sequence[tuple[Axes, int]], sizes: tuple[int, int],
        dtype: str, learns: bool,
    ) -> tuple[Beside, Attention, Attention, list[FourStrides]] | None:  # fmt: skip
        """Masks, the attention that is wanted, the one that is launched and the strides of its tensors."""
        whole = relations.shape(self._softmax.output)
        like = (whole[-2], whole[-1], *sizes)
        in_rows = all(is_read_in_rows(axes) for axes, _ in tensors)
        masks = self._masks
        added = masks.added(scores, whole)
        chosen = None if scores.choice is None else masks.chosen(scores.choice, whole)
        if added is None or (chosen is None) != (scores.choice is None):
            return None
        keep = masks.kept(dropped)
        if chosen is not None and len(added) > 1:
            added = [masks.sum(*added)]
        given = [*([] if chosen is None else [chosen]), *added, None, None]
        beside = Beside(given[0], given[1], keep, chosen is not None, dropped.factor)

        def ask(beside: Beside) -> tuple[Attention, list[FourStrides]] | None:
            places = [None if each is None else mask_axes(each, whole) for each in beside[:3]]
            if any(place is None and each is not None for place, each in zip(places, beside[:3], strict=True)):
                return None
            return attention_of(
                tensors, places, beside, like, dtype, scores.factor, causal=scores.causal, statistics=learns
            )

        found = ask(beside)
        wanted = None if found is None else self._wanted(found[0], in_rows)
        if found is None or wanted is None:
            return None
        mask = beside.mask
        if mask is not None and beside.bias is not None and wanted.bias is None:
            mask = masks.sum(mask, beside.bias)
        if mask is not None and wanted.mask != found[0].mask:
            beside = beside._replace(mask=masks.with_every_row(mask, whole), bias=None)
            found = ask(beside)
        return None if found is None else (beside, wanted, *found)

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

    def _remove(self, gone: Sequence[Operation]) -> None:
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
