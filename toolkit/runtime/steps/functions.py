"""Calling functions of the graph's library (FunctionLibraryRuntime)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.compiler.program import Program
from toolkit.compiler.settings import Settings
from toolkit.compiler.signatures import FunctionTypes, check_types
from toolkit.errors import InvalidArgumentError
from toolkit.forks import free_in_children
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.bodies import FunctionBody, instantiate
from toolkit.graph.device import DeviceSpec
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.kernels import device_types
from toolkit.passes.partitioning.memory_types import MemoryTypes

if TYPE_CHECKING:
    from toolkit.policy.access import Access
    from toolkit.runtime.executors.choice import Executor
    from toolkit.runtime.steps.step import DeviceStep

Call = Callable[[Sequence[Any], Any], list[Any]]


class FunctionRuntime:
    """Compiles each function once per set of attributes and runs it inside the calling step.

    Args:
        make_executor: see `runtime.executors.choice`, whose executors run functions themselves.
        device: where functions run; in host memory by default. On a device with a memory of its own, results stay
            there.
        force_tokens: run every node in the dataflow executor.
        access: what the functions' kernels may touch outside; nothing by default.
    """

    def __init__(
        self,
        make_executor: Callable[..., Executor],
        device: DeviceSpec | None = None,
        *,
        force_tokens: bool = False,
        settings: Settings | None = None,
        access: Access | None = None,
    ):
        self._make_executor = make_executor
        self._device = device or DeviceSpec()
        self._force_tokens = force_tokens
        self._settings = settings
        self._access = access
        self._compiled: dict[tuple[Any, ...], tuple[_Function, object]] = {}
        self._programs: dict[tuple[Any, ...], tuple[Program, object]] = {}
        self._calls: dict[tuple[int, str], tuple[Call, FuncRef]] = {}
        self._lock = threading.RLock()
        free_in_children(self, "_lock")

    def prepare(
        self,
        library: FunctionLibrary,
        ref: FuncRef,
        site: str = "",
        types: FunctionTypes | None = None,
        *,
        to_host: bool = False,
    ) -> Call:
        """A compiled function: `call(args, step) -> results`.

        Args:
            types: what the caller gives it and what it expects back.
            ref: the object is remembered, not only what is in it: a node asks with its own one again and again.
            site: the node that calls, and which of its functions. Random numbers of the function go on from one
                call to the next of the same site, and are another stream at another one.
            to_host: the caller looks into the results, wherever the function runs.

        Raises:
            GraphError: there is no such function, or its body is malformed.
            InvalidArgumentError: it takes or returns other types.
        """
        found = self._calls.get((id(ref), site))
        if found is None:
            if types is not None:
                check_types(self.program(library, ref), ref.name, types)
            call = self._function(library, ref, to_host).called_from(site)
            found = self._calls[(id(ref), site)] = (call, ref)  # the ref is kept, so that its id stays its own
        return found[0]

    def _function(self, library: FunctionLibrary, ref: FuncRef, to_host: bool) -> _Function:
        function, key = _key(library, ref)
        key = (*key, to_host)
        found = self._compiled.get(key)
        if found is None:
            with self._lock:
                found = self._compiled.get(key)
                if found is None:
                    found = self._compiled[key] = (self._compile(library, ref, to_host), function)
        return found[0]

    def program(self, library: FunctionLibrary, ref: FuncRef) -> Program:
        """A function's body made ready to run, made once.

        Raises:
            GraphError: there is no such function, or its body is malformed.
        """

        function, key = _key(library, ref)
        with self._lock:
            found = self._programs.get(key)
            if found is None:
                settings = self._settings
                defining, target = (False, None) if settings is None else (settings.defines, settings.target)
                graph = _pruned(instantiate(library, ref))
                kind, number = self._device.device_type or "CPU", self._device.device_index or 0
                if device_types.has_memory(kind):
                    for node in graph:
                        node.device = str(self._device)
                    graph = MemoryTypes(kind).apply(graph).graph
                program = Program(
                    graph, kind, device_index=number, access=self._access, defining=defining, target=target,
                    copies=device_types.has_memory(kind),
                )  # fmt: skip
                found = self._programs[key] = (program, function)
            return found[0]

    def run(self, library: FunctionLibrary, ref: FuncRef, args: Sequence[Any], step: Any, site: str = "") -> list[Any]:
        """Run a function to the end and return its results."""
        return self.prepare(library, ref, site)(args, step)

    def executors(self) -> list[Executor]:
        """Those of the functions that were compiled until now."""
        return [function.executor for function, _ in list(self._compiled.values())]

    def _compile(self, library: FunctionLibrary, ref: FuncRef, to_host: bool) -> _Function:
        program = self.program(library, ref)
        executor = self._make_executor(
            program, force_tokens=self._force_tokens, settings=self._settings, to_host=to_host
        )
        return _Function(ref.name, program, executor)


class _Function:
    """A function made ready to run."""

    def __init__(self, name: str, program: Program, executor: Executor):
        self._name = name
        self._num_args = program.num_arguments
        self._types = program.argument_types
        self.executor = executor

    def called_from(self, site: str) -> Call:
        name, num_args, types, executor = self._name, self._num_args, self._types, self.executor

        def call(args: Sequence[Any], step: DeviceStep) -> list[Any]:
            if len(args) != num_args:
                raise InvalidArgumentError(f"function '{name}' takes {num_args} argument(s), not {len(args)}")
            for index, dtype, array_type in types:  # the attributes of the caller do not say what a function takes
                if args[index].dtype != array_type:
                    raise InvalidArgumentError(
                        f"argument {index} of function '{name}' is {dtype}, but it is given {args[index].dtype}"
                    )
            return executor.run(args, step.sibling(site=site))

        return call


def _key(library: FunctionLibrary, ref: FuncRef) -> tuple[object, tuple[Any, ...]]:
    """The function, to be kept with the entry so that its id stays its own, and the entry's key."""
    function = library.function(ref.name)
    attrs = tuple((k, encode(v).SerializeToString(deterministic=True)) for k, v in sorted(ref.attrs.items()))
    return function, (id(function), attrs)


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
