"""Sections of a graph that only one step at a time runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, control_dependencies, init_scope, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import tuple_
from toolkit.client.structures import nest
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import UsageError
from toolkit.graph import dtypes

_SECTIONS = "critical_sections"
_EXECUTIONS = "critical_section_executions"


@dataclass(frozen=True)
class _Execution:
    """One block inside of a section: the lock, the mutex, the resources that it uses."""

    op: Operation
    handle: Tensor
    resources: tuple[Tensor, ...]
    exclusive_resource_access: bool


class CriticalSection:
    """A mutex around functions: `section.execute(fn)`.

    Args:
        shared_name: sections of that name exclude each other in the sessions that share variables.

    Raises:
        UsageError: `critical_section_def` is given.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ):
        if critical_section_def is not None:
            raise UsageError("a CriticalSection cannot be made from critical_section_def; give it a shared_name")
        with name_scope(name, "CriticalSection") as scope, init_scope():
            self._handle: Tensor = ops.mutex_v2(
                shared_name=scope if shared_name is None else shared_name, container="", name=scope
            )
        get_default_graph().add_to_collection(_SECTIONS, self)

    @property
    def name(self) -> str:
        return self._handle.op.name

    def execute(self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None) -> Any:
        """What `fn` returns; its operations run while no other block of the section does.

        Args:
            exclusive_resource_access: no other section uses the variables that this block does.

        Raises:
            UsageError: the block enters its own section, or uses variables that another section has for itself.
        """
        with name_scope(name, "critical_section_execute"):
            graph = get_default_graph()
            lock: Tensor = ops.mutex_lock(self._handle)
            before = set(graph.get_operations())
            with control_dependencies([lock]):
                returned = fn()
            made = [op for op in graph.get_operations() if op not in before]
            _wait_for_inputs(lock.op, made)
            used = dict.fromkeys(t for op in made for t in op.inputs if t.dtype.base is dtypes.resource)
            if self._handle in used:
                raise UsageError(f"the section '{self.name}' is entered inside of itself, which would never end")
            self._check_resources(used, exclusive_resource_access)
            flat = [_identity(leaf) for leaf in nest.flatten(returned)]
            with control_dependencies(flat):
                with colocate_with(self._handle):
                    released = ops.consume_mutex_lock(lock)
                together: list[Any] = tuple_(nest.flatten(returned)) if flat else []
            with control_dependencies([released]):
                outputs = [_identity(leaf) for leaf in together]
            entry = _Execution(lock.op, self._handle, tuple(used), exclusive_resource_access)
            graph.add_to_collection(_EXECUTIONS, entry)
            return nest.pack_sequence_as(returned, outputs)

    def _check_resources(self, used: dict[Tensor, None], exclusive: bool) -> None:
        for other in get_default_graph().get_collection(_EXECUTIONS):
            if other.handle is self._handle or not (exclusive or other.exclusive_resource_access):
                continue
            shared = [tensor.op.name for tensor in used if tensor in other.resources]
            if shared:
                raise UsageError(
                    f"'{shared[0]}' is used in the section '{self.name}' and in '{other.handle.op.name}'; use one "
                    "section, or execute with exclusive_resource_access=False"
                )


def _identity(value: Any) -> Any:
    if isinstance(value, BaseVariable):
        value = value.value()
    return array_ops.identity(value) if isinstance(value, Tensor) else value


def _wait_for_inputs(lock: Operation, made: list[Operation]) -> None:
    """The lock is taken when all that the block needs is there: nothing then waits while it is held."""
    known = {*made, *lock.control_inputs, *(tensor.op for tensor in lock.inputs), lock}
    needed = dict.fromkeys(tensor.op for op in made for tensor in op.inputs)
    needed |= dict.fromkeys(waited for op in made for waited in op.control_inputs)
    outside = [op for op in needed if op not in known]
    if outside:
        lock.add_control_inputs([group(outside)])
