"""Which nodes of a graph may write a variable, as far as their ops and functions say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from toolkit.graph.attrs import FuncRef
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node

#: ops that name a variable
HANDLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
#: ops that use a resource without changing it
_READERS = frozenset({"IsVariableInitialized", "ReadVariableOp", "VariableShape", "VarIsInitializedOp",
                      "ResourceGather", "ResourceGatherNd"})  # fmt: skip
#: ops on resources that are not variables
_OTHERS = ("Stack", "TensorArray", "LookupTable", "Queue", "Iterator")
#: how the names of ops begin that write variables
_WRITES = ("Assign", "ResourceApply", "ResourceSparse", "ResourceScatter", "Scatter", "Apply", "SparseApply")


def writers(graph: Graph) -> list[Node]:
    """The nodes that may write a variable, as far as their ops say."""
    seen: dict[str, bool] = {}
    return [node for node in graph if _writes(node, graph.library, seen)]


def _writes(node: Node, library: FunctionLibrary, seen: dict[str, bool]) -> bool:
    if any(dtype.is_ref for dtype in node.input_types):
        return not node.is_control_flow
    called = [*([node.op] if node.op in library else []), *_functions(node.attrs.values())]
    if any(_function_writes(name, library, seen) for name in called):
        return True
    if node.op in library or not node.op_def.is_stateful or node.op in _READERS or node.op.startswith(_OTHERS):
        return False
    return any(dtype.name == "resource" for dtype in node.input_types)


def _function_writes(name: str, library: FunctionLibrary, seen: dict[str, bool]) -> bool:
    """Whether a function may write a variable, its own or one that it is given."""
    if name not in library:
        return True
    if name not in seen:
        seen[name] = False  # unless something else in it does
        seen[name] = any(
            (op := node.op) not in _READERS and op not in HANDLES and not op.startswith(_OTHERS) and (
                op.startswith(_WRITES)
                or any(_function_writes(each.name, library, seen) for value in node.attr.values()
                       for each in (*([value.func] if value.HasField("func") else []), *value.list.func))
                or (op in library and _function_writes(op, library, seen))
            )
            for node in library.function(name).node_def
        )  # fmt: skip
    return seen[name]


def _functions(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        if isinstance(value, FuncRef):
            yield value.name
        elif isinstance(value, list | tuple):
            yield from _functions(cast("Iterable[Any]", value))
