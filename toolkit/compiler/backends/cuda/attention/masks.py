"""Masks of attention: which are surely causal, so that row r sees keys 0 to r, and nothing has to be added.

A graph has such a mask as numbers that are always the same: constants, or what follows from constants (ops like
`MatrixBandPart`, comparisons of ranges) and was too large to be computed before. It is added to scores, or taken off
them, or chosen instead of them, or scores are multiplied with 0 and 1 first, as GPT-2 does it.

What hides a key is -inf, or -1e9 and below: float32 has 24 bits, and beside a score that is a billion lower exp gives 0
for any other score of a row, of which each row has one. Whoever multiplies NaN by 0 gets NaN; here what a row does not
see is not looked at, so that rows before a NaN have none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.backends.cuda.layout.stored_axes import Axes, packed
from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes, host_numbers
from toolkit.compiler.importer.facts import TENSORS
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import as_outputs
from toolkit.compiler.transforms.elements import ADDS
from toolkit.graph import dtypes
from toolkit.kernels.registry import Kind
from toolkit.kernels.tensors import F32
from toolkit.kernels.variables import on_host

#: a score that is so much lower has no share, whatever the scores are
_HIDDEN = -1e9
#: bytes of an array that is computed to be looked at
_MOST = 1 << 26
SELECTS = ("Select", "SelectV2")


class Masked(NamedTuple):
    """Attributes:
    scores: what is masked.
    mask: what is added, where it is no causal one.
    causal: row r takes keys 0 to r.
    members: the operations that mask, the first one first.
    """

    scores: Value
    mask: Value | None
    causal: bool
    members: list[Operation]


class Known:
    """Numbers of a block that are always the same."""

    def __init__(self) -> None:
        self._arrays: dict[Value, Any] = {}
        self._patterns: dict[tuple[Value, str, tuple[int, int]], bool] = {}

    def is_pattern(self, value: Value, kind: str, scores: tuple[int, ...]) -> bool:
        """Whether numbers are a causal pattern under scores [..., rows, keys], the same one for all before these.

        Args:
            kind: "added", "subtracted" (0 where a key is seen, what hides it elsewhere), "factor" (1 and 0),
                "condition" (true and false), "inverse" (false and true), "instead" (anything, and what hides).
        """
        rows, keys = scores[-2:]
        key = (value, kind, (rows, keys))
        if key not in self._patterns:
            array = self._array(value)
            self._patterns[key] = array is not None and _is_pattern(np.asarray(on_host(array)), kind, rows, keys)
        return self._patterns[key]

    def made_of(self, value: Value) -> set[Operation]:
        """The operations that have made what was looked at."""
        found: set[Operation] = set()
        waiting = [value]
        while waiting:
            value = waiting.pop()
            producer = value.producer
            if producer is not None and producer not in found and self._arrays.get(value) is not None:
                found.add(producer)
                waiting += producer.inputs
        return found

    def _array(self, value: Value) -> Any:
        """The numbers, wherever they lie; None where they are not known."""
        constant: Any = value.constant
        if constant is not None:
            return constant if _is_tensor(constant) else None
        if value not in self._arrays:
            self._arrays[value] = self._computed(value)
        return self._arrays[value]

    def _computed(self, value: Value) -> Any:
        call = value.producer
        if not isinstance(call, Call) or call.step.kind is not Kind.PURE or call.conditions or call.step.deref:
            return None
        if len(call.outputs) != 1 or value.shape is None or value.nbytes > _MOST:
            return None
        given: list[Any] = []
        for each in call.inputs:
            array = self._array(each)
            if array is None:
                return None
            given.append(array)
        try:
            made: Any = as_outputs(call.step, call.step.compute(*given))[0]
        except Exception:  # whatever is wrong is reported when the step runs
            return None
        return made if _is_tensor(made) and tuple(made.shape) == value.shape else None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TENSORS)


def _is_pattern(array: Any, kind: str, rows: int, keys: int) -> bool:
    if kind in ("condition", "inverse") and array.dtype != np.bool_:
        return False
    if kind == "instead" and array.size == 1:
        return bool(array.reshape(())[()] <= _HIDDEN)
    if array.shape[-2:] != (rows, keys):
        return False
    seen = np.tri(rows, keys, dtype=bool)
    each = array.reshape(-1, rows, keys)
    here, hidden = each[:, seen], each[:, ~seen]
    match kind:
        case "added":
            return not here.any() and bool((hidden <= _HIDDEN).all())
        case "subtracted":
            return not here.any() and bool((hidden >= -_HIDDEN).all())
        case "factor":
            return bool((here == 1).all()) and not hidden.any()
        case "condition":
            return bool(here.all()) and not hidden.any()
        case "inverse":
            return not here.any() and bool(hidden.all())
        case _:
            return bool((hidden <= _HIDDEN).all())


class Widened:
    """Masks with a row for each query, as the library takes them, made once for all attentions that have one."""

    def __init__(self, block: Block):
        self._block = block
        self._made: dict[tuple[Value, tuple[int, ...]], Call] = {}

    def of(self, mask: Value, scores: tuple[int, ...], user: Operation) -> Value:
        """A mask under scores [..., rows, keys] with all rows and keys; axes before these stay one place.

        Args:
            user: what is there before it takes the mask.
        """
        own = relations.shape(mask)
        shape = (*((1,) * (2 - len(own)) + own)[:-2], *scores[-2:])
        made, positions = self._made.get((mask, shape)), self._block.positions()
        if made is None or made.conditions != user.conditions or positions[made] > positions[user]:
            attributes = {"T": dtypes.float32, "Tidx": dtypes.int32}
            inputs = [mask, host_numbers(*shape)]
            made = MadeNodes(user).call("BroadcastTo", "mask", inputs, [Value(F32, shape)], attributes)
            made.conditions = user.conditions
            self._block.insert_before(user, [made])
            self._made[mask, shape] = made
        return made.output


def mask_axes(mask: Value | None, shape: tuple[int, ...]) -> Axes | None:
    """How a mask lies under scores, 0 where it is broadcast; None where it is not broadcast to them."""
    own = () if mask is None else mask.shape or ()
    if mask is None or len(own) > len(shape):
        return None
    given = (1,) * (len(shape) - len(own)) + own
    if any(size not in (1, whole) for size, whole in zip(given, shape, strict=True)):
        return None
    places = zip(packed(given), given, shape, strict=True)
    return tuple(axis if size == whole else ((whole, 0),) for axis, size, whole in places)


def masks_nothing(operation: Operation, scores: Value, known: Known) -> bool:
    """Whether an operation leaves gradients by scores as they are, which are 0 where a causal mask hides a key."""
    shape = operation.output.shape
    if shape is None or shape != scores.shape:
        return False
    if operation.op == "Mul" and len(operation.inputs) == 2 and scores in operation.inputs:
        other = operation.inputs[1] if operation.inputs[0] is scores else operation.inputs[0]
        return other is not scores and known.is_pattern(other, "factor", shape)
    if operation.op not in SELECTS:
        return False
    condition, one, other = tuple(operation.inputs)
    if one is scores and is_zero(other):
        return known.is_pattern(condition, "condition", shape)
    return other is scores and is_zero(one) and known.is_pattern(condition, "inverse", shape)


def is_zero(value: Value) -> bool:
    """Whether a constant is 0 everywhere."""
    constant: Any = value.constant
    return _is_tensor(constant) and not np.asarray(on_host(constant)).any()


def causal(operation: Call, known: Known) -> list[tuple[Value, list[Operation]]]:
    """What a causal mask may be around: scores, and the operations that mask them; [] where it is none."""
    shape = operation.output.shape or ()
    found: list[tuple[Value, list[Operation]]] = []
    if operation.op in SELECTS:
        condition, one, other = operation.inputs
        for scores, instead, kind in ((one, other, "condition"), (other, one, "inverse")):
            if known.is_pattern(condition, kind, shape) and known.is_pattern(instead, "instead", shape):
                found.append((scores, [operation]))
        return found
    if len(operation.inputs) != 2 or operation.op not in (*ADDS, "Sub"):
        return []
    pairs = [operation.inputs] if operation.op == "Sub" else [operation.inputs, operation.inputs[::-1]]
    for scores, mask in pairs:
        if not known.is_pattern(mask, "subtracted" if operation.op == "Sub" else "added", shape):
            continue
        found.append((scores, [operation]))
        times = scores.producer
        if isinstance(times, Call) and scores.sole_user is operation and times.op == "Mul":
            for inner, factor in (times.inputs, times.inputs[::-1]):
                if known.is_pattern(factor, "factor", shape):
                    found.append((inner, [times, operation]))
    return found
