"""Which tensor of its checkpoint each variable of a SavedModel 2.x is, by the objects that both know.

The graph of a SavedModel mostly restores its variables itself. Where it does not (it was saved without a saver, or its
saver fills copies of the variables, as Keras 3 has it), TensorFlow's loader walks the model's objects and those of the
checkpoint side by side, from the root along children of the same names.
"""

from __future__ import annotations

from collections.abc import Iterable

from schemas.saved_object_graph_pb2 import SavedObjectGraph
from schemas.trackable_object_graph_pb2 import TrackableObjectGraph
from toolkit.formats.bundle.object_graph import VARIABLE_VALUE, find_object_graph
from toolkit.formats.bundle.source import TensorSource
from toolkit.graph.attrs import FuncRef
from toolkit.graph.metagraph import MetaGraph


def variable_keys(meta: MetaGraph, source: TensorSource) -> dict[str, str]:
    """The name of each VarHandleOp that a function of the model captures, to the key of its value in the checkpoint.

    Empty when either has no objects.
    """
    keys = object_keys(meta, source)
    return {name: keys[at] for name, at in _handles(meta, meta.shell.object_graph_def) if at in keys} if keys else {}


def object_keys(meta: MetaGraph, source: TensorSource) -> dict[int, str]:
    """The number of each object of the model that has a value in the checkpoint, to the value's key."""
    objects = find_object_graph(source)
    saved = meta.shell.object_graph_def
    return {} if objects is None or not saved.nodes else _keys(saved, objects.message)


def _handles(meta: MetaGraph, saved: SavedObjectGraph) -> Iterable[tuple[str, int]]:
    """Variable nodes with the number of their object: the last arguments of a call are what its function captured."""
    for node in meta.graph:
        function = node.attr_or("f", None)
        if not isinstance(function, FuncRef) or function.name not in saved.concrete_functions:
            continue
        bound = saved.concrete_functions[function.name].bound_inputs
        captured = node.inputs[len(node.inputs) - len(bound) :]
        for (source, _), at in zip(captured, bound, strict=False):
            if source.op == "VarHandleOp":
                yield source.name, at


def _keys(saved: SavedObjectGraph, stored: TrackableObjectGraph) -> dict[int, str]:
    """The number of each object of the model that has a value in the checkpoint, to the value's key."""
    found: dict[int, str] = {}
    pairs = [(0, 0)] if stored.nodes else []
    seen = set(pairs)
    for ours, theirs in pairs:
        for attribute in stored.nodes[theirs].attributes:
            if attribute.name == VARIABLE_VALUE:
                found.setdefault(ours, attribute.checkpoint_key)
        children = {child.local_name: child.node_id for child in stored.nodes[theirs].children}
        for child in saved.nodes[ours].children:
            pair = (child.node_id, children.get(child.local_name, -1))
            if pair not in seen and 0 <= pair[0] < len(saved.nodes) and 0 <= pair[1] < len(stored.nodes):
                seen.add(pair)
                pairs.append(pair)
    return found
