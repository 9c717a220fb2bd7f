"""Operations with effects run in the order in which a function made them, and run at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.graph import dtypes

#: draw numbers from a state that nobody else sees, so any order will do
_RANDOM = frozenset(
    {
        "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "ParameterizedTruncatedNormal", "TruncatedNormal",
        "RandomShuffle", "Multinomial", "RandomGamma", "RandomGammaGrad", "RandomPoisson", "RandomPoissonV2",
    }
)  # fmt: skip
#: wait for each other by themselves, so no order is put on them
_WAITING = frozenset(
    {
        "CollectiveGather", "CollectiveReduce", "CollectiveBcastSend", "CollectiveBcastRecv", "NcclAllReduce",
        "Send", "Recv", "_Send", "_Recv",
    }
)  # fmt: skip
#: have a state only in name: what they make is used by others
_MAKERS = frozenset({"VarHandleOp", "Placeholder", "_Arg", "_Retval"})
#: the attribute of a call that says which of its arguments are resources that it only reads
READ_ONLY = "_read_only_resource_inputs"
#: only look at a resource
_READERS = frozenset(
    {
        "ReadVariableOp", "VariableShape", "ResourceGather", "ResourceGatherNd", "LookupTableFind", "LookupTableFindV2",
        "LookupTableSize", "LookupTableSizeV2", "LookupTableExport", "LookupTableExportV2", "VarIsInitializedOp",
    }
)  # fmt: skip


@dataclass
class _Resource:
    """Attributes:
    written: the last operation that may have changed it.
    read: those that have looked at it since.
    """

    written: Operation | None = None
    read: list[Operation] = field(default_factory=list[Operation])


def put_in_order(operations: list[Operation]) -> list[Operation]:
    """Chain operations with effects by control inputs; those that have to run whatever is asked for, by name."""
    resources: dict[Tensor, _Resource] = {}
    anything: Operation | None = None
    must: dict[Operation, None] = {}
    for op in operations:
        if op.context is not None or op.type in _RANDOM | _MAKERS | _WAITING:
            continue
        handles = [tensor for tensor in op.inputs if tensor.dtype.base is dtypes.resource]
        if not op.op_def.is_stateful and not handles:
            continue
        waits: list[Operation] = []
        if handles:
            for handle in handles:
                waits += _use(resources.setdefault(handle, _Resource()), op, handle)
        elif not op.op_def.inputs and op.op_def.is_stateful and _makes_handle(op):
            continue
        else:
            if anything is not None:
                waits.append(anything)
            anything = op
        must[op] = None
        fresh = [waited for waited in waits if waited not in op.control_inputs]
        if fresh:
            op.add_control_inputs(fresh)
    return sorted(must, key=lambda op: op.name)


def _use(resource: _Resource, op: Operation, handle: Tensor) -> list[Operation]:
    """What an operation on a resource waits for."""
    if _only_reads(op, handle):
        resource.read.append(op)
        return [resource.written] if resource.written is not None else []
    waits = resource.read or ([resource.written] if resource.written is not None else [])
    resource.written, resource.read = op, []
    return waits


def _only_reads(op: Operation, handle: Tensor) -> bool:
    if op.type in _READERS:
        return True
    if not op.has_attr(READ_ONLY):
        return False
    positions: list[int] = op.get_attr(READ_ONLY)
    return any(tensor is handle for i, tensor in enumerate(op.inputs) if i in positions)


def only_read(given: Sequence[Tensor]) -> list[int]:
    """Positions of a function's arguments that are resources which nothing in it changes, for calls."""
    found: list[int] = []
    for i, tensor in enumerate(given):
        if tensor.dtype.base is dtypes.resource and all(_only_reads(op, tensor) for op in tensor.consumers()):
            found.append(i)
    return found


def _makes_handle(op: Operation) -> bool:
    return any(tensor.dtype.base is dtypes.resource for tensor in op.outputs)
