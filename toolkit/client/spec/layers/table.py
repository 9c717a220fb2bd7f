"""The table of layers that a spec may name.

A layer is a function of one use of it; the table says which keys it takes. Layers with variables open a scope of their
name; the others make one operation of that name, so that `layer: softmax, name: probabilities` is the tensor
`probabilities:0`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.tensor import Tensor
from toolkit.errors import GraphError
from toolkit.formats.schema.containers import Key
from toolkit.formats.settings.tree import Section, YamlItem


@dataclass(frozen=True)
class LayerCall:
    """One use of a layer.

    Attributes:
        section: the entry, which is of the layer's kind.
        name: the layer's name.
        inputs: the tensors of `input` (or of the entry before), at least one.
        resolve: the tensor that a name in the spec stands for.
    """

    section: Section
    name: str
    inputs: list[Tensor]
    resolve: Callable[[YamlItem], Tensor]

    @property
    def x(self) -> Tensor:
        """The single input.

        Raises:
            SpecError: there are several.
        """
        if len(self.inputs) != 1:
            raise self.section.item.error(f"the layer takes one input, not {len(self.inputs)}")
        return self.inputs[0]


Build = Callable[[LayerCall], Tensor]


@dataclass(frozen=True)
class LayerKind:
    """An entry of the table: the function and the keys it takes besides layer, name, input, device, ..."""

    build: Build
    keys: dict[str, Key]


LAYERS: dict[str, LayerKind] = {}


def layer(name: str, **keys: Key) -> Callable[[Build], Build]:
    """Register a layer.

    Raises:
        GraphError: the name is taken.
    """

    def register(build: Build) -> Build:
        if name in LAYERS:
            raise GraphError(f"two layers are named '{name}'")
        LAYERS[name] = LayerKind(build, keys)
        return build

    return register


def as_named(tensor: Tensor, name: str) -> Tensor:
    """The tensor under the layer's own name: an Identity, when the layer made several nodes."""
    scope = get_default_graph().get_name_scope()
    full = f"{scope}/{name}" if scope else name
    return tensor if tensor.op.name == full else array_ops.identity(tensor, name=name)
