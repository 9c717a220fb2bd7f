"""Variables to constants: a graph that needs no checkpoint.

A constant can stand wherever the variable's handle, or reference, went, as long as it is only read there: through
identities, switches and loops, into functions, branches and loop bodies, which are specialised for it. Reads become
identities. Whatever else wants a variable, such as an assignment, is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph import shape as shapes
from toolkit.graph.attrs import AttrValue, FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.expansion import called
from toolkit.graph.function_defs import retyped_function, unique_function
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, MERGE_OPS, NEXT_ITERATION_OPS, Node
from toolkit.graph.summary import VARIABLES
from toolkit.passes.base import PassResult
from toolkit.passes.freezing.freeze_uses import PASSED_ON, READS, Held, become
from toolkit.passes.pruning.prune import prune_library


class VariableSource(Protocol):
    """Where the values of variables come from."""

    def holds(self, name: str) -> bool:
        """Whether the variable of a node of this name is to become a constant."""
        ...

    def value(self, node: Node) -> TensorProto:
        """The value of a variable.

        Raises:
            GraphmillError: there is none, or it is of another type or shape than the variable.
        """
        ...


@dataclass(frozen=True)
class Freeze:
    """Replace variables by constants of the same names.

    Attributes:
        source: which variables, and their values. Each is asked for once.
    """

    name: ClassVar[str] = "freeze"

    source: VariableSource

    def apply(self, graph: Graph) -> PassResult:
        """The graph without those variables.

        The report has `variables` (name to bytes of each that is a constant now), `kept` (names of the others) and
        `functions` (how many were specialised).

        Raises:
            GraphError: something in the graph, or in a function that it calls, changes a variable that is to be a
                constant, or wants more of it than its value.
            GraphmillError: a variable has no value.
        """
        out = graph.copy()
        freezer = Freezer(out.library, self.source)
        freezer.rewrite(out, "", {})
        prune_library(out)
        return PassResult(
            out,
            bool(freezer.sizes),
            {"variables": dict(freezer.sizes), "kept": sorted(freezer.kept), "functions": freezer.specialised},
        )


@dataclass(slots=True)
class _Specialised:
    """A function made for constants in the place of handles."""

    ref: FuncRef
    results: tuple[Held | None, ...]
    is_changed: bool


_Key = tuple[str, str, tuple[tuple[dtypes.DType, shapes.Shape] | None, ...]]


class Freezer:
    """Rewrites graphs and the functions they call.

    Attributes:
        sizes: name to bytes of each variable that is a constant now.
        kept: names of variables that stay.
        specialised: how many functions were made.
    """

    def __init__(self, library: FunctionLibrary, source: VariableSource):
        self.library = library
        self.source = source
        self.sizes: dict[str, int] = {}
        self.kept: set[str] = set()
        self.specialised = 0
        self._done: dict[_Key, _Specialised | None] = {}  # None while it is being made
        self._with_variables = _functions_with_variables(library)

    def rewrite(self, graph: Graph, where: str, args: Mapping[int, Held]) -> tuple[dict[int, Held], bool]:
        """Rewrite a graph in place.

        Args:
            where: the function whose body it is, for errors; "" for the graph itself.
            args: what its arguments hold, by index.

        Returns:
            what its results hold, by index, and whether anything changed.
        """
        work = _Body(self, graph, where, args)
        work.run()
        return work.results, work.is_changed

    def specialise(self, ref: FuncRef, held: tuple[Held | None, ...], wanted_by: Node) -> _Specialised:
        """The function that takes constants in the place of some handles.

        Raises:
            GraphError: it calls itself with them, or something in it wants more than their values.
        """
        if not any(held) and ref.name not in self._with_variables:
            return _Specialised(ref, (), False)
        kinds = tuple(h and (h.dtype, h.shape) for h in held)
        key = (ref.name, repr(sorted(ref.attrs.items(), key=lambda item: item[0])), kinds)
        if key in self._done:
            known = self._done[key]
            if known is None:
                if not any(held):
                    return _Specialised(ref, (), False)
                raise GraphError(
                    f"the function '{ref.name}' calls itself with the variable "
                    f"'{next(h for h in held if h).variable}', which cannot be frozen; keep it as it is",
                    node=wanted_by.name,
                )
            return known
        self._done[key] = None
        body = instantiate(self.library, ref)
        given = {index: h for index, h in enumerate(held) if h is not None}
        results, is_changed = self.rewrite(body.graph, ref.name, given)
        found = _Specialised(ref, tuple(results.get(i) for i in range(len(body.results))), is_changed)
        if is_changed:
            name = unique_function(self.library, f"{ref.name}_frozen")
            wide = {index: h.shape for index, h in given.items()}
            self.library.add(retyped_function(body, self.library.function(ref.name), name, wide))
            found.ref = FuncRef(name)
            self.specialised += 1
        self._done[key] = found
        return found


def _functions_with_variables(library: FunctionLibrary) -> frozenset[str]:
    """The functions that have variables of their own, or call one that has."""
    calls: dict[str, set[str]] = {}
    found: set[str] = set()
    callers: dict[str, list[str]] = {}
    for name in library:
        nodes = library.function(name).node_def
        if any(node.op in VARIABLES for node in nodes):
            found.add(name)
        calls[name] = {callee for node in nodes for callee in called(node.op, node.attr.values(), library)}
        for callee in calls[name]:
            callers.setdefault(callee, []).append(name)
    waiting = list(found)
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if caller not in found:
                found.add(caller)
                waiting.append(caller)
    return frozenset(found)


class _Body:
    """One graph: the model's, or the body of a function."""

    def __init__(self, freezer: Freezer, graph: Graph, where: str, args: Mapping[int, Held]):
        self.freezer = freezer
        self.graph = graph
        self.where = where
        self.args = args
        self.held: dict[tuple[int, int], Held] = {}
        self.constants: dict[str, Node] = {}  # the first node of each variable
        self.results: dict[int, Held] = {}
        self.is_changed = bool(args)
        self.has_loops = any(node.op in ENTER_OPS for node in graph.nodes)

    def run(self) -> None:
        for node in self.graph.topological_order():
            if node.op in VARIABLES:
                self._variable(node)
            elif node.op == "_Arg":
                held = self.args.get(node.attr("index"))
                if held is not None:
                    node.attrs["T"] = held.dtype
                    self._drop_hints(node)
                    self.held[node.id, 0] = held
            else:
                self._other(node)

    # -- sources ----------------------------------------------------------------------------------------------

    def _variable(self, node: Node) -> None:
        if not self.freezer.source.holds(node.name):
            self.freezer.kept.add(node.name)
            return
        dtype = node.attr("dtype").base
        key = (
            (node.text("container", b"") + "\0" + node.text("shared_name", b""))
            if node.attr("shared_name", b"")
            else ""
        )
        first = self.constants.get(key) if key else None
        value = None if first is not None else self.freezer.source.value(node)
        if first is not None:  # another node of the same variable
            become(node, "Identity", {"T": dtype}, [first.output()])
            shape = self.held[first.id, 0].shape
        else:
            assert value is not None
            shape = shapes.Shape([dim.size for dim in value.tensor_shape.dim])
            self.freezer.sizes[node.name] = value.ByteSize()
            attr = AttrValue()
            attr.tensor.CopyFrom(value)
            become(node, "Const", {"dtype": dtype, "value": attr}, [])
            if key:
                self.constants[key] = node
        self.held[node.id, 0] = Held(node.name, dtype, shape)
        self.is_changed = True

    # -- uses -------------------------------------------------------------------------------------------------

    def _other(self, node: Node) -> None:
        found = {
            i: self.held[src.id, index] for i, (src, index) in enumerate(node.inputs) if (src.id, index) in self.held
        }
        if found:
            types = node.input_types
            # what takes the value of a reference, not the reference, has what it wants
            found = {i: held for i, held in found.items() if types[i].is_ref or types[i].base is dtypes.resource}
        refs = self._functions(node)
        if refs:
            self._call(node, refs, found)
        elif not found:
            return
        elif node.op == "_Retval":
            held = found[0]
            node.attrs["T"] = held.dtype
            self.results[node.attr("index")] = held
        elif node.op in PASSED_ON:
            self._pass_on(node, found)
        elif node.op in READS and found.keys() == {0}:
            READS[node.op](node, found[0], self.has_loops)
        else:
            self._refuse(node, next(iter(found.values())))
        self.is_changed = self.is_changed or bool(found)

    def _pass_on(self, node: Node, found: dict[int, Held]) -> None:
        op, type_attr = PASSED_ON[node.op]
        first = next(iter(found.values()))
        self._drop_hints(node)
        if op == "IdentityN":
            types = list(node.attr("T"))
            for position, held in found.items():
                types[position] = held.dtype
                self.held[node.id, position] = held
            node.attrs["T"] = types
            return
        if node.op in MERGE_OPS:
            forward = {i for i, (src, _) in enumerate(node.inputs) if src.op not in NEXT_ITERATION_OPS}
            if found.keys() != forward:
                raise self._error(node, first, "meets one that stays a variable, or no variable, in")
        shape = first.shape if all(held.shape == first.shape for held in found.values()) else shapes.UNKNOWN
        if any(held.dtype != first.dtype for held in found.values()):
            raise self._error(node, first, "meets one of another type in")
        outputs = range(1) if node.op in MERGE_OPS else range(node.num_outputs)
        node.op = op
        node.attrs[type_attr] = first.dtype
        node.invalidate_types()
        for output in outputs:
            self.held[node.id, output] = Held(first.variable, first.dtype, shape)

    # -- calls ------------------------------------------------------------------------------------------------

    def _functions(self, node: Node) -> dict[str, list[FuncRef]]:
        """The functions that a node calls by attribute; under "" the one that it calls by its op."""
        if node.op in self.freezer.library:
            return {"": [FuncRef(node.op, {key: node.attrs[key] for key in node.attrs})]}
        op_def = self.graph.find_op_def(node.op)
        if op_def is None:
            return {}
        found: dict[str, list[FuncRef]] = {}
        for name, definition in op_def.attrs.items():
            if "func" in definition.type and name in node.attrs:
                value = node.attr(name)
                refs: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
                known = [ref for ref in refs if isinstance(ref, FuncRef) and ref.name in self.freezer.library]
                if known and len(known) == len(refs):
                    found[name] = known
        return found

    def _call(self, node: Node, functions: dict[str, list[FuncRef]], found: dict[int, Held]) -> None:
        arguments = self._arguments(node, found)
        results: tuple[Held | None, ...] | None = None
        is_loop = node.op in ("While", "StatelessWhile")
        for attr, refs in functions.items():
            made: list[FuncRef] = []
            for ref in refs:
                held = self._parameters(node, attr, ref, arguments)
                special = self.freezer.specialise(ref, held, node)
                made.append(special.ref)
                self.is_changed = self.is_changed or special.is_changed
                given = special.results if any(special.results) else ()
                if is_loop and attr == "cond":
                    continue
                results = given if results is None else self._joined(node, results, given)
            if made != refs:
                if attr:
                    node.attrs[attr] = made if isinstance(node.attr(attr), list) else made[0]
                else:
                    node.op = made[0].name
                    for key in list(node.attrs):
                        if not key.startswith("_"):
                            del node.attrs[key]
                node.invalidate_types()
        if found:
            self._retype(node, found, node.op_def.inputs)
            self._drop_hints(node)
        self._take_results(node, results or (), found if is_loop else None)

    def _joined(
        self, node: Node, one: tuple[Held | None, ...], other: tuple[Held | None, ...]
    ) -> tuple[Held | None, ...]:
        """What comes out of either of two branches."""
        if [h and h.dtype for h in one] != [h and h.dtype for h in other]:
            held = next((h for h in (*one, *other) if h), None)
            raise self._error(node, held, "is returned by one branch and not by the other of")
        return tuple(
            a if a is None or b is None or a.shape == b.shape else replace(a, shape=shapes.UNKNOWN)
            for a, b in zip(one, other, strict=True)
        )

    def _arguments(self, node: Node, found: dict[int, Held]) -> dict[str, list[Held | None]]:
        """What the inputs hold, by the name of the list of inputs that they are in."""
        if node.op in self.freezer.library:
            return {"": [found.get(i) for i in range(len(node.inputs))]}
        ranges = node.op_def.arg_ranges(node.op_def.inputs, node.attrs)
        listed = {arg.name for arg in node.op_def.inputs if arg.type_list_attr}
        for name, positions in ranges.items():
            if name not in listed or node.op == "SymbolicGradient":
                for position in positions:
                    if position in found:
                        self._refuse(node, found[position])
        return {name: [found.get(i) for i in positions] for name, positions in ranges.items() if name in listed}

    def _parameters(
        self, node: Node, attr: str, ref: FuncRef, arguments: dict[str, list[Held | None]]
    ) -> tuple[Held | None, ...]:
        """What the parameters of a function hold.

        What a node hands to its functions are their last arguments: all of them in calls, branches and loops; behind
        the elements in datasets. An op with several functions has one list of inputs for all, or one for
        each, `FUNCTION_other_arguments`.
        """
        signature = self.freezer.library.op_def(ref.name)
        assert signature is not None
        own = [name for name in arguments if name.startswith(attr.removesuffix("_f").removesuffix("_func"))]
        names = (
            own
            if attr and len(arguments) > 1 and own
            else [n for n in arguments if any(arguments[n])] or list(arguments)
        )
        count = len(signature.expand(signature.inputs, ref.attrs))
        held = [h for name in names for h in arguments[name]]
        if len(held) > count:
            return (None,) * count
        return (*[None] * (count - len(held)), *held)

    def _retype(self, node: Node, found: dict[int, Held], args: Any) -> None:
        if node.op in self.freezer.library:
            return
        for name, positions in node.op_def.arg_ranges(args, node.attrs).items():
            type_attr = next(arg.type_list_attr for arg in args if arg.name == name)
            if type_attr and any(position in found for position in positions):
                types = list(node.attr(type_attr))
                for offset, position in enumerate(positions):
                    if position in found:
                        types[offset] = found[position].dtype
                node.attrs[type_attr] = types

    def _take_results(self, node: Node, results: tuple[Held | None, ...], loop: dict[int, Held] | None) -> None:
        given = {i: held for i, held in enumerate(results) if held is not None}
        if loop is not None:
            if {i: h.dtype for i, h in given.items()} != {i: h.dtype for i, h in loop.items()}:
                first = next(iter([*given.values(), *loop.values()]))
                raise self._error(node, first, "is not what comes out of the loop")
            given = {
                i: Held(h.variable, h.dtype, h.shape if h.shape == given[i].shape else shapes.UNKNOWN)
                for i, h in loop.items()
            }
        if not given:
            return
        if loop is None:
            self._retype(node, given, node.op_def.outputs)
        if node.attrs.get("output_shapes"):
            listed = list(node.attr("output_shapes"))
            for position, held in given.items():
                listed[position] = held.shape
            node.attrs["output_shapes"] = listed
        for position, held in given.items():
            self.held[node.id, position] = held

    # -- odds and ends ----------------------------------------------------------------------------------------

    def _drop_hints(self, node: Node) -> None:
        """Remove what a node remembers of the handles it had."""
        for key in ("_output_shapes", "_handle_dtypes", "_handle_shapes", "_read_only_resource_inputs"):
            if key in node.attrs:
                del node.attrs[key]

    def _refuse(self, node: Node, held: Held) -> None:
        raise self._error(node, held, "is written, or used other than by reading, by")

    def _error(self, node: Node, held: Held | None, what: str) -> GraphError:
        where = f" in the function '{self.where}'" if self.where else ""
        name = held.variable if held is not None else "?"
        return GraphError(
            f"the variable '{name}' {what} {node.op} '{node.name}'{where}; freeze only what reads it (--fetch, "
            f"--signature), or keep it a variable (--keep-variables '{name}')",
        )
