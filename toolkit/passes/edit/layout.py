"""The order of an input's dimensions: images with their channels first or last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from toolkit.errors import GraphError, UsageError
from toolkit.formats.inspection.report import plural
from toolkit.graph import dtypes
from toolkit.graph.metagraph import Signature
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.passes.edit.base import PATTERNS, TEXT, argument
from toolkit.passes.edit.draft import Draft
from toolkit.passes.edit.reshape import REMARK
from toolkit.passes.edit.shapes import require_input

#: layout -> where each of its dimensions is in the other one: of images, volumes, rows
_MOVES: dict[str, tuple[int, ...]] = {
    "NCHW": (0, 3, 1, 2), "NHWC": (0, 2, 3, 1),
    "NCDHW": (0, 4, 1, 2, 3), "NDHWC": (0, 2, 3, 4, 1),
    "NCW": (0, 2, 1), "NWC": (0, 2, 1),
}  # fmt: skip
_PAIRS = (("NCHW", "NHWC"), ("NCDHW", "NDHWC"), ("NCW", "NWC"))
_OTHER = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


@dataclass(frozen=True)
class SetInputLayout:
    """Take inputs with their channels first (NCHW) or last (NHWC), which are the other way round so far. A Transpose
    behind each makes of it what the graph computes with."""

    name: ClassVar[str] = "set_input_layout"

    layout: str = argument(TEXT, f"that the inputs are to have: {', '.join(_MOVES)}")
    nodes: tuple[str, ...] = argument(PATTERNS, "placeholders (default: all of as many dimensions)", ())

    def apply(self, draft: Draft) -> str:
        moves = _MOVES.get(self.layout)
        if moves is None:
            raise UsageError(f"'{self.layout}' is no layout; expected {', '.join(_MOVES)}")
        if self.nodes:
            nodes = draft.choose(self.nodes)
            for node in nodes:
                require_input(node)
                if len(_sizes(node)) != len(moves):
                    raise GraphError(
                        f"its shape {node.attr_or('shape', Shape(None))} has not the {len(moves)} sizes of "
                        f"{_OTHER[self.layout]}",
                        node=node.name,
                    )
        else:
            nodes = [n for n in draft.graph.nodes if n.op == "Placeholder" and len(_sizes(n)) == len(moves)]
            if not nodes:
                raise UsageError(f"no placeholder has {len(moves)} dimensions; set_shape gives one a shape")
        shapes = {node.name: Shape([_sizes(node)[at] for at in moves]) for node in nodes}
        for node in nodes:
            _transpose(draft, node, shapes[node.name], _MOVES[_OTHER[self.layout]], _OTHER[self.layout])
        meta = draft.meta
        draft.meta = replace(meta, signatures={key: _moved(each, shapes) for key, each in meta.signatures.items()})
        said = f"{plural(len(nodes), 'input')} in {self.layout}"
        if meta.shell.HasField("object_graph_def"):
            said += "; the functions of the object graph take theirs as before"
        return said


def _sizes(node: Node) -> Sequence[int | None]:
    return node.attr_or("shape", Shape(None)).dims or ()


def _transpose(draft: Draft, node: Node, shape: Shape, back: Sequence[int], layout: str) -> None:
    """Give a placeholder a shape, and its readers what they have had."""
    import numpy as np

    from toolkit.formats.arrays.tensor import from_array

    graph, dtype = draft.graph, node.output_types[0]
    value = from_array(np.asarray(back, np.int32), dtypes.int32)
    attrs: dict[str, Any] = {"dtype": dtypes.int32, "value": value}
    name = graph.unique_name(f"{node.name}/{layout}")
    perm = draft.add("Const", graph.unique_name(f"{name}/perm"), [], [], attrs, node.device)
    made = draft.add(
        "Transpose", name, [node.output(), perm.output()], [], {"T": dtype, "Tperm": dtypes.int32}, node.device
    )
    draft.redirect({(node.id, 0): made.output()}, but=[made])
    node.attrs["shape"] = shape
    if REMARK in node.attrs:
        node.attrs[REMARK] = [shape]


def _moved(signature: Signature, shapes: dict[str, Shape]) -> Signature:
    """A signature with the new shapes of its inputs."""
    inputs = {
        label: replace(info, shape=shapes.get(info.name.removesuffix(":0"), info.shape))
        for label, info in signature.inputs.items()
    }
    return signature if inputs == signature.inputs else replace(signature, inputs=inputs)
