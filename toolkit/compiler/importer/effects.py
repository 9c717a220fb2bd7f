"""What programs do besides computing: change variables, draw random numbers, call functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from toolkit.compiler.context import RunningStep
from toolkit.compiler.importer.control import UnstructuredError
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operations.calls import Loop, ReadVariable, Select, Test
from toolkit.compiler.program import Program
from toolkit.compiler.signatures import FunctionTypes, check_types
from toolkit.compiler.steps import Role, Step
from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.node import Node
from toolkit.kernels.registry import Kind
from toolkit.policy.outside import only_reads

#: ops that may use a resource or reference without changing it
READERS = frozenset({"IsVariableInitialized", "ReadVariableOp", "VariableShape", "VarIsInitializedOp",
                     "ResourceGather", "ResourceGatherNd"})  # fmt: skip


def callee(running: RunningStep, step: Step, ref: FuncRef, types: FunctionTypes, drawing: dict[int, bool]) -> Program:
    """The program of a function that a node calls.

    Args:
        types: what the node gives it and expects back.
        drawing: whether programs draw random numbers, by id; what is found is noted.
    """
    try:
        program = running.device_functions.program(step.node.graph.library, ref)
        check_types(program, ref.name, types)
    except GraphmillError:
        raise UnstructuredError(ref.name) from None  # the kernel reports it
    if id(program) not in drawing:
        drawing[id(program)] = draws(program, running)
    if drawing[id(program)]:
        raise UnstructuredError(f"{ref.name} draws random numbers, a stream for each place that calls it")
    return program


def draws(program: Program, running: RunningStep, seen: set[int] | None = None) -> bool:
    """Whether a program, or a function that it calls, draws from a stream that goes on from step to step."""
    seen = set() if seen is None else seen
    if id(program) in seen:
        return False
    seen.add(id(program))
    for step in program.steps:
        if step.kind is not Kind.STATEFUL:
            continue
        if step.node.attr("seed2", None) is not None:
            return True
        for ref in named_functions(step.node):
            try:
                inner = running.device_functions.program(step.node.graph.library, ref)
            except GraphmillError:
                continue
            if draws(inner, running, seen):
                return True
    return False


def initialises(program: Program) -> bool:
    """Whether a program does nothing but give variables values that depend on nothing: as a rule it runs once."""
    assigns = False
    given: set[int] = set()  # arguments: what is fed to every step need not be taken by this one
    for index, step in enumerate(program.steps):
        if step.role is Role.CONSTANT:
            continue
        if step.role is Role.ARG:
            given.add(index)
            continue
        if given and any(source in given for source, _ in step.inputs):
            return False
        if step.role is not Role.KERNEL or step.deref:
            return False
        op = step.node.op
        assigns = assigns or op in ASSIGNS
        if step.kind is not Kind.PURE and op not in ASSIGNS and op not in HANDLES and not _gives_values(step):
            return False
    return assigns


#: ops whose second input becomes the value of the variable that is the first
ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
#: ops that name a variable
HANDLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})


def _gives_values(step: Step) -> bool:
    """Whether a node draws from a stream of its own, or reads a file."""
    if only_reads(step.node.op):
        return True
    return step.node.attr("seed2", None) is not None and not any(dtype.is_ref for dtype in step.node.input_types)


def writes_variables(block: Block) -> bool:
    """Whether an operation of a block, or of a loop in it, may change a variable."""
    for operation in block.operations:
        if isinstance(operation, Loop):
            if writes_variables(operation.body):
                return True
            continue
        if isinstance(operation, ReadVariable | Select | Test):
            continue
        types = operation.step.node.input_types
        if any(dtype.is_ref for dtype in types):
            return True
        if operation.step.kind is Kind.PURE or operation.step.node.op in READERS:
            continue
        if any(dtype.name == "resource" for dtype in types) and not operation.step.node.op.startswith(_PER_STEP):
            return True
        if any(True for _ in named_functions(operation.step.node)):
            return True
    return False


#: ops on resources that are not variables, and live as long as a step
_PER_STEP = ("Stack", "TensorArray")


def may_write(program: Program, running: RunningStep) -> bool:
    """Whether a program may change a variable, or one beside it, or the functions that they call.

    Of each program that is found once: a step that is cut into segments asks for every one of them beside every other.
    """
    for each in _with_beside(program):
        if each.writes is None:
            each.writes = _writes(each, running, set())
        if each.writes:
            return True
    return False


def _with_beside(program: Program) -> Iterator[Program]:
    seen: set[int] = set()
    wanted = [program]
    while wanted:
        each = wanted.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            wanted += each.beside


def _writes(program: Program, running: RunningStep, seen: set[int]) -> bool:
    """Whether a program's own nodes may change a variable.

    Args:
        seen: functions that are looked into already, by id.
    """
    for step in program.steps:
        if step.role is not Role.KERNEL or step.node.op in READERS:
            continue
        if any(dtype.is_ref for dtype in step.node.input_types):
            return True
        if step.kind is Kind.PURE:
            continue
        refs = list(named_functions(step.node))
        if refs:
            try:
                programs = [running.device_functions.program(step.node.graph.library, ref) for ref in refs]
            except GraphmillError:
                return True
            for called in (each for function in programs for each in _with_beside(function)):
                if id(called) not in seen:
                    seen.add(id(called))
                    if _writes(called, running, seen):
                        return True
        elif any(
            dtype.name == "resource" and src.op not in _NOT_VARIABLES
            for (src, _), dtype in zip(step.node.inputs, step.node.input_types, strict=True)
        ):
            return True
    return False


#: makers of resources that are not variables
_NOT_VARIABLES = frozenset({"HashTableV2", "MutableHashTableV2", "FIFOQueueV2", "IteratorV2", "AnonymousIterator",
                            "StackV2", "TensorArrayV3", "MutableDenseHashTableV2"})  # fmt: skip


def named_functions(node: Node) -> Iterable[FuncRef]:
    """The functions that a node's attributes name."""
    kind = node.kind
    return () if kind is not None and not kind.names_functions else _functions(node.attrs.values())


def _functions(values: Iterable[Any]) -> Iterable[FuncRef]:
    for value in values:
        if isinstance(value, FuncRef):
            yield value
        elif isinstance(value, list | tuple):
            yield from _functions(cast("Iterable[Any]", value))
