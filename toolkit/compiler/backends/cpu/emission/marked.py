"""The generated function once more, with a note of the time behind each thing that it does.

It is the same function over the same arena, with a line more for each entry of `entries`: what is traced is what runs.
Steps that only prepare another (values brought into the arena, variables looked up) are in the entry of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

from toolkit.compiler.backends.base import SOURCE_NAME, Entry
from toolkit.compiler.backends.cpu.emission.arena import ArenaLayout, Storage
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Dereference, Loop
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program import Role


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the source.

    Attributes:
        line: how many lines are before it.
        indent: of the branch that it is on.
        operation: what has been done there.
    """

    line: int
    indent: str
    operation: Operation


class MarkedSource:
    """Attributes:
    entries: what is told of each mark.
    marks: the marks, one for each entry.
    code: defines `run`, which notes in `marks_` when each of them was passed.
    body: the code of `run` itself.
    owners: the operation behind each of its lines.
    """

    def __init__(
        self, source: str, owners: Sequence[Operation | None], marks: Sequence[Mark], block: Block, layout: ArenaLayout
    ):
        groups = list(_groups(marks))
        usage = _usage(block, layout)
        place = {operation: position for position, operation in enumerate(block.operations)}
        self.marks = [group[-1] for group in groups]
        self.entries = [
            _entry([mark.operation for mark in group], usage[place[group[-1].operation]], layout) for group in groups
        ]
        lines, self.owners = list[str](), list[Operation | None]()
        behind = {mark.line: number for number, mark in enumerate(self.marks)}
        for number, (line, owner) in enumerate(zip(source.splitlines(), owners, strict=True), 1):
            lines.append(line)
            self.owners.append(owner)
            if (found := behind.get(number)) is not None:
                lines.append(f"{self.marks[found].indent}marks_[{found}] = now_()")
                self.owners.append(self.marks[found].operation)
        self.code: CodeType = compile("\n".join(lines) + "\n", SOURCE_NAME, "exec")
        self.body = next(constant for constant in self.code.co_consts if isinstance(constant, CodeType))


def _groups(marks: Sequence[Mark]) -> Iterator[list[Mark]]:
    """Marks one after another that are of one node, or only prepare the next one."""
    group: list[Mark] = []
    for mark in marks:
        if mark.operation.step.role is Role.RETVAL:
            continue
        last = group[-1] if group else None
        if last is not None and (last.indent != mark.indent or not _prepares(last.operation, mark.operation)):
            yield group
            group = []
        group.append(mark)
    if group:
        yield group


def _prepares(operation: Operation, following: Operation) -> bool:
    return operation.name == following.name or isinstance(operation, Dereference)


def _entry(group: list[Operation], in_use: int, layout: ArenaLayout) -> Entry:
    operation = group[-1]
    own = [step for step in operation.steps if step.role not in (Role.ARG, Role.RETVAL)]
    steps, op = own, "+".join(dict.fromkeys(step.node.op for step in own))
    if isinstance(operation, Loop):
        steps, op = [*own, *(step for inner in operation.body.walk() for step in inner.steps)], "Loop"
    names = dict.fromkeys(step.node.name for step in steps)
    inputs = dict.fromkeys(
        reference
        for step in own
        for reference in step.node.input_refs()
        if reference.lstrip("^").partition(":")[0] not in names
    )
    made = {value for each in group for value in each.outputs}
    others = [name for name in names if name != operation.name]
    outputs = [
        (str(value.dtype), value.shape or (), value.nbytes if value.shape is not None else 0)
        for value in operation.outputs
        if value.dtype is not None
    ]
    size = sum(value.nbytes for value in made if value in layout.storage)
    return Entry(operation.name, op or operation.kind, tuple(inputs), tuple(outputs), tuple(others), size, in_use)


def _usage(block: Block, layout: ArenaLayout) -> list[int]:
    """Bytes of the arena that hold something while each operation runs."""
    pieces: list[Storage] = list(dict.fromkeys(layout.storage.values()))
    changes = [0] * (len(block.operations) + 2)
    for piece in pieces:
        changes[max(piece.first, 0)] += piece.size
        changes[min(piece.last, len(block.operations)) + 1] -= piece.size
    found, held = list[int](), 0
    for change in changes:
        held += change
        found.append(held)
    return found


def values_of(operation: Operation) -> list[Value]:
    """The floating tensors that it makes."""
    return [value for value in operation.outputs if value.dtype is not None and value.dtype.kind == "f"]
