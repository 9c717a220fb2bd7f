"""Nothing is emitted that would touch bytes which its operands do not have: such an operation keeps its own kernel.

What oneDNN touches it says itself, for each argument of a primitive; what compiled code touches its writer says
(`instance.Span`). The tensors' own bytes follow from the shapes and types that the lifting proved.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.compiler.backends.cpu.emission.instance import Nested, Operand, PreparedPrimitive, Region, Span, Workspace
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.onednn.memory import Desc, Memory
from toolkit.kernels.cpu.onednn.primitive import Primitive


def check_primitive(
    operation: Operation, primitive: Primitive, operands: Sequence[tuple[int, Operand, Desc | None]]
) -> None:
    """
    Raises:
        NotSupportedError: a primitive wants more bytes of an argument than a tensor or its descriptor has.
    """
    for arg, operand, desc in operands:
        layout = operand.desc if desc is None and not isinstance(operand, Value | Workspace) else desc
        assert layout is not None
        needed = primitive.needed(int(arg))
        if layout.size < needed:
            raise NotSupportedError(operation, f"{needed} bytes of an operand of {layout.size} would be touched")
        if isinstance(operand, Memory):
            continue  # it was checked against its array
        if isinstance(operand, Value):
            _check_value(operation, operand, layout)
        elif not isinstance(operand, Workspace) and operand.desc.size < layout.size:
            raise NotSupportedError(operation, "a scratch tensor would be read beyond its end")


def _check_value(operation: Operation, value: Value, layout: Desc) -> None:
    if layout.size > value.nbytes:
        raise NotSupportedError(operation, f"{layout.size} bytes of a tensor of {value.nbytes} would be touched")
    if layout.dtype is not None and layout.dtype != value.dtype:
        raise NotSupportedError(operation, f"a tensor of {value.dtype} would be read as {layout.dtype}")


def check_regions(operation: Operation, regions: Sequence[Region]) -> None:
    """
    Raises:
        NotSupportedError: compiled code would touch bytes that a tensor does not have.
    """
    for region in regions:
        match region:
            case Span():
                if not region.fits():
                    raise NotSupportedError(
                        operation,
                        f"bytes {region.offset + region.start} to {region.offset + region.stop} of a tensor of "
                        f"{region.room()} would be touched",
                    )
            case Nested(operands):
                check_regions(operation, operands)
            case PreparedPrimitive(primitive, operands, _):
                check_primitive(operation, primitive, operands)
            case int():
                pass
