"""Reduced precision: tensors between primitives in bfloat16, sums in float32.

Convolutions and matrix products take bfloat16; what only primitives read is stored so. Everything else, results among
it, stays float32, with conversions in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Alias, Concat, Convert
from toolkit.compiler.ir.operations.products import Convolution, MatMul
from toolkit.compiler.ir.post_ops import BinaryFunction, Combine
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.kernels.tensors import BF16, F32


def lower_precision(block: Block, *, multiplies: bool) -> None:
    """Store in bfloat16 what convolutions and matrix products read and what primitives hand on to them.

    Args:
        multiplies: the processor multiplies such numbers; else there is nothing to gain.
    """
    if not multiplies:
        block.notes.append("bf16: the processor has no AVX512_BF16; float32 is used")
        return
    inner = _inner(block)
    for operation in block.operations:
        if (
            (_multiplies(operation) or _keeps_type(operation))
            and operation.output.dtype == F32
            and operation.output in inner
        ):
            _retype(operation.output)
    conversions = _Conversions()
    for operation in block.operations:
        if isinstance(operation, Convolution) and _multiplies(operation):
            conversions.add(operation, [operation.input], BF16)
            _free_bias(operation)
        elif isinstance(operation, MatMul):
            factors = [operation.left] if operation.right is None else [operation.left, operation.right]
            conversions.add(operation, factors, BF16)
        elif _keeps_type(operation):
            wanted = operation.output.dtype
            conversions.add(
                operation, operation.inputs if isinstance(operation, Concat) else operation.inputs[:1], wanted
            )
    block.weave(conversions.before)


def _multiplies(operation: Operation) -> bool:
    """Whether an operation multiplies in bfloat16: filters that change from step to step stay float32."""
    return isinstance(operation, MatMul) or (isinstance(operation, Convolution) and operation.filter is None)


def _keeps_type(operation: Operation) -> bool:
    return operation.has(Trait.KEEPS_TYPE)


def _inner(block: Block) -> set[Value]:
    """What only convolutions and products read, or what hands it on to them: scores of a softmax stay exact."""
    found: set[Value] = set()
    for operation in reversed(block.operations):  # users come before what they read
        for value in operation.outputs:
            if not (value.is_result or value.is_predicate) and all(_hands_on(u, value, found) for u in value.users):
                found.add(value)
    return found


def _hands_on(user: Operation, value: Value, inner: set[Value]) -> bool:
    """Whether an operation takes a value in bfloat16."""
    if isinstance(user, Alias) or _keeps_type(user):
        return user.output in inner
    return _multiplies(user) and not (isinstance(user, Convolution) and value is user.gates)


def _retype(value: Value) -> None:
    value.dtype = BF16
    for user in value.users:
        if isinstance(user, Alias):
            _retype(user.output)


def _free_bias(operation: Convolution) -> None:
    """Add a depthwise convolution's bias after it, in float32 likewise.

    oneDNN's faster code for them (brdgmm_dw) takes a bias in bfloat16 only; with this sum it needs 0.65 of the time.
    """
    bias = operation.bias
    if operation.windows.depthwise and bias is not None:
        added = Combine(BinaryFunction.ADD, Value(F32, bias.shape, bias))
        operation.bias, operation.post_ops = None, (added, *operation.post_ops)


class _Conversions:
    """Copies in another type, one for each value and branch, made before the first operation that wants it.

    Attributes:
        before: the conversions in front of each operation.
    """

    def __init__(self) -> None:
        self.before: dict[Operation, list[Operation]] = {}
        self._made: dict[tuple[Value, object], Value] = {}

    def add(self, operation: Operation, values: Sequence[Value], wanted: object) -> None:
        """Let an operation take these inputs in the wanted type."""
        moved: dict[Value, Value] = {}
        for value in dict.fromkeys(values):
            if value.dtype == wanted or value.dtype not in (F32, BF16) or value.is_constant:
                continue
            key = (value, operation.conditions)
            if key not in self._made:
                self._made[key] = Value(wanted, value.shape)
                conversion = Convert(input=value, outputs=[self._made[key]], steps=[operation.step])
                conversion.conditions = operation.conditions
                self.before.setdefault(operation, []).append(conversion)
            moved[value] = self._made[key]
        if moved:
            operation.replace_operands(moved)
