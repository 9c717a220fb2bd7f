"""The function library and its callers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeGuard, cast

from toolkit.errors import GraphmillError, did_you_mean
from toolkit.graph import dtypes, opdefs
from toolkit.graph.dtypes import DType
from toolkit.graph.expansion import callees_first
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.node import Node
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Body, Subject, callers, references

#: ops that call one function on their inputs: attribute of the function, of the types that go in and come out
_CALLS = {
    "PartitionedCall": ("f", "Tin", "Tout"),
    "StatefulPartitionedCall": ("f", "Tin", "Tout"),
    "RemoteCall": ("f", "Tin", "Tout"),
    "SymbolicGradient": ("", "", ""),
}
_LOOPS = frozenset({"While", "StatelessWhile"})
_BRANCHES = frozenset({"If", "StatelessIf"})


@family(
    "functions",
    Rule("missing", Severity.ERROR, "a call of a function that is not there", "add the function or correct the name"),
    Rule("duplicate", Severity.ERROR, "two different functions have one name", "rename one of them and its calls"),
    Rule("body", Severity.ERROR, "a function that cannot be built", "correct its body"),
    Rule("return", Severity.ERROR, "a result that the body does not compute", "point 'ret' at an output of the body"),
    Rule(
        "signature", Severity.ERROR, "caller and function do not agree on types", "make the call's types the function's"
    ),
    Rule("result-type", Severity.ERROR, "a result of another type than the signature says", "correct the signature"),
    Rule("recursion", Severity.WARNING, "a function that calls itself", "use a loop; recursion cannot be inlined"),
    Rule("gradient", Severity.ERROR, "a gradient function that is not there", "add it, or remove the entry"),
    Rule("unused", Severity.NOTE, "a function that nothing calls", "prune it away"),
)
def functions(subject: Subject) -> Iterator[Problem]:
    library = subject.graph.library
    for body in subject.bodies:
        for node in body.candidates(partial(_calls, body, library)):
            yield from _calls(body, library, node)
        if body.function:
            yield from _results(body)
    yield from _graph(subject, library)
    for name, gradient in library.gradients.items():
        for wanted in (name, gradient):
            if wanted not in library and opdefs.find(wanted) is None:
                message = f"the library lists '{gradient}' as gradient of '{name}', but '{wanted}' does not exist"
                yield Problem("functions/gradient", message)


def _calls(body: Body, library: FunctionLibrary, node: Node) -> Iterator[Problem]:
    refs = list(references(node))
    if not refs:
        return
    for ref in refs:
        if ref.name and ref.name not in library and opdefs.find(ref.name) is None:
            message = f"it calls the function '{ref.name}', which does not exist{did_you_mean(ref.name, library)}"
            yield Problem("functions/missing", message, node.name, body.function)
    for name, way, wanted, given in _expectations(node, library):
        if not _fits(wanted, given):
            message = f"it {way} {_listed(wanted)}, but function '{name}' has {_listed(given)}"
            yield Problem("functions/signature", message, node.name, body.function)


def _expectations(node: Node, library: FunctionLibrary) -> Iterator[tuple[str, str, list[DType], list[DType]]]:
    """(function, what the caller does, the types it does it with, the function's) for each side of each call."""

    def sides(
        key: str, ins: list[DType] | None, outs: list[DType] | None
    ) -> Iterator[tuple[str, str, list[DType], list[DType]]]:
        ref = node.attr_or(key, None)
        op_def = library.op_def(getattr(ref, "name", ""))
        if op_def is None or op_def.attrs:
            return
        if _are_types(ins):
            yield ref.name, "passes", ins, op_def.expand(op_def.inputs, {})
        if _are_types(outs):
            yield ref.name, "takes back", outs, op_def.expand(op_def.outputs, {})

    try:
        if node.op in _CALLS and _CALLS[node.op][0]:
            key, ins, outs = _CALLS[node.op]
            yield from sides(key, node.attr(ins), node.attr(outs))
        elif node.op in _LOOPS:
            types: list[DType] = node.attr("T")
            yield from sides("body", types, types)
            yield from sides("cond", types, None)
            cond = library.op_def(node.attr("cond").name)
            if cond is not None and len(cond.outputs) != 1:
                outputs = cond.expand(cond.outputs, {})
                yield node.attr("cond").name, "tests", outputs[:1] or [dtypes.bool_], outputs
        elif node.op in _BRANCHES:
            for key in ("then_branch", "else_branch"):
                yield from sides(key, node.attr("Tin"), node.attr("Tout"))
    except GraphmillError:
        return  # an attribute is missing or of another kind: the family opdef says so


def _are_types(value: Any) -> TypeGuard[list[DType]]:
    """Whether an attribute is what it should be; where it is not, the family opdef says so."""
    return isinstance(value, list) and all(isinstance(item, DType) for item in cast("list[Any]", value))


def _fits(wanted: Sequence[DType], given: Sequence[DType]) -> bool:
    return len(wanted) == len(given) and all(a.base is b.base for a, b in zip(wanted, given, strict=True))


def _listed(types: Sequence[DType]) -> str:
    return f"({', '.join(map(str, types))})"


def _results(body: Body) -> Iterator[Problem]:
    for node in body.graph.nodes:
        if node.op != "_Retval":
            continue
        source, index = node.inputs[0]
        try:
            given, said = source.output_types[index], node.attr("T")
        except (GraphmillError, IndexError):
            continue
        if given.base is not said.base:
            message = f"result {node.attr('index')} is {given}, the signature says {said}"
            yield Problem("functions/result-type", message, source.name, body.function)


def _graph(subject: Subject, library: FunctionLibrary) -> Iterator[Problem]:
    """Recursion and functions that nothing reaches."""
    callees: dict[str, list[str]] = {name: [] for name in library}
    roots: list[str] = []
    for body in subject.bodies:
        for node in callers(body.graph):
            for ref in references(node):
                if ref.name in callees:
                    (callees[body.function] if body.function else roots).append(ref.name)
    roots += [name for entry in library.gradients.items() for name in entry if name in callees]
    objects = subject.proto.object_graph_def
    roots += [name for name in objects.concrete_functions if name in callees]
    for entry in objects.nodes:
        roots += [
            n
            for n in (*entry.function.concrete_functions, entry.bare_concrete_function.concrete_function_name)
            if n in callees
        ]
    reached = set(roots)
    todo = list(reached)
    for name in todo:
        new = [callee for callee in callees[name] if callee not in reached]
        reached.update(new)
        todo += new
    recursive = callees_first(callees)[1]
    for name, called in callees.items():
        if name in recursive:
            message = f"function '{name}' calls itself" + ("" if name in called else f", through '{called[0]}'")
            yield Problem("functions/recursion", message, function=name)
        if name not in reached:
            yield Problem("functions/unused", f"nothing calls function '{name}'", function=name)
