"""Calling functions of the graph's library (FunctionLibraryRuntime)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.functions import FunctionBody, FunctionLibrary, instantiate
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node

if TYPE_CHECKING:
    from toolkit.runtime.step import Step

Call = Callable[[Sequence[Any], Any], list[Any]]


class FunctionRuntime:
    """Compiles each function once per set of attributes and runs it inside the calling step."""

    def __init__(self, device_type: str = "CPU"):
        self._device_type = device_type
        self._compiled: dict[tuple[Any, ...], tuple[Call, object]] = {}
        self._lock = threading.RLock()

    def prepare(self, library: FunctionLibrary, ref: FuncRef) -> Call:
        """A compiled function: `call(args, step) -> results`.

        Raises:
            GraphError: there is no such function, or its body is malformed.
        """
        function = library.function(ref.name)
        attrs = tuple((k, encode(v).SerializeToString(deterministic=True)) for k, v in sorted(ref.attrs.items()))
        key = (id(function), attrs)
        found = self._compiled.get(key)
        if found is None:
            with self._lock:
                found = self._compiled.get(key)
                if found is None:
                    # The FunctionDef is kept with the entry, so that its id stays its own.
                    found = self._compiled[key] = (self._compile(library, ref), function)
        return found[0]

    def run(self, library: FunctionLibrary, ref: FuncRef, args: Sequence[Any], step: Step) -> list[Any]:
        """Run a function to the end and return its results."""
        return self.prepare(library, ref)(args, step)

    def _compile(self, library: FunctionLibrary, ref: FuncRef) -> Call:
        from toolkit.runtime.executor import make_executor
        from toolkit.runtime.program import Program

        body = instantiate(library, ref)
        num_args = len(body.args)
        executor = make_executor(Program(_pruned(body), self._device_type))

        def call(args: Sequence[Any], step: Step) -> list[Any]:
            if len(args) != num_args:
                raise InvalidArgumentError(f"function '{ref.name}' takes {num_args} argument(s), not {len(args)}")
            inner = step.sibling()
            return executor.run(args, inner)

        return call


def _pruned(body: FunctionBody) -> Graph:
    """What a call must execute: results, control results, and every node with an effect of its own."""
    roots: list[Node] = [*body.results, *body.control_results, *body.args]
    for node in body.graph:
        op_def = body.graph.find_op_def(node.op)
        if node.is_control_flow or (
            op_def is not None and op_def.is_stateful and not node.op.startswith("Placeholder")
        ):
            roots.append(node)
    seen = {node.id for node in roots}
    stack = list(roots)
    while stack:
        node = stack.pop()
        for src in [src for src, _ in node.inputs] + node.control_inputs:
            if src.id not in seen:
                seen.add(src.id)
                stack.append(src)
    return body.graph.subgraph([node for node in body.graph if node.id in seen])
