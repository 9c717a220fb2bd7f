"""Updates of variables: moved behind what is computed, and those of one rule put into few launches.

In the order of the graph an update stands behind its gradient, in the middle of the gradients of other layers: each one
ends what can be fused, and most take less time than their launch. Behind all of them they are in nobody's way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.compiler.backends.cuda.operations import UpdatesCall
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import CHECKS, may_change_variables
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.kernels.facts import stays_on_host
from toolkit.kernels.gpu.state.optimizers import GATHERED
from toolkit.kernels.gpu.state.updates import MOST_TOGETHER
from toolkit.kernels.registry import Kind
from toolkit.kernels.resources.handles import ResourceHandle

ASSIGNMENTS = ("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
#: what decomposes, solves, or goes by indices: on GPUs, too, the host looks at the numbers, and may refuse them
_REFUSING = frozenset({
    "BatchMatrixTriangularSolve", "BatchSelfAdjointEigV2", "BatchSvd", "Cholesky", "Lu", "MatrixInverse", "MatrixSolve",
    "MatrixTriangularSolve", "RaggedFillEmptyRowsGrad", "SelfAdjointEigV2", "SparseFillEmptyRowsGrad",
    "SparseTensorToCSRSparseMatrix", "Svd",
})  # fmt: skip


def sink_updates(block: Block) -> None:
    """Move updates and assignments of variables, in their order, to before the next operation that could see them, or
    could fail: in a step that fails behind an update, the update is done."""
    operations: list[Operation] = []
    waiting: list[Operation] = []
    made: set[object] = set()
    changed: set[object] = set()  # the variables that wait to be; None among them for one that is not known

    def flush() -> None:
        operations.extend(waiting)
        waiting.clear()
        made.clear()
        changed.clear()

    for operation in block.operations:
        for region in operation.regions():
            sink_updates(region)
        if is_update(operation):
            if any(value in made for value in operation.inputs):
                flush()
            waiting.append(operation)
            made.update(operation.outputs)
            changed.update(variables_of(operation))
            continue
        takes = any(value in made for value in operation.inputs)
        decided = any(value in made for value, _ in operation.predicates)
        read = read_variable(operation)
        is_of_changed = read in changed or None in changed
        if read is not None and is_of_changed and not (takes or decided):  # it waits for them, until somebody takes it
            waiting.append(operation)
            made.update(operation.outputs)
            continue
        if takes or decided or (read is None and waiting and (not is_blind(operation) or may_fail(operation))):
            flush()
        operations.append(operation)
    flush()
    block.reorder(operations)


def is_update(operation: Operation) -> bool:
    """Whether it changes one variable, and does nothing else."""
    return isinstance(operation, Call) and (
        operation.op in ASSIGNMENTS or operation.op.startswith(("Apply", "ResourceApply"))
    )


def variables_of(operation: Operation) -> list[object]:
    """The variables that an update changes; None for one that is not known."""
    return [
        variable_name(value)
        for value in operation.inputs
        if value.dtype is None or isinstance(value.constant, ResourceHandle)
    ]


def variable_name(value: Value) -> object:
    """What a variable is called, by its handle or reference; None where it is not known."""
    constant = value.constant
    if isinstance(constant, ResourceHandle):
        return constant.container, constant.name
    return id(constant) if constant is not None else None


def read_variable(operation: Operation) -> object:
    """The variable that an operation reads, doing nothing else; None where it is none, or not known."""
    if isinstance(operation, Dereference):
        return variable_name(operation.reference)
    return variable_name(operation.inputs[0]) if operation.op == "ReadVariableOp" else None


def is_blind(operation: Operation) -> bool:
    """Whether it neither looks at variables nor does anything but compute its outputs."""
    if isinstance(operation, Dereference) or operation.has(Trait.EFFECT) or operation.has(Trait.READS_VARIABLE):
        return False
    if not isinstance(operation, Call):
        return True
    node = operation.step.node
    return operation.step.kind is Kind.PURE and not any(dtype.is_ref or dtype.kind == "r" for dtype in node.input_types)


def may_fail(operation: Operation) -> bool:
    """Whether it may refuse what it is given: then what stands before it in the graph has been done."""
    if not isinstance(operation, Call):
        return False
    if operation.op in CHECKS | _REFUSING or any(value.shape is None for value in operation.outputs):
        return True
    node = operation.step.node
    return any(
        not value.is_constant and value.dtype is not None and stays_on_host(node, "GPU", index, output=False)
        for index, value in enumerate(operation.inputs)
    )


def gather_updates(block: Block, refused: Callable[[Operation], bool]) -> None:
    """Put neighbouring updates by one rule, with the same numbers beside their gradients, into few launches.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            gather_updates(region, refused)
    times = _times_of_reads(block)
    run: list[Operation] = []
    for operation in [*block.operations, None]:
        if operation is not None and _is_gathered(operation) and not refused(operation):
            run.append(operation)
            continue
        _gather(block, run, times)
        run = []


def _is_gathered(operation: Operation) -> bool:
    """Whether the rule of an update is one that is written for many variables at once."""
    if not isinstance(operation, Call) or operation.op not in GATHERED or operation.step.deref:
        return False
    gradient = operation.inputs[GATHERED[operation.op].gradient]
    return gradient.dtype is not None and not any(value.is_needed for value in operation.outputs)


def _gather(block: Block, run: Sequence[Operation], times: dict[Operation, int]) -> None:
    """Put those of a run together that can be: each variable is in it once, or they stay in their order."""
    groups: dict[object, list[Operation]] = {}
    seen: set[object] = set()
    for operation in run:
        rule = GATHERED[operation.op]
        cells = [variable_name(value) for value in operation.inputs[: rule.slots]]
        if None in cells or seen.intersection(cells):
            return
        seen.update(cells)
        numbers = [value for at, value in enumerate(operation.inputs) if at >= rule.slots and at != rule.gradient]
        others = [_known_as(value, times) for value in numbers]
        attributes = tuple(operation.step.node.attr(name) for name in rule.attributes)
        dtype = operation.inputs[rule.gradient].dtype
        groups.setdefault((operation.op, operation.conditions, dtype, attributes, *others), []).append(operation)
    for same in groups.values():
        for first in range(0, len(same), MOST_TOGETHER):
            _join(block, same[first : first + MOST_TOGETHER])


def _times_of_reads(block: Block) -> dict[Operation, int]:
    """How often a variable may have been changed before each read of it."""
    found: dict[Operation, int] = {}
    counts: dict[object, int] = {}
    unknown = 0
    for operation in block:
        if operation.op == "ReadVariableOp":
            found[operation] = counts.get(variable_name(operation.inputs[0]), 0) + unknown
        elif is_update(operation):
            for name in variables_of(operation):
                counts[name] = counts.get(name, 0) + 1
                unknown += name is None
        else:
            unknown += may_change_variables(operation)
    return found


def _known_as(value: Value, times: dict[Operation, int]) -> object:
    """What two values have in common that are the same numbers: reads of a variable between two changes."""
    producer = value.producer
    if producer is None or producer.op != "ReadVariableOp":
        return value
    name = variable_name(producer.inputs[0])
    return value if name is None else (name, times.get(producer))


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
