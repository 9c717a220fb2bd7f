"""Updates of variables: moved behind what is computed, and those of one rule put into few launches.

In the order of the graph an update stands behind its gradient, in the middle of the gradients of other layers: each one
ends what can be fused, and most take less time than their launch. Behind all of them they are in nobody's way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.compiler.backends.cuda.operations import UpdatesCall
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference
from toolkit.compiler.ir.traits import Trait
from toolkit.kernels.gpu.optimizers import GATHERED
from toolkit.kernels.gpu.updates import MOST_TOGETHER
from toolkit.kernels.registry import Kind

_ASSIGNMENTS = ("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


def sink_updates(block: Block) -> None:
    """Move updates and assignments of variables, in their order, to before the next operation that could see them."""
    operations: list[Operation] = []
    waiting: list[Operation] = []
    made: set[object] = set()

    def flush() -> None:
        operations.extend(waiting)
        waiting.clear()
        made.clear()

    for operation in block.operations:
        for region in operation.regions():
            sink_updates(region)
        if _is_update(operation):
            if any(value in made for value in operation.inputs):
                flush()
            waiting.append(operation)
            made.update(operation.outputs)
            continue
        takes = any(value in made for value in operation.inputs)
        decided = any(value in made for value, _ in operation.predicates)
        if takes or decided or not _is_blind(operation):
            flush()
        operations.append(operation)
    flush()
    block.reorder(operations)


def _is_update(operation: Operation) -> bool:
    """Whether it changes one variable, and does nothing else."""
    return isinstance(operation, Call) and (
        operation.op in _ASSIGNMENTS or operation.op.startswith(("Apply", "ResourceApply"))
    )


def _is_blind(operation: Operation) -> bool:
    """Whether it neither looks at variables nor does anything but compute its outputs."""
    if isinstance(operation, Dereference) or operation.has(Trait.EFFECT) or operation.has(Trait.READS_VARIABLE):
        return False
    if not isinstance(operation, Call):
        return True
    node = operation.step.node
    return operation.step.kind is Kind.PURE and not any(dtype.is_ref or dtype.kind == "r" for dtype in node.input_types)


def gather_updates(block: Block, refused: Callable[[Operation], bool]) -> None:
    """Put neighbouring updates by one rule, with the same numbers beside their gradients, into few launches.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            gather_updates(region, refused)
    run: list[Operation] = []
    for operation in [*block.operations, None]:
        if operation is not None and _is_gathered(operation) and not refused(operation):
            run.append(operation)
            continue
        _gather(block, run)
        run = []


def _is_gathered(operation: Operation) -> bool:
    """Whether the rule of an update is one that is written for many variables at once."""
    if not isinstance(operation, Call) or operation.op not in GATHERED or operation.step.deref:
        return False
    gradient = operation.inputs[GATHERED[operation.op].gradient]
    return gradient.dtype is not None and not any(value.is_needed for value in operation.outputs)


def _gather(block: Block, run: Sequence[Operation]) -> None:
    """Put those of a run together that can be: each variable is in it once, or they stay in their order."""
    groups: dict[object, list[Operation]] = {}
    seen: set[int] = set()
    for operation in run:
        rule = GATHERED[operation.op]
        cells = [id(value.constant) for value in operation.inputs[: rule.slots]]
        if any(value.constant is None for value in operation.inputs[: rule.slots]) or seen.intersection(cells):
            return
        seen.update(cells)
        others = [value for at, value in enumerate(operation.inputs) if at >= rule.slots and at != rule.gradient]
        attributes = tuple(operation.step.node.attr(name) for name in rule.attributes)
        dtype = operation.inputs[rule.gradient].dtype
        groups.setdefault((operation.op, operation.conditions, dtype, attributes, *others), []).append(operation)
    for same in groups.values():
        for first in range(0, len(same), MOST_TOGETHER):
            _join(block, same[first : first + MOST_TOGETHER])


def _join(block: Block, operations: Sequence[Operation]) -> None:
    """Updates as one operation, in the place of the last of them."""
    if len(operations) < 2:
        return
    *before, last = operations
    rule = GATHERED[last.op]
    targets = tuple(value for each in operations for value in each.inputs[: rule.slots])
    gradients = tuple(each.inputs[rule.gradient] for each in operations)
    numbers = tuple(value for at, value in enumerate(last.inputs) if at >= rule.slots and at != rule.gradient)
    steps = [step for each in operations for step in each.steps]
    last.become(
        UpdatesCall, rule=last.op, targets=targets, gradients=gradients, numbers=numbers, steps=steps, outputs=[]
    )  # fmt: skip
    block.remove(before)
