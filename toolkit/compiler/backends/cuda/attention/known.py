"""Numbers that are always the same, and what they are as masks of attention: causal ones, where row r sees keys 0 to r.

A graph has such a mask as numbers that are always the same: constants, or what follows from constants (ops like
`MatrixBandPart`, comparisons of ranges) and was too large to be computed before. It is added to scores, or taken off
them, or chosen instead of them, or scores are multiplied with 0 and 1 first, as GPT-2 does it.

What hides a key is -inf, or -1e9 and below: float32 has 24 bits, and beside a score that is a billion higher exp gives
0 for it. Each row has one that is, its own, where nothing else is hidden. Whoever multiplies NaN by 0 gets NaN; here
what a row does not see is not looked at, so that rows before a NaN have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.compiler.importer.facts import TENSORS
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import as_outputs
from toolkit.kernels.registry import Kind
from toolkit.kernels.resources.variables import on_host

#: a score that is so much lower has no share, whatever the scores are
_HIDDEN = -1e9
#: what may be added to scores that are seen: what is hidden is a thousand times as low
_SMALL = -_HIDDEN / 1000
#: bytes of an array that is computed to be looked at
_MOST = 1 << 26


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

    def hides(self, mask: Value, factor: Value, scores: tuple[int, ...], *, subtracted: bool) -> bool:
        """Whether what is multiplied with 0 is hidden as well by what is added, or subtracted, and each row sees a key.

        Args:
            factor: of 0 and 1.
        """
        numbers, factors = self._seen(mask), self._seen(factor)
        if numbers is None or factors is None:
            return False
        numbers = -numbers if subtracted else numbers
        try:
            added, seen = (np.broadcast_to(each, np.broadcast_shapes(numbers.shape, factors.shape, scores[-2:]))
                           for each in (numbers, factors == 1))  # fmt: skip
        except ValueError:
            return False
        if factors.size > 1 and not np.isin(factors, (0, 1)).all():
            return False
        return bool(seen.any(-1).all()) and not added[seen].any() and bool((added[~seen] <= _HIDDEN).all())

    def hides_nothing(self, mask: Value, factor: float) -> bool:
        """Whether what is added, times a factor, is so small that what is hidden has no share beside what it leaves."""
        numbers = self._seen(mask)
        return numbers is not None and bool((np.abs(numbers * factor) <= _SMALL).all())

    def single(self, value: Value) -> float | None:
        """The number that a value is everywhere; None where there are several, or they are not known."""
        array = self._seen(value)
        if array is None or not array.size or array.dtype.kind not in "fiub":
            return None
        first = array.reshape(-1)[0]
        return float(first) if bool((array == first).all()) else None

    def _seen(self, value: Value) -> Any:
        array = self._array(value)
        return None if array is None else np.asarray(on_host(array))

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
