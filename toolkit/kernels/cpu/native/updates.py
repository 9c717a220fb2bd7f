"""Optimizer updates as compiled loops: one pass over a variable, its slots and the gradient, in place.

There are no formulas here. A rule of `optimizers_dense` is run once on stand-ins for its arrays, which write down what
is done to them; so the results are the same bits. What is done with hyperparameters alone is done again in each step,
with NumPy. A rule that looks at a number (`if l1 > 0`) or calls a function that is not here cannot be compiled.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from toolkit.errors import InternalError
from toolkit.kernels.cpu.memory.addresses import address, elements, record
from toolkit.kernels.cpu.native.code import TYPES, Code, Lanes
from toolkit.kernels.cpu.native.compiler import Function, compiler
from toolkit.kernels.cpu.native.loops import Operand, is_long, nest
from toolkit.kernels.cpu.native.operations import OPERATORS
from toolkit.kernels.types import Array
from toolkit.target.target import Target

Rule = Callable[..., None]
_FUNCTIONS = {
    np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.true_divide: "RealDiv", np.negative: "Neg",
    np.square: "Square", np.sqrt: "Sqrt", np.absolute: "Abs", np.maximum: "Maximum", np.minimum: "Minimum",
    np.sign: "Sign",
}  # fmt: skip
_FLOATS = ("float32", "float64")


class _NotCompiledError(Exception):
    """The rule does something that cannot be written down."""


class _Scalar(NDArrayOperatorsMixin):
    """A hyperparameter, or what is made of some.

    Attributes:
        text: an expression in the hyperparameters g[0], g[1], ... that are not known beforehand.
        value: what it always is; None when it depends on those.
    """

    def __init__(self, text: str, value: Any = None):
        self.text = text
        self.value = value

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(isinstance(value, _Tensor) for value in inputs):
            return NotImplemented  # it is the tensor's turn
        if method != "__call__" or options or function not in _OPERATORS:
            raise _NotCompiledError
        values = [value.value if isinstance(value, _Scalar) else value for value in inputs]
        if all(value is not None for value in values):
            with np.errstate(all="ignore"):
                return _Scalar("", function(*values))
        texts = [_text(value) for value in inputs]
        return _Scalar(f"({_OPERATORS[function].format(*texts)})")

    def __bool__(self) -> bool:
        raise _NotCompiledError


def _text(value: Any) -> str:
    """A known number as it is written; numpy's scalars keep their type."""
    if isinstance(value, _Scalar):
        if value.value is None:
            return value.text
        value = value.value
    return f"{value.dtype.name}({value.item()!r})" if isinstance(value, np.generic) else repr(value)


#: of numbers, in a tenth of the time of a call of numpy's function
_OPERATORS = {
    np.add: "{} + {}", np.subtract: "{} - {}", np.multiply: "{} * {}", np.true_divide: "{} / {}",
    np.negative: "-{}", np.sqrt: "sqrt({})", np.square: "{0} * {0}",
}  # fmt: skip
_NAMES: dict[str, Any] = {
    "sqrt": np.sqrt, "float32": np.float32, "float64": np.float64, "int64": np.int64, "inf": np.inf, "nan": np.nan,
}  # fmt: skip


