"""The generated function once more, with a line behind each thing that it does: for traces, and for checks of numbers.

It is the same function over the same arena: what is looked at is what runs. In traces, steps that only prepare another
(values brought into the arena, variables looked up) are in the entry of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

from toolkit.compiler.backends.base import SOURCE_NAME, Entry
from toolkit.compiler.backends.cpu.emission.arena import ArenaLayout, Storage
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference, Loop
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Role


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


class WatchedSource:
    """Source with lines more.

    Args:
        lines: where, and what is written there.

    Attributes:
        code: defines `run`.
        body: the code of `run` itself.
        owners: the operation behind each of its lines.
    """

    def __init__(self, source: str, owners: Sequence[Operation | None], lines: Sequence[tuple[Mark, str]]):
        written, self.owners = list[str](), list[Operation | None]()
        behind = {mark.line: (mark, text) for mark, text in lines}
        for number, (line, owner) in enumerate(zip(source.splitlines(), owners, strict=True), 1):
            written.append(line)
            self.owners.append(owner)
            if (found := behind.get(number)) is not None:
                mark, text = found
                written.append(mark.indent + text)
                self.owners.append(mark.operation)
        self.code: CodeType = compile("\n".join(written) + "\n", SOURCE_NAME, "exec")
        self.body = next(constant for constant in self.code.co_consts if isinstance(constant, CodeType))


class CheckedSource(WatchedSource):
    """The function with `look_(number, values)` behind each operation that makes floating tensors.

    Args:
        read: the name of a value in the function; "" for one in the arena that has none yet.

    Attributes:
        operations: they, by number.
        arrays: names of globals that are arrays in the arena.
    """

    def __init__(
        self, source: str, owners: Sequence[Operation | None], marks: Sequence[Mark], read: Callable[[Value], str]
    ):
        self.operations: list[Operation] = []
        self.arrays: dict[str, Value] = {}
        lines: list[tuple[Mark, str]] = []
        for mark in marks:
            names: list[str] = []
            for value in mark.operation.outputs:
                # what nobody takes may never have been filled
                if value.dtype is None or value.dtype.kind != "f" or not value.is_needed or value.is_constant:
                    continue
                name = read(value)
                if not name:
                    name = f"z{len(self.arrays)}_"
                    self.arrays[name] = value
                names.append(name)
            if names:
                lines.append((mark, f"look_({len(self.operations)}, {', '.join(names)})"))
                self.operations.append(mark.operation)
        super().__init__(source, owners, lines)


class MarkedSource(WatchedSource):
    """The function with a note in `marks_` of the time behind each thing that it does.

    Attributes:
        entries: what is told of each.
    """

    def __init__(
        self, source: str, owners: Sequence[Operation | None], marks: Sequence[Mark], block: Block, layout: ArenaLayout
    ):
        groups = list(_groups(marks))
        usage = _usage(block, layout)
        place = {operation: position for position, operation in enumerate(block.operations)}
        self.entries = [
            _entry([mark.operation for mark in group], usage[place[group[-1].operation]], layout) for group in groups
        ]
        lines = [(group[-1], f"marks_[{number}] = now_()") for number, group in enumerate(groups)]
        super().__init__(source, owners, lines)


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
    filled = sum(value.nbytes for value in made if value in layout.storage)
    # what kernels make lies outside of the arena; what the others put out there is somebody else's
    allocated = 0
    if isinstance(operation, Call):
        outside = (value for value in operation.outputs if value not in layout.storage)
        allocated = sum(value.nbytes for value in outside if value.dtype is not None and value.shape is not None)
    size, held = filled + allocated, in_use + allocated
    return Entry(operation.name, op or operation.kind, tuple(inputs), tuple(outputs), tuple(others), size, held)


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
