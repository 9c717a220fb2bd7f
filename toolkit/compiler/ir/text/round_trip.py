"""Whether the text form of a program says all of it: printed, read and printed again it is the same."""

from __future__ import annotations

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.equality import differences
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.text.arrays import SideTable
from toolkit.compiler.ir.text.parser import parse_block
from toolkit.compiler.ir.text.printer import print_block
from toolkit.compiler.ir.text.tokens import TextError
from toolkit.errors import InternalError
from toolkit.graph.functions import FunctionLibrary


def require_round_trip(block: Block) -> None:
    """Make sure that a block is the same when it was printed and parsed.

    Raises:
        InternalError: it is not.
    """
    beside = SideTable()
    text = print_block(block, beside)
    try:
        again = parse_block(text, beside, library=_library(block), source="the printed program")
    except TextError as error:
        raise InternalError(f"a program was printed that cannot be read; this is a bug: {error}\n{text}") from error
    wrong = next(differences(block, again), None)
    if wrong is not None:
        raise InternalError(f"a printed program is read as another; this is a bug: {wrong}\n{text}")
    if print_block(again, beside) != text:
        raise InternalError(f"a program that was read is printed differently; this is a bug:\n{text}")


def _library(block: Block) -> FunctionLibrary | None:
    """The functions that a block's calls may call."""
    calls = (operation for operation in block.walk() if isinstance(operation, Call))
    return next((call.step.node.graph.library for call in calls if len(call.step.node.graph.library)), None)
