"""What a plan does, for people: its steps, what was fused to them, where tensors lie, and what stayed as it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolkit.compiler.backends.base import Executable
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop, Select, Test
from toolkit.compiler.ir.operations.memory import Permute
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Role


def explain(emitted: Executable, notes: Sequence[str], guards: int) -> list[str]:
    """The lines of a report on a plan.

    Args:
        notes: what was refused while it was compiled.
        guards: how many variables are taken as constants.
    """
    operations = emitted.block.operations
    primitives = _primitives(emitted)
    arguments = ", ".join(_tensor(value) for value in emitted.block.arguments if value is not None)
    lines = [f"plan for ({arguments}): {len(operations)} steps, {primitives} oneDNN primitives"]
    lines.append(f"  arena {_bytes(emitted.layout.size)}, packed constants {_bytes(sum(emitted.packed().values()))}")
    if guards:
        lines.append(f"  {guards} variable(s) taken as constants; the plan is made anew when one of them changes")
    turned, copies = _turned(emitted)
    if turned:
        lines.append(f"  {turned} channels-first operations run channels last, with {copies} transposed copies left")
    lines += _steps(emitted, "  ")
    if notes:
        lines.append("left as they are:")
        lines += [f"  {note}" for note in notes]
    return lines


def _turned(emitted: Executable) -> tuple[int, int]:
    """How many operations were made channels last, and how many transposed copies there are; in loops too."""
    copies = sum(isinstance(operation, Permute) for operation in emitted.block)
    inner = [_turned(each) for each in emitted.inner]
    return emitted.block.turned + sum(turned for turned, _ in inner), copies + sum(count for _, count in inner)


def _primitives(emitted: Executable) -> int:
    """How many primitives there are, those of loops included."""
    return sum(map(len, emitted.primitives().values())) + sum(map(_primitives, emitted.inner))


def _steps(emitted: Executable, indent: str) -> Iterator[str]:
    calls = emitted.primitives()
    operations = emitted.block.operations
    width = len(str(len(operations)))
    for number, operation in enumerate(operations, 1):
        implementations = ", ".join(dict.fromkeys(calls.get(operation, ())))
        nodes = " + ".join(dict.fromkeys(step.node.op for step in operation.steps if step.role is not Role.ARG))
        where = _place(emitted, operation)
        what = "transposed copy" if isinstance(operation, Permute) else implementations or _reason(operation)
        branch = " on a branch" if operation.predicates else ""
        results = " ".join(_tensor(value) for value in operation.outputs[:3])
        name = operation.name
        yield f"{indent}{number:>{width}} {operation.kind:<14} {results:<28} {nodes}  [{what}{where}{branch}]  {name}"
        if isinstance(operation, Loop):
            inner = operation.compiled
            iteration = "compiled, one iteration" if inner.is_whole else "one iteration"
            yield f"{indent}  {iteration}, arena {_bytes(inner.layout.size)}:"
            yield from _steps(inner, indent + "    ")


def _reason(operation: Operation) -> str:
    """Why an operation has no primitive."""
    if isinstance(operation, Select | Test) or operation.has(Trait.VIEW):
        return "no work"
    if isinstance(operation, Loop):
        return "machine code" if operation.compiled.is_whole else "the interpreter runs every iteration"
    if operation.has(Trait.MACHINE_CODE):
        return "machine code"
    if operation.has(Trait.MEMORY):
        return "memory"
    told = operation.computed_by()
    if told is not None:
        return told
    values: list[Value] = [*operation.inputs, *operation.outputs]
    if any(value.shape is None and value.dtype is not None for value in values):
        return "kernel; a shape is not known before it runs"
    return "kernel"


def _place(emitted: Executable, operation: Operation) -> str:
    if not operation.outputs:
        return ""
    layout = emitted.layout
    return f", at {layout.offset(operation.output):#x}" if operation.output in layout.storage else ""


def _tensor(value: Value) -> str:
    if value.dtype is None:
        return "handle"
    shape = "?" if value.shape is None else ",".join(map(str, value.shape))
    return f"{value.dtype}[{shape}]"


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"
