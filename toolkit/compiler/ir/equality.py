"""Whether two blocks are the same program: operation by operation, field by field, number by number."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import Conditions
from toolkit.compiler.ir.list_facts import ListFacts, SharedListFacts
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step


def differences(first: Block, second: Block) -> Iterator[str]:
    """Where two blocks differ, a sentence each; nothing where they are the same program.

    Notes for people are not compared, and neither are the places of nodes in the programs that they come from.
    """
    return _Comparison().blocks(first, second, "the program")


class _Comparison:
    """Which value of one program is which of the other."""

    def __init__(self) -> None:
        self._there: dict[Value, Value] = {}
        self._back: dict[Value, Value] = {}

    def blocks(self, a: Block, b: Block, where: str) -> Iterator[str]:
        if a.device != b.device:
            yield f"{where}: one is on '{a.device}', the other on '{b.device}'"
        if a.keeps_nan != b.keeps_nan:
            yield f"{where}: one keeps NaN"
        yield from self._things(a.arguments, b.arguments, f"the arguments of {where}")
        if len(a) != len(b):
            yield f"{where}: {len(a)} operations and {len(b)}"
            return
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from self._operations(one, other, f"operation {index} of {where}")
        yield from self._things(a.results, b.results, f"the results of {where}")

    def _operations(self, a: Operation, b: Operation, where: str) -> Iterator[str]:
        if type(a) is not type(b) or a.op != b.op:
            yield f"{where}: {a.kind} and {b.kind}"
            return
        for name in a.fields:
            yield from self._things(getattr(a, name), getattr(b, name), f"{name} of {where}, {a.kind}")

    def _values(self, a: Value, b: Value, where: str) -> Iterator[str]:
        if self._there.get(a, b) is not b or self._back.get(b, a) is not a:
            yield f"{where}: another value"
            return
        if a in self._there:
            return
        self._there[a], self._back[b] = b, a
        if a.dtype != b.dtype or a.shape != b.shape:
            yield f"{where}: {a.dtype}{a.shape} and {b.dtype}{b.shape}"
        if (a.is_result, a.is_predicate) != (b.is_result, b.is_predicate):
            yield f"{where}: one is a result or decides a branch"
        yield from self._things(a.constant, b.constant, where)
        yield from self._things(_facts(a), _facts(b), f"the facts of {where}")

    def _things(self, a: Any, b: Any, where: str) -> Iterator[str]:
        if a is b:
            return
        if type(a) is not type(b):
            yield f"{where}: {type(a).__name__} and {type(b).__name__}"
        elif isinstance(a, Value):
            yield from self._values(a, b, where)
        elif isinstance(a, Block):
            yield from self.blocks(a, b, where)
        elif isinstance(a, np.ndarray | np.generic):
            if a.dtype != b.dtype or a.shape != b.shape or not _same_numbers(a, b):
                yield f"{where}: other numbers"
        elif isinstance(a, Conditions):
            yield from self._things(a.terms, b.terms, where)
        elif isinstance(a, Step):
            if _step(a) != _step(b):
                yield f"{where}: {_step(a)} and {_step(b)}"
        elif isinstance(a, tuple | list):
            if len(a) != len(b):
                yield f"{where}: {len(a)} and {len(b)}"
                return
            for one, other in zip(a, b, strict=True):
                yield from self._things(one, other, where)
        elif isinstance(a, Mapping):
            yield from self._things(list(a), list(b), where)
            for key in a:
                yield from self._things(a[key], b.get(key), where)
        elif dataclasses.is_dataclass(a):
            for field in dataclasses.fields(a):
                yield from self._things(getattr(a, field.name), getattr(b, field.name), f"{field.name} of {where}")
        elif a != b and repr(a) != repr(b):  # NaN is not equal to itself
            yield f"{where}: {a!r} and {b!r}"


def _facts(value: Value) -> tuple[Any, ...] | None:
    """What passes ask of a list."""
    facts: ListFacts | None = value.facts.facts if isinstance(value.facts, SharedListFacts) else value.facts
    return None if facts is None else (facts.element, facts.is_empty, facts.length)


def _same_numbers(a: Any, b: Any) -> bool:
    if a.dtype.hasobject:
        return a.tolist() == b.tolist()
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def _step(step: Step) -> tuple[Any, ...]:
    """What a step is, wherever it stands."""
    node = step.node
    definition = node.graph.find_op_def(node.op)
    declared = definition.attrs if definition is not None else {}
    names = {name for name in node.attrs if not name.startswith("_")} | set(declared)
    defaults = {name: declared[name].default if name in declared else None for name in names}
    attributes = {name: repr(node.attr_or(name, defaults[name])) for name in sorted(names)}
    return node.op, node.name, attributes, step.role, step.kind, step.deref, step.is_target, len(step.inputs)