class _Tensor(NDArrayOperatorsMixin):
    """A variable, a slot, the gradient, or what is made of them."""

    def __init__(self, record: _Record, lanes: Lanes):
        self._record = record
        self.lanes = lanes
        self.dtype = record.dtype

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if method != "__call__" or options or function not in _FUNCTIONS:
            raise _NotCompiledError
        lanes = OPERATORS[_FUNCTIONS[function]].write(self._record.code, *map(self._record.lanes, inputs))
        if out is None:
            return _Tensor(self._record, lanes)
        out[0].lanes = lanes
        return out[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is not Ellipsis:
            raise _NotCompiledError
        self.lanes = self._record.lanes(value)


class _Record:
    """What a rule does.

    Attributes:
        numbers: what the code takes besides tensors, in order.
    """

    def __init__(self, code: Code, dtype: Any, numbers: Sequence[Lanes] | None):
        self.code = code
        self.dtype = dtype
        self.numbers: list[_Scalar] = []
        self._given = numbers

    def lanes(self, value: Any) -> Lanes:
        if isinstance(value, _Tensor):
            return value.lanes
        kind = TYPES[self.dtype.name]
        known = value.value if isinstance(value, _Scalar) else value
        if known is not None:
            return self.code.number(float(known), kind)
        at = next((index for index, known in enumerate(self.numbers) if known is value), len(self.numbers))
        if at == len(self.numbers):
            self.numbers.append(value)
        return Lanes("%unknown", kind) if self._given is None else self._given[at]


class UpdateKernel:
    """A rule, compiled.

    Args:
        function: takes addresses of the tensors, of the numbers, and of the tensors that change.
        changed: which of the variable and its slots do.
        record: how the numbers are made.
        size: numbers of a variable, or of a row.
        released: bytes of a gradient from which on other threads are let in.
    """

    def __init__(self, function: Function, changed: Sequence[int], record: _Record, size: int, released: int):
        self._released = released
        self._function = function
        self._size = size
        self._changed = changed
        expressions = ", ".join(number.text for number in record.numbers)
        self._numbers: Any = eval(f"lambda g: [{expressions}]", _NAMES)  # written by `_Scalar` alone
        self._dtype = record.dtype

    def run(self, arrays: Sequence[Array], scalars: Sequence[Any], ids: Array | None = None) -> None:
        """Change the variable and its slots in place.

        Args:
            arrays: these and the gradient, dense; of one shape, but for the gradient of some rows.
            scalars: the other inputs of the op.
            ids: of the rows that the gradient is for, in range; None for all of them.

        Raises:
            InternalError: an array has another type or size than the rule was compiled for.
        """
        dtype, cell, gradient = self._dtype, arrays[0], arrays[-1]
        width = self._size * dtype.itemsize
        # rows by number are in range, so what is touched of a variable is all of it at most
        of_cell, of_gradient = (width, width) if ids is None else (cell.nbytes, width * ids.size)
        places: list[int] = []
        for array in arrays:
            if array.dtype is not dtype and array.dtype != dtype:
                raise InternalError(f"an update of {dtype} was given an array of {array.dtype}")
            places.append(address(array, of_gradient if array is gradient else of_cell))
        changed = [places[at] for at in self._changed]
        numbers = self._numbers([scalar[()] for scalar in scalars])
        if numbers:
            numbers = np.array(numbers, dtype)
            places += elements(numbers)
        places += changed
        if ids is not None:
            if any(one.nbytes != cell.nbytes for one in arrays[:-1]) or cell.size % self._size:
                raise InternalError(f"variables of different sizes, or not of rows of {self._size}, came to an update")
            places = [address(ids, ids.nbytes), ids.size, *places]
        (self._function.call_held if gradient.nbytes < self._released else self._function.call)(record(*places))


def dense(rule: Rule, slots: int, place: int, scalars: Sequence[Any], attributes: Mapping[str, Any], dtype: Any,
          size: int, symbols: Mapping[str, int], target: Target) -> UpdateKernel | None:  # fmt: skip
    """The update of a whole variable.

    Args:
        rule: of `optimizers_dense`.
        slots: how many variables it takes first.
        place: where among the others the gradient is.
        scalars: the others: numbers that are the same in every step, None for those that are not.
        size: elements of the variable.
        symbols: addresses of functions of OpenMP, where it may be used.

    Returns:
        None where the rule cannot be compiled for this type, or there is no compiler.
    """
    made = _written(rule, slots, place, scalars, attributes, dtype, size, target, threads=bool(symbols))
    machine = compiler()
    if made is None or machine is None:
        return None
    text, changed, record = made
    return UpdateKernel(
        machine.function(text, dict(symbols)), changed, record, size, target.threads.released_by_updates
    )


def sparse(rule: Rule, slots: int, place: int, count: int, attributes: Mapping[str, Any], dtype: Any, width: int,
           ids: str, target: Target) -> UpdateKernel | None:  # fmt: skip
    """The update of rows of a variable, one after the other.

    Args:
        count: how many scalars it takes.
        width: elements of a row.
        ids: the numpy type of rows' numbers, by name.
    """
    made = _written(rule, slots, place, [None] * count, attributes, dtype, width, target, threads=False)
    machine = compiler()
    if made is None or machine is None:
        return None
    text, changed, record = made
    step = width * int(dtype.itemsize)
    rows = [True] * slots + [False] + [None] * len(record.numbers) + [True] * len(changed)
    whole = text.replace("define void @run(", "define internal void @row(") + _over_rows(rows, step, TYPES[ids])
    return UpdateKernel(machine.function(whole, {}), changed, record, width, target.threads.released_by_updates)


def _over_rows(rows: Sequence[bool | None], step: int, ids: str) -> str:
    """The loop over rows around the loop over one.

    Args:
        rows: of each operand, whether it is that of the row's number, or the next one; None: always the same.
    """
    lines: list[str] = []
    for index, by_number in enumerate(rows):
        offset = {True: "%there", False: "%here", None: "0"}[by_number]
        lines += [
            f"  %a{index} = getelementptr ptr, ptr %arguments, i64 {index + 2}",
            f"  %b{index} = load ptr, ptr %a{index}",
            f"  %c{index} = getelementptr i8, ptr %b{index}, i64 {offset}",
            f"  %d{index} = getelementptr ptr, ptr %operands, i64 {index}",
            f"  store ptr %c{index}, ptr %d{index}",
        ]
    addresses = "\n".join(lines)
    return f"""
define void @run(ptr %arguments) {{
entry:
  %ids = load ptr, ptr %arguments
  %count_ = getelementptr i64, ptr %arguments, i64 1
  %count = load i64, ptr %count_
  %operands = alloca [{len(rows)} x ptr]
  br label %head
head:
  %r = phi i64 [0, %entry], [%rn, %head]
  %at = getelementptr {ids}, ptr %ids, i64 %r
  %id = load {ids}, ptr %at
  %number = {"add i64 %id, 0" if ids == "i64" else "sext i32 %id to i64"}
  %there = mul i64 %number, {step}
  %here = mul i64 %r, {step}
{addresses}
  call void @row(ptr %operands)
  %rn = add i64 %r, 1
  %more = icmp ult i64 %rn, %count
  br i1 %more, label %head, label %done
done:
  ret void
}}
"""


def _written(rule: Rule, slots: int, place: int, scalars: Sequence[Any], attributes: Mapping[str, Any], dtype: Any,
             size: int, target: Target, *, threads: bool) -> tuple[str, list[int], _Record] | None:  # fmt: skip
    """The text of the loop over `size` elements, which cells it changes, and the numbers that it takes."""
    if dtype.name not in _FLOATS or not size:
        return None
    kind = TYPES[dtype.name]

    def follow(code: Code, tensors: Sequence[Lanes], numbers: Sequence[Lanes] | None) -> tuple[_Record, list[Lanes]]:
        record = _Record(code, dtype, numbers)
        *cells, gradient = (_Tensor(record, lanes) for lanes in tensors)
        rest: list[Any] = [_Scalar(f"g[{index}]", scalar) for index, scalar in enumerate(scalars)]
        rest.insert(place, gradient)
        rule(*cells, *rest, **attributes)
        return record, [cell.lanes for cell in cells]

    code = Code()
    tensors = [Lanes(f"%tensor{index}", kind) for index in range(slots + 1)]
    try:
        record, after = follow(code, tensors, None)
    except (_NotCompiledError, TypeError):
        return None
    changed = [index for index, lanes in enumerate(after) if lanes is not tensors[index]]

    def body(code: Code, given: Sequence[Lanes]) -> list[Lanes]:
        after = follow(code, given[: slots + 1], given[slots + 1 :])[1]
        return [after[index] for index in changed]

    whole, single = Operand(kind, (1,)), Operand(kind, (0,))
    inputs = [*[whole] * (slots + 1), *[single] * len(record.numbers)]
    shape, weight = (size,), len(code.lines)
    spread = threads and is_long(shape, weight, target.threads.nest)
    calls = weight > target.nests.written_out
    text = nest(shape, inputs, [whole] * len(changed), body, calls=calls, spread=spread)
    return text, changed, record
