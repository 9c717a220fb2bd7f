"""Parts of tensors that somebody else keeps are written by the kernel that reads them anyway.

A cell that multiplies its gates as they are keeps them for its gradient: with them alone left, a Split would still copy
every part it makes, a launch for each. The kernel that has them in registers stores them.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolkit.compiler.backends.cuda.loops.late_pushes import KEEP
from toolkit.compiler.backends.cuda.operations import FusedKernelCall
from toolkit.compiler.backends.cuda.parts.operations import Piece, Place, PlacedKernelCall
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.kernels.tensors import row_major


def store_kept_parts(block: Block, kernel: PlacedKernelCall, parts: Mapping[int, Value]) -> None:
    """Have a kernel store the parts that it reads and others keep, if nobody then wants what makes them.

    Args:
        parts: by the number of the read: what is read where it is.
    """
    places: dict[Operation, int] | None = None
    for maker in dict.fromkeys(value.producer for value in parts.values()):
        if maker is None:
            continue
        wanted = [value for value in maker.outputs if value.is_result or value.is_predicate or _keepers(value)]
        reads = {value: at for at, value in parts.items()}
        if not wanted or any(value.is_predicate or value not in reads for value in wanted):
            continue
        if any(value.shape != kernel.shape for value in wanted):
            continue
        places = block.positions() if places is None else places
        if _is_read_before(maker, kernel, places):
            continue
        late = [user for value in wanted for user in _keepers(value) if places[user] < places[kernel]]
        if not all(_may_wait(user, kernel, places) for user in late):
            continue
        for user in sorted(dict.fromkeys(late), key=places.__getitem__, reverse=True):
            _put_behind(block, kernel, user)
        for value in wanted:
            _store(block, kernel, value, reads[value])
        places = None


def _put_behind(block: Block, kernel: Operation, user: Operation) -> None:
    following = kernel.next
    if following is None:
        block.reorder([*(each for each in block.operations if each is not user), user])
    else:
        block.move_before(following, user)


def _keepers(value: Value) -> list[Operation]:
    """Who takes a part, but for kernels that read it where it is."""
    return [user for user in value.users if not isinstance(user, FusedKernelCall | PlacedKernelCall)]


def _is_read_before(maker: Operation, kernel: Operation, places: Mapping[Operation, int]) -> bool:
    """Whether a kernel in front of another one takes a part as a tensor: it could not read it in place."""
    end = places[kernel]
    return any(
        isinstance(user, FusedKernelCall | PlacedKernelCall) and places.get(user, end) < end
        for value in maker.outputs
        for user in value.users
    )


def _may_wait(user: Operation, kernel: Operation, places: Mapping[Operation, int]) -> bool:
    """Whether what stands before a kernel may as well stand behind it: it keeps a tensor, and nobody in between takes
    what it gives, or what it keeps the tensor in."""
    if not isinstance(user, Call) or user.op not in KEEP or user.step.deref or user.conditions != kernel.conditions:
        return False
    here, end = places[user], places[kernel]
    taken = {user.inputs[0], *user.outputs}
    return not any(
        here < places.get(other, -1) <= end for value in taken for other in (*value.users, *(value.decides or ()))
    )


def _store(block: Block, kernel: PlacedKernelCall, value: Value, at: int) -> None:
    """One more result of a kernel: what it reads."""
    made = Value(value.dtype, value.shape)
    number = len(kernel.outputs)
    kernel.stores = (*kernel.stores, at)
    kernel.pieces = (*kernel.pieces, Piece(number, 0, row_major(kernel.shape)))
    kernel.set_outputs([*kernel.outputs, made])
    kernel.places = (*kernel.places, Place(-1, 0))
    if value.is_result:
        block.replace_value(value, made)
        return
    for user in _keepers(value):
        user.replace_operands({value: made})
