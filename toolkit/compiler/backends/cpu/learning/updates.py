"""Optimizer updates in one pass over memory, in place: as a compiled loop, else in one or two primitives.

NumPy would make a pass over memory for every operation of the formula. A loop is made of the rule itself of
`kernels.cpu.state.optimizers_dense`. Without a compiler the formulas of float32 variables are chains of primitives over
the variable, its slots and the gradient, each read and written once.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.learning.operations import UpdateVariable
from toolkit.compiler.backends.cpu.learning.rows import known_cell
from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import scalar_of
from toolkit.errors import InternalError, InvalidArgumentError
from toolkit.kernels.cpu.native import updates
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.library import OneDnnError, library, openmp_symbols, require
from toolkit.kernels.cpu.onednn.memory import Memory
from toolkit.kernels.cpu.onednn.primitive import (
    Arg,
    Binary,
    BinaryPost,
    Eltwise,
    EltwisePost,
    Primitive,
    PrimitiveCall,
    new_stream,
)
from toolkit.kernels.cpu.state.optimizers_dense import OPTIMIZERS, OptimizerRule
from toolkit.kernels.resources import variables
from toolkit.kernels.tensors import F32
from toolkit.kernels.types import Array
from toolkit.target.target import Target

_SCALAR = (1,)


class Update:
    """Primitives over a variable, its slots, the gradient and numbers that change from step to step.

    Args:
        cells: the variable and its slots; their arrays are changed.
        numbers: how many numbers the chains take.
        released: bytes of a gradient from which on other threads are let in.
    """

    def __init__(self, cells: Sequence[Any], numbers: int, released: int):
        self._released = released
        array = cells[0].value
        self._cells = list(cells)
        self._library = require()
        self._stream = new_stream()
        self._whole = memory.dense((array.size,), F32)
        self._one = memory.dense(_SCALAR, F32)
        self.numbers = np.zeros(max(1, numbers), np.float32)
        self._memories = [Memory(self._whole) for _ in range(len(cells) + 1)]
        self._numbers = [Memory(self._one, self.numbers[i : i + 1]) for i in range(numbers)]
        self._calls: list[Any] = []

    def chain(self, algorithm: Binary, first: int, second: int | str, target: int, *posts: Any) -> None:
        """Add a primitive: target = posts(first op second).

        Args:
            first, second, target: which cell, or -1 for the gradient; "0" for the first number.
            posts: (Binary, operand) or EltwisePost, in order.
        """
        chain: list[Any] = []
        memories = [(int(Arg.SRC), self._memories[first]), (int(Arg.SRC_1), self._operand(second))]
        for index, post in enumerate(posts):
            if isinstance(post, EltwisePost):
                chain.append(post)
                continue
            operand = self._operand(post[1])
            chain.append(BinaryPost(post[0], operand.desc))
            memories.append((Arg.POST_OP * (index + 1) | Arg.SRC_1, operand))
        primitive = Primitive("binary", algorithm, self._whole, self._operand(second).desc, self._whole, posts=chain)
        memories.append((int(Arg.DST), self._memories[target]))
        call = PrimitiveCall(primitive, self._stream, memories)
        self._calls.append((call, call.prepared))

    def _operand(self, which: int | str) -> Memory:
        return self._numbers[int(which)] if isinstance(which, str) else self._memories[which]

    def run(self, gradient: Array) -> None:
        """Execute with this gradient; `numbers` have been set."""
        arrays = _arrays(self._cells, gradient)
        for place, array in zip(self._memories, arrays, strict=True):
            place.point_to(array)
        execute = self._library.execute if gradient.nbytes > self._released else self._library.execute_held
        for _, prepared in self._calls:
            if execute(*prepared):
                raise InternalError("a oneDNN primitive failed")


def _gradient_descent(update: Update, constants: Sequence[float | None]) -> Callable[..., None]:
    update.chain(Binary.MUL, -1, "0", 0, EltwisePost(Eltwise.LINEAR, -1.0, 0.0), (Binary.ADD, 0))

    def run(lr: Any, gradient: Array) -> None:
        update.numbers[0] = lr
        update.run(gradient)

    return run


def _momentum(update: Update, constants: Sequence[float | None]) -> Callable[..., None]:
    update.chain(Binary.MUL, 1, "0", 1, (Binary.ADD, -1))
    update.chain(Binary.MUL, 1, "1", 0, EltwisePost(Eltwise.LINEAR, -1.0, 0.0), (Binary.ADD, 0))

    def run(lr: Any, gradient: Array, momentum: Any) -> None:
        update.numbers[0] = momentum
        update.numbers[1] = lr
        update.run(gradient)

    return run


def _adam(update: Update, constants: Sequence[float | None]) -> Callable[..., None] | None:
    beta1, beta2, epsilon = constants[3:6]
    if beta1 is None or beta2 is None or epsilon is None:
        return None
    one = np.float32(1)
    keep1, keep2 = float(one - np.float32(beta1)), float(one - np.float32(beta2))
    update.chain(Binary.SUB, -1, 1, 1, EltwisePost(Eltwise.LINEAR, keep1, 0.0), (Binary.ADD, 1))
    update.chain(Binary.MUL, -1, -1, 2, (Binary.SUB, 2), EltwisePost(Eltwise.LINEAR, keep2, 0.0), (Binary.ADD, 2))
    update.chain(
        Binary.MAX, 2, 2, 0, EltwisePost(Eltwise.SQRT), EltwisePost(Eltwise.LINEAR, 1.0, epsilon),
        EltwisePost(Eltwise.POW, 1.0, -1.0), (Binary.MUL, 1), (Binary.MUL, "0"), (Binary.ADD, 0),
    )  # fmt: skip

    def run(beta1_power: Any, beta2_power: Any, lr: Any, b1: Any, b2: Any, eps: Any, gradient: Array) -> None:
        rate = float(lr) * math.sqrt(1.0 - float(beta2_power)) / (1.0 - float(beta1_power))
        update.numbers[0] = -rate
        update.run(gradient)

    return run


#: rule, and how many numbers its chains take
_RULES: dict[str, tuple[Callable[..., Any], int]] = {
    "GradientDescent": (_gradient_descent, 1), "Momentum": (_momentum, 2), "Adam": (_adam, 1),
}  # fmt: skip


def lower_updates(
    block: Block,
    running: RunningStep,
    refused: Callable[[Operation], bool],
    target: Target,
    *,
    native: bool,
    onednn: bool,
) -> None:
    """Turn updates of variables that are there already into `UpdateVariable`."""
    for operation in block.operations:
        name = operation.op.removeprefix("Resource").removeprefix("Apply")
        optimizer = OPTIMIZERS.get(name) if "Apply" in operation.op else None
        if optimizer is None or refused(operation) or any(value.is_needed for value in operation.outputs):
            continue
        slots, gradient = optimizer.slots, operation.inputs[optimizer.gradient]
        cells = [known_cell(running, value.constant) for value in operation.inputs[:slots]]
        if gradient.shape is None or 0 in gradient.shape or not all(_is_fit(cell, gradient) for cell in cells):
            continue
        if any(value.shape != () for value in operation.inputs[slots:] if value is not gradient):
            continue
        run = _compiled(operation, optimizer, cells, target, onednn=onednn) if native else None
        if run is None and onednn and gradient.dtype == F32:
            run = _primitives(operation, name, cells, target.threads.released_by_updates)
        if run is None:
            continue
        operation.become(
            UpdateVariable, operands=tuple(operation.inputs[slots:]), run=_locked(cells[0], run), outputs=[]
        )


def _compiled(
    operation: Operation, optimizer: OptimizerRule, cells: Sequence[Any], target: Target, *, onednn: bool
) -> Callable[..., None] | None:
    """The update as a loop."""
    symbols = openmp_symbols(*OPENMP) if onednn and library() is not None else {}
    attributes = {name: operation.step.node.attr(name) for name in optimizer.attributes}
    place = optimizer.gradient - optimizer.slots
    others = operation.inputs[optimizer.slots :]
    known = [value.constant[()] if value.is_constant else None for at, value in enumerate(others) if at != place]
    array = cells[0].value
    update = updates.dense(
        optimizer.rule, optimizer.slots, place, known, attributes, array.dtype, array.size, symbols, target,
    )  # fmt: skip
    if update is None:
        return None

    def run(*inputs: Any) -> None:
        update.run(_arrays(cells, inputs[place]), [*inputs[:place], *inputs[place + 1 :]])

    return run


def _primitives(operation: Operation, name: str, cells: Sequence[Any], released: int) -> Callable[..., None] | None:
    """The update as primitives."""
    rule = _RULES.get(name)
    if rule is None or operation.step.node.attr("use_nesterov", False):
        return None
    make, numbers = rule
    try:
        return make(Update(cells, numbers, released), [scalar_of(value) for value in operation.inputs[len(cells) :]])
    except OneDnnError as error:
        raise NotSupportedError(operation, str(error)) from None


def _arrays(cells: Sequence[Any], gradient: Array) -> list[Array]:
    """The arrays of the variable and its slots, to be written, and the gradient.

    Raises:
        FailedPreconditionError: a variable is not initialised.
        InvalidArgumentError: the shapes or types differ.
    """
    gradient = np.asarray(gradient, order="C")
    shape, dtype = gradient.shape, gradient.dtype
    arrays: list[Array] = []
    for cell in cells:
        array = variables.writable(cell)
        if array.shape != shape or (array.dtype is not dtype and array.dtype != dtype):
            raise InvalidArgumentError(
                "the variable, its slots and the gradient must have one shape and type: "
                f"{array.dtype}{list(array.shape)} against {dtype}{list(shape)}"
            )
        arrays.append(array)
    arrays.append(gradient)
    return arrays


def _locked(cell: Any, run: Callable[..., None]) -> Callable[..., None]:
    def locked(*inputs: Any) -> None:
        with cell.lock:
            run(*inputs)

    return locked


def _is_fit(cell: Any, gradient: Value) -> bool:
    return cell is not None and cell.value.dtype == gradient.dtype and cell.value.shape == gradient.shape


def write_update(emitter: Emitter, operation: UpdateVariable) -> None:
    """Call the prepared update."""
    inputs = ", ".join(emitter.read(value) for value in operation.operands)
    emitter.line(f"{emitter.share('u', operation.run)}({inputs})")
