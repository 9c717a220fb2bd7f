"""Which types of devices can run a node: there is a kernel, or for what calls functions there are some.

A function runs on the device of the node that calls it, all of it. What of it has no kernel there is copied to host
memory and runs there; a function of which nothing else is left runs on a CPU, and where every node must be on the
device that it asks for, so does one that lacks a single kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import functions_of, instantiate
from toolkit.graph.node import Node
from toolkit.kernels import device_types, facts, registry


@dataclass(slots=True)
class _Body:
    """What was found of a function.

    Attributes:
        function: kept, so that its id stays its own.
        lack: the first thing that it lacks; "" for none.
        gains: whether a node of it has a kernel of the device's own.
    """

    function: object
    lack: str = ""
    gains: bool = False


@dataclass(slots=True)
class DeviceKernels:
    """What was found of the functions of one graph, whose bodies are looked at once.

    Attributes:
        soft: a function may run on a device that lacks kernels of it.
    """

    soft: bool = True
    _bodies: dict[tuple[int, str, str], _Body] = field(default_factory=dict[tuple[int, str, str], _Body])

    def supports(self, node: Node, device_type: str) -> bool:
        """Whether a device type can run a node. Ops without any kernel may go anywhere: only running them is an error,
        and they may never be run."""
        if self._own_lack(node, device_type):
            return False
        bodies = self._called(node, device_type)
        if not any(body.lack for body in bodies):
            return True
        return self.soft and any(body.gains for body in bodies)

    def lack(self, node: Node, device_type: str) -> str:
        """What a device type lacks to run all of a node, "" where it lacks nothing."""
        lack = self._own_lack(node, device_type)
        return lack or next((body.lack for body in self._called(node, device_type) if body.lack), "")

    def wanting(self, node: Node, device_type: str) -> str:
        """As `lack`, of what TensorFlow runs on such a device."""
        if node.op.startswith("_") or not facts.has_kernel(node, device_type):
            return ""
        return self.lack(node, device_type)

    def _own_lack(self, node: Node, device_type: str) -> str:
        if node.op in node.graph.library or not registry.candidates(node.op, "CPU"):
            return ""
        try:
            found = registry.find(node, device_type)
        except GraphmillError:
            return ""  # told when the step is compiled
        if found is not None:
            return ""
        types = ", ".join(map(str, node.output_types[:1] or node.input_types[:1]))
        return f"there is no {device_type} kernel for {node.op} ({types})"

    def _called(self, node: Node, device_type: str) -> list[_Body]:
        """The functions that a node calls, on devices where it matters what is in them."""
        if not device_types.has_memory(device_type):
            return []
        return [self._body(node, ref, device_type) for ref in functions_of(node)]

    def _body(self, node: Node, ref: FuncRef, device_type: str) -> _Body:
        library = node.graph.library
        function = library.function(ref.name)
        key = (id(function), repr(ref), device_type)
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = _Body(function)  # one that calls itself is judged by the rest of it
            try:
                nodes = list(instantiate(library, ref).graph)
            except GraphmillError:
                return found  # told when the step is compiled
            lacks = (self.lack(each, device_type) for each in nodes)
            found.lack = next((f"{lack} in function '{ref.name}'" for lack in lacks if lack), "")
            found.gains = any(self._gains(each, device_type) for each in nodes)
        return found

    def _gains(self, node: Node, device_type: str) -> bool:
        try:
            found = registry.find(node, device_type)
        except GraphmillError:
            return False
        own = found is not None and found.device_type == device_type
        return own or any(body.gains for body in self._called(node, device_type))
