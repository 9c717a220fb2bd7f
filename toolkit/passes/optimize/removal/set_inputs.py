"""Inputs that have one value from now on: keep_prob, is_training, learning_phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import UsageError, did_you_mean
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs

_INPUTS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


@dataclass(frozen=True)
class SetInputs(Optimization):
    """Make constants of placeholders.

    The report has `set`: names to values, as they were given.

    Attributes:
        set: `NAME=VALUE` each, one number, truth value or text; a placeholder of a known shape is filled with it.
        defaults: make constants of all placeholders with a constant default, with that, but those that are fed.
    """

    name: ClassVar[str] = "set_inputs"
    in_functions: ClassVar[bool] = False

    set: tuple[str, ...] = ()
    defaults: bool = False

    def __post_init__(self) -> None:
        for text in self.set:
            if "=" not in text:
                raise UsageError(f"'{text}' sets nothing; expected NAME=VALUE, as in set=\"keep_prob=1.0\"")

    def apply(self, graph: Graph) -> PassResult:
        """
        Raises:
            UsageError: there is no such placeholder, or it cannot have the value.
        """
        found = Subgraphs(graph, self.kept)
        done: dict[str, str] = {}
        for text in self.set:
            name, _, value = text.partition("=")
            name = name.strip().removesuffix(":0")
            node = found.graph.get(name)
            if node is None:
                near = did_you_mean(name, [n.name for n in found.graph if n.op in _INPUTS])
                raise UsageError(f"set_inputs: there is no placeholder '{name}'{near}")
            if node.op == "Const":
                continue  # in an earlier round
            if node.op not in _INPUTS:
                raise UsageError(f"set_inputs: '{name}' is a {node.op}, no placeholder")
            self._set(found, node, _filled(node, value.strip()))
            done[name] = value.strip()
        if self.defaults:
            for node in found.each("PlaceholderWithDefault"):
                value = found.array(node.inputs[0])
                if value is not None and not found.is_fed(node):
                    self._set(found, node, value)
                    done[node.name] = "its default"
        return found.result({"set": done})

    def _set(self, found: Subgraphs, node: Node, value: Any) -> None:
        from toolkit.formats.arrays import tensor

        dtype = node.output_types[0].base
        proto = tensor.from_array(value, dtype)
        found.make(node, "Const", (), {"dtype": dtype, "value": proto})


def _filled(node: Node, text: str) -> Any:
    """A placeholder's value.

    Raises:
        UsageError: it is of another type, or the shape is not known.
    """
    import numpy as np

    dtype = node.attr("dtype").base
    shape = node.attr("shape")
    if shape.dims is not None and not shape.is_fully_defined:
        raise UsageError(f"set_inputs: '{node.name}' has the shape {shape}; only inputs of a known shape can be set")
    sizes: list[int] = shape.as_list() if shape.dims is not None else []
    try:
        if dtype.name == "bool":
            if text.lower() not in _TRUE | _FALSE:
                raise ValueError(text)
            value: Any = text.lower() in _TRUE
        elif dtype.name == "string":
            value = text.encode()
        else:
            value = np.asarray(complex(text) if dtype.name.startswith("complex") else float(text))
            if dtype.name.startswith(("int", "uint")):
                value = np.asarray(int(text))
            value = value.astype(dtype.numpy)
    except (ValueError, OverflowError):
        raise UsageError(f"set_inputs: '{text}' is no value for '{node.name}', which is {dtype}") from None
    return np.broadcast_to(np.asarray(value, dtype.numpy), sizes)
