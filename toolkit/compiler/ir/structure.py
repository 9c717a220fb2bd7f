"""Whether a block is well-formed: what every pass may rely on, and none may break.

Rules of shapes and types are those of each operation (`verifier`): a program may break them, and keeps its kernels
then. A block that is not well-formed is a mistake of the pass that left it so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value


def broken(block: Block) -> Iterator[str]:
    """What is wrong with a block and with those inside it, a sentence each.

    The operations are linked in both directions. Operands, predicates and results are made before they are taken.
    A value knows who makes it and who takes it how many times, as those know of it.
    """
    wrong = list(_links(block))
    if wrong:  # the operations cannot be walked
        yield from wrong
        return
    yield from _Check(block).run()
    for operation in block:
        yield from _regions(operation)


def _links(block: Block) -> Iterator[str]:
    """The list of operations holds together."""
    seen: set[Operation] = set()
    previous: Operation | None = None
    operation = block.first
    while operation is not None:
        if operation in seen:
            yield f"{_told(operation)} comes twice"
            return
        seen.add(operation)
        if operation.block is not block:
            where = "is in no block" if operation.block is None else "is in another block"
            yield f"{_told(operation)} {where}, and yet linked here"
        if operation.previous is not previous:
            yield f"{_told(operation)} has {_told(operation.previous)} in front of it, not {_told(previous)}"
        previous, operation = operation, operation.next
    if block.last is not previous:
        yield f"the last operation is {_told(block.last)}, not {_told(previous)}"
    if len(block) != len(seen):
        yield f"there are {len(seen)} operations, not {len(block)}"


class _Check:
    """One walk over a block."""

    def __init__(self, block: Block):
        self._block = block
        self._made: set[Value] = set()
        self._taken: dict[Value, Counter[Operation]] = {}
        self._results = set(block.results)

    def run(self) -> Iterator[str]:
        yield from self._arguments()
        for position, operation in enumerate(self._block):
            where = f"operation {position}, {_told(operation)},"
            yield from self._conditions(operation, where)
            yield from self._operands(operation, where)
            yield from self._outputs(operation, where)
        for index, value in enumerate(self._block.results):
            if not self._is_there(value):
                yield f"result {index} is {_shown(value)}, which nothing here makes"
            if not value.is_result:
                yield f"result {index} is {_shown(value)}, which does not know that it is a result"
        yield from self._users()

    def _is_there(self, value: Value) -> bool:
        return value in self._made or value.is_constant

    def _arguments(self) -> Iterator[str]:
        for index, value in enumerate(self._block.arguments):
            if value is None:
                continue
            if value in self._made:
                yield f"argument {index} is another argument too"
            if value.producer is not None:
                yield f"argument {index} is made by {_told(value.producer)}"
            self._made.add(value)

    def _conditions(self, operation: Operation, where: str) -> Iterator[str]:
        for predicate, _ in operation.predicates:
            if not self._is_there(predicate):
                yield f"{where} is on a branch that {_shown(predicate)} decides, which is not made before"
            if operation not in (predicate.decides or ()):
                yield f"{where} is on a branch that {_shown(predicate)} decides, which does not know that it does"

    def _operands(self, operation: Operation, where: str) -> Iterator[str]:
        for value in operation.inputs:
            self._taken.setdefault(value, Counter())[operation] += 1
            if not self._is_there(value):
                yield f"{where} takes {_shown(value)}, which is not made before"

    def _outputs(self, operation: Operation, where: str) -> Iterator[str]:
        for value in operation.outputs:
            if value in self._made:
                yield f"{where} makes {_shown(value)}, which is made before"
            if value.producer is not operation:
                yield f"{where} makes {_shown(value)}, which is told that {_told(value.producer)} makes it"
            if value.is_constant:
                yield f"{where} makes {_shown(value)}, which is a constant"
            if value.is_result and value not in self._results:
                yield f"{where} makes {_shown(value)}, which is told that it is a result"
            self._made.add(value)

    def _users(self) -> Iterator[str]:
        for value in [*self._made, *(value for value in self._taken if value not in self._made)]:
            taken = self._taken.get(value, Counter())
            for user, times in taken.items():
                known = value.users.get(user, 0)
                if known != times:
                    yield f"{_shown(value)} is taken {times} times by {_told(user)}, and knows of {known}"
            for decided in value.decides or ():
                if all(predicate is not value for predicate, _ in decided.predicates):
                    yield f"{_shown(value)} is told that it decides {_told(decided)}, which it does not"
            for user in value.users:
                # a constant may be shared with other blocks
                if user not in taken and not (value.is_constant and user.block is not self._block):
                    yield f"{_shown(value)} is told that {_told(user)} takes it, which does not"


def _regions(operation: Operation) -> Iterator[str]:
    for region in operation.regions():
        inside = f"inside {_told(operation)}: "
        if len(region.arguments) != len(operation.inputs):
            yield f"{inside}{len(region.arguments)} arguments for {len(operation.inputs)} operands"
        if len(region.results) != len(operation.outputs):
            yield f"{inside}{len(region.results)} results for {len(operation.outputs)} outputs"
        for what, here, there in (
            ("argument", operation.inputs, region.arguments),
            ("result", operation.outputs, region.results),
        ):
            for index, (outer, inner) in enumerate(zip(here, there, strict=False)):
                if inner is not None and inner.dtype != outer.dtype:
                    yield f"{inside}{what} {index} is {_shown(inner)}, outside {_shown(outer)}"
        for wrong in broken(region):
            yield f"{inside}{wrong}"


def _told(operation: Operation | None) -> str:
    if operation is None:
        return "nothing"
    return f"'{operation.kind}' of '{operation.name}'" if operation.steps else f"'{operation.kind}'"


def _shown(value: Value) -> str:
    shape = "of unknown shape" if value.shape is None else list(value.shape)
    what = f"{value.dtype}{shape}" if value.dtype is not None else "a handle"
    return f"{what} from {_told(value.producer)}" if value.producer is not None else what
