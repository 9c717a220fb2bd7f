"""What operations do besides computing their outputs, as far as passes must know."""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference, Select, Test
from toolkit.compiler.ir.traits import Trait
from toolkit.graph.partitioned import SEND_OPS
from toolkit.kernels.registry import Kind

#: they change what a handle stands for, never an array that was put in or taken out
_LISTS = frozenset({"StackPushV2", "StackPopV2", "StackPush", "StackPop", "TensorArrayWriteV3", "TensorArrayReadV3",
                    "TensorArrayGatherV3", "TensorArrayScatterV3", "TensorArraySizeV3",
                    "TensorArrayGradV3"})  # fmt: skip
#: pure kernels that are there for the errors they raise; placeholders are when they were not fed
CHECKS = frozenset({"CheckNumerics", "CheckNumericsV2", "EnsureShape", "Assert", "Placeholder", "PlaceholderV2"})


#: they change a generator of their own, never an array
OWN_DRAWS = frozenset({"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "Multinomial"})


#: they look at variables, and leave them as they are
_LOOKS = frozenset({"ReadVariableOp", "_ReadVariablesOp", "VarHandleOp", "VarIsInitializedOp", "IsVariableInitialized",
                    "VariableShape"})  # fmt: skip


_CHANGE_NO_VARIABLE = _LISTS | OWN_DRAWS | _LOOKS | SEND_OPS


def may_change_variables(operation: Operation) -> bool:
    """Whether arrays that were read before may hold something else after an operation."""
    if isinstance(operation, Test) or operation.has(Trait.READS_VARIABLE) or operation.op in _CHANGE_NO_VARIABLE:
        return False
    if not isinstance(operation, Call) or operation.step.kind is not Kind.PURE or operation.op in CHECKS:
        return has_effect(operation)
    return _takes_reference(operation)  # that somebody asked for it to run changes nothing


def changes_variables(operations: Iterable[Operation]) -> bool:
    """Whether arrays that were read before may hold something else behind one of some operations."""
    return any(map(may_change_variables, operations))


def has_effect(operation: Operation) -> bool:
    """Whether an operation must run although nobody needs its outputs."""
    if operation.has(Trait.EFFECT):
        return True
    if isinstance(operation, Select):
        return False
    if isinstance(operation, Dereference):  # a read of a variable that was asked to run says that there is no value
        return any(each.is_target for each in operation.steps)
    step = operation.step
    if step.kind is not Kind.PURE or not operation.outputs or operation.op in CHECKS:
        return True
    return any(each.is_target for each in operation.steps) or _takes_reference(operation)


def _takes_reference(operation: Operation) -> bool:
    """Whether it takes a variable by reference, which it may change."""
    return any(dtype.is_ref for dtype in operation.step.node.input_types)
