"""Which TensorArrays a recorded step has the device keep: those that are used where the device decides."""

from __future__ import annotations

from toolkit.compiler.backends.cuda.conditionals.array_kernels import WRITE
from toolkit.compiler.backends.cuda.conditionals.arrays import CLOSE, GRADIENT, MAKE, SCATTER, SIZE
from toolkit.compiler.backends.cuda.conditionals.device_numbers import DeviceNumbers
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operations.calls import Call, Loop
from toolkit.compiler.ir.value import Value

_FAMILY = "TensorArray"


def source_of(call: Call) -> str:
    """Which gradient an array is asked for."""
    return call.step.node.attr("source").decode(errors="surrogateescape")


class ArrayUses:
    """What is found of a block and of the loops in it.

    Args:
        block: a whole program; what is made in the bodies of loops that the device decides it refuses elsewhere.

    Attributes:
        shapes: of the arrays that the device keeps, by the handles that make them: the shape of their elements, None
            where nothing that is written tells it. Arrays of gradients are made of these, and kept where they are.
        sources: of the gradients that are asked for, by the same.
    """

    def __init__(self, block: Block, numbers: DeviceNumbers):
        self.shapes: dict[Value, tuple[int, ...] | None] = {}
        self.sources: dict[Value, set[str]] = {}
        self._numbers = numbers
        self._made: dict[Value, Value] = {}  # handles, with those that they come from
        self._wanted: set[Value] = set()
        self._walk(block, is_inside=False)
        self.shapes = {made: shape for made, shape in self.shapes.items() if made in self._wanted}

    def takes(self, call: Call) -> bool:
        """Whether a call makes or takes an array that the device keeps, and looks at it."""
        if not call.op.startswith(_FAMILY) or call.op == CLOSE:
            return False
        if call.op == SIZE and not self._numbers.is_grown(call.inputs[0]):
            return False  # the host knows it
        handle = call.outputs[0] if call.op == MAKE else call.inputs[0]
        return self._made.get(handle) in self.shapes

    def _walk(self, block: Block, *, is_inside: bool) -> None:
        for operation in block:
            inside = is_inside or operation in self._numbers.decided
            if isinstance(operation, Loop):
                for outer, inner in zip(operation.inputs, operation.body.arguments, strict=True):
                    if inner is not None and outer in self._made:
                        self._made[inner] = self._made[outer]
                self._walk(operation.body, is_inside=inside or operation in self._numbers.repeated)
            elif isinstance(operation, Call) and operation.op.startswith(_FAMILY):
                self._call(operation, is_inside=inside)

    def _call(self, call: Call, *, is_inside: bool) -> None:
        if call.op == MAKE:
            handle = call.outputs[0]
            self._made[handle] = handle
            self.shapes[handle] = None
            self.sources[handle] = set()
            return
        made = self._made.get(call.inputs[0])
        if made is None:
            return
        if is_inside or self._numbers.given(call):
            self._wanted.add(made)
        if call.op == GRADIENT:
            self._made[call.outputs[0]] = made
            self.sources[made].add(source_of(call))
        if call.op in (WRITE, SCATTER):
            shape = call.inputs[2].shape
            if shape is not None:
                self.shapes[made] = shape if call.op == WRITE else shape[1:]
