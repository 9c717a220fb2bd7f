"""Which types of devices can run a node: there is a kernel, and for what calls functions one for each of their nodes.

A function runs on the device of the node that calls it, all of it; one with a node that has no kernel there runs on a
CPU.
"""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import functions_of, instantiate
from toolkit.graph.node import Node
from toolkit.kernels import device_types, facts, registry


class DeviceKernels:
    """What was found of the functions of one graph, whose bodies are looked at once."""

    def __init__(self) -> None:
        self._bodies: dict[tuple[int, str, str], tuple[object, str]] = {}

    def supports(self, node: Node, device_type: str) -> bool:
        """Whether a device type can run a node. Ops without any kernel may go anywhere: only running them is an error,
        and they may never be run."""
        return not self.lack(node, device_type)

    def lack(self, node: Node, device_type: str) -> str:
        """What a device type lacks to run a node, "" where it lacks nothing."""
        has_memory = device_types.has_memory(device_type)
        functions = functions_of(node) if has_memory else []
        if node.op not in node.graph.library and registry.candidates(node.op, "CPU"):
            try:
                if registry.find(node, device_type) is None:
                    return f"there is no {device_type} kernel for {_text(node)}"
            except GraphmillError:
                return ""
        for ref in functions:
            lack = self._of_function(node, ref, device_type)
            if lack:
                return lack
        return ""

    def _of_function(self, node: Node, ref: FuncRef, device_type: str) -> str:
        function = node.graph.library.function(ref.name)
        key = (id(function), repr(ref), device_type)
        found = self._bodies.get(key)
        if found is None:
            self._bodies[key] = (function, "")  # one that calls itself is judged by the rest of it
            try:
                lacks = (self.lack(each, device_type) for each in instantiate(node.graph.library, ref).graph)
                lack = next((f"{lack} in function '{ref.name}'" for lack in lacks if lack), "")
            except GraphmillError:
                lack = ""  # told when the step is compiled
            found = self._bodies[key] = (function, lack)
        return found[1]

    def wanting(self, node: Node, device_type: str) -> str:
        """What is told of a node that runs on a CPU although TensorFlow runs it on such a device; "" for others."""
        if node.op.startswith("_") or not facts.has_kernel(node, device_type):
            return ""
        return self.lack(node, device_type)


def _text(node: Node) -> str:
    return f"{node.op} ({', '.join(map(str, node.output_types[:1] or node.input_types[:1]))})"
