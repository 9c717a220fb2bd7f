"""The object graph of a SavedModel that lost functions, variables or assets: what is left of the objects.

`tf.saved_model.load` makes the objects anew, their functions and their signatures, and fills their variables from the
checkpoint, object by object. What stays here stays whole: a function needs all that it has captured, a table all
functions that make and fill it. Objects keep their numbers, for other files (Keras's metadata) know them by these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from schemas.meta_graph_pb2 import MetaGraphDef
from schemas.saved_object_graph_pb2 import SavedObject, SavedObjectGraph
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.passes.pruning.prune import reachable_functions

#: how the object with the signatures is known
SIGNATURE_MAP = "signature_map"
_GENERIC = "_generic_user_object"
_CUSTOM_GRADIENT = "_gradient_op_type"


def needed_functions(meta: MetaGraph, graph: Graph, *, keep_objects: bool) -> set[str]:
    """The functions that a graph needs, and those of objects.

    Args:
        graph: the one that `meta` is to get; functions that its nodes call are needed.
        keep_objects: whether all objects stay. If not, those do that hold what the needed functions have captured,
            with the functions that make and fill tables.
    """
    objects = meta.shell.object_graph_def
    roots = set[str]()
    for at in _reached(objects) if keep_objects else ():
        roots |= _functions_of(objects.nodes[at])
    while True:
        found = _with_gradients(graph, reachable_functions(graph, roots))
        more = set(found)
        for name in found & set(objects.concrete_functions):
            for at in objects.concrete_functions[name].bound_inputs:
                if at < len(objects.nodes) and objects.nodes[at].WhichOneof("kind") == "resource":
                    more |= _functions_below(objects, at)
        if more <= roots:
            return found
        roots |= more


def keep_functions(meta: MetaGraph, graph: Graph, *, keep_objects: bool) -> int:
    """Remove the functions of a graph that `needed_functions` does not list; returns how many."""
    needed = needed_functions(meta, graph, keep_objects=keep_objects)
    gone = [name for name in graph.library if name not in needed]
    for name in gone:
        graph.library.remove(name)
    return len(gone)


def reduced_objects(meta: MetaGraph, shell: MetaGraphDef, gone: Collection[int] = ()) -> SavedObjectGraph | None:
    """The object graph of `meta` without what is gone; None where a signature could not be found in it any more.

    Args:
        shell: the MetaGraphDef of the smaller model, with the assets that stay.
        gone: numbers of objects, variables that have no value.
    """
    graph = meta.graph
    before = meta.shell.object_graph_def
    made = SavedObjectGraph()
    made.CopyFrom(before)
    assets = _asset_positions(meta.shell, shell)
    lost = set(range(len(before.nodes))) - _reached(before) | set(gone)
    for at, node in enumerate(made.nodes):
        if node.HasField("constant") and node.constant.operation not in graph:
            lost.add(at)
        elif node.HasField("asset"):
            position = assets.get(node.asset.asset_file_def_index)
            if position is None:
                lost.add(at)
            else:
                node.asset.asset_file_def_index = position
    _drop_whatever_lacks(made, graph.library, lost)
    for at, node in enumerate(made.nodes):
        if at in lost:
            empty = SavedObject()
            empty.user_object.identifier = _GENERIC
            empty.user_object.version.producer = empty.user_object.version.min_consumer = 1
            node.CopyFrom(empty)
            continue
        _drop_references(node, lost)
        if node.user_object.identifier == SIGNATURE_MAP:
            unknown = {child.local_name for child in node.children} - meta.signatures.keys()
            for references in (node.children, node.dependencies):
                _take_out(references, [child for child in references if child.local_name in unknown])
    return made if set(_signatures(before)) & meta.signatures.keys() == set(_signatures(made)) else None


def is_known(meta: MetaGraph, key: str) -> bool:
    """Whether a loader that follows the objects finds a signature."""
    return key in _signatures(meta.shell.object_graph_def)


def _drop_whatever_lacks(objects: SavedObjectGraph, library: Collection[str], lost: set[int]) -> None:
    """Add to `lost` what cannot be without what is lost, and take functions out that cannot be."""
    count = -1
    while count != len(lost) + len(objects.concrete_functions):
        count = len(lost) + len(objects.concrete_functions)
        for name, function in list(objects.concrete_functions.items()):
            if name not in library or not lost.isdisjoint(function.bound_inputs):
                del objects.concrete_functions[name]
        for at, node in enumerate(objects.nodes):
            if at not in lost and _lacks(node, objects.concrete_functions, lost):
                lost.add(at)


def _lacks(node: SavedObject, functions: Mapping[str, Any], lost: Collection[int]) -> bool:
    """Whether an object has lost what it is about."""
    match node.WhichOneof("kind"):
        case "function":
            names = list(node.function.concrete_functions)
            left = [name for name in names if name in functions]
            if len(left) < len(names):
                del node.function.concrete_functions[:]
                node.function.concrete_functions.extend(left)
            return bool(names) and not left
        case "bare_concrete_function":
            return node.bare_concrete_function.concrete_function_name not in functions
        case "captured_tensor":
            return node.captured_tensor.concrete_function not in functions
        case "resource":
            return any(child.node_id in lost for child in node.children)
        case _:
            return False


def _drop_references(node: SavedObject, lost: Collection[int]) -> None:
    for references in (node.children, node.dependencies):
        _take_out(references, [child for child in references if child.node_id in lost])
    _take_out(
        node.slot_variables,
        [
            slot
            for slot in node.slot_variables
            if slot.original_variable_node_id in lost or slot.slot_variable_node_id in lost
        ],
    )
    for name, saveable in list(node.saveable_objects.items()):
        if saveable.save_function in lost or saveable.restore_function in lost:
            del node.saveable_objects[name]


def _take_out(items: Any, going: Sequence[Any]) -> None:
    for item in going:
        items.remove(item)


def _signatures(objects: SavedObjectGraph) -> list[str]:
    nodes: Iterable[SavedObject] = objects.nodes
    return [
        child.local_name for node in nodes if node.user_object.identifier == SIGNATURE_MAP for child in node.children
    ]


def _asset_positions(before: MetaGraphDef, after: MetaGraphDef) -> dict[int, int]:
    """Where each asset is listed now."""
    now = {(asset.filename, asset.tensor_info.name): at for at, asset in enumerate(after.asset_file_def)}
    places = enumerate(before.asset_file_def)
    keys = {at: (asset.filename, asset.tensor_info.name) for at, asset in places}
    return {at: now[key] for at, key in keys.items() if key in now}


def _functions_below(objects: SavedObjectGraph, at: int) -> set[str]:
    """The functions of an object's children: those that make, fill, save and restore a table."""
    found: set[str] = set()
    saveables = objects.nodes[at].saveable_objects.values()
    ids = [child.node_id for child in objects.nodes[at].children]
    ids += [number for each in saveables for number in _functions_that_save(each)]
    for number in ids:
        if 0 <= number < len(objects.nodes):
            found |= _functions_of(objects.nodes[number])
    return found


def _functions_of(node: SavedObject) -> set[str]:
    """The functions that an object is."""
    if node.HasField("bare_concrete_function"):
        return {node.bare_concrete_function.concrete_function_name}
    return set(node.function.concrete_functions)


def _reached(objects: SavedObjectGraph) -> set[int]:
    """The objects that a loader reaches from the first one, with what their functions have captured."""
    found = {0} if objects.nodes else set[int]()
    waiting = list(found)
    while waiting:
        node = objects.nodes[waiting.pop()]
        near = [child.node_id for child in (*node.children, *node.dependencies)]
        near += [slot.slot_variable_node_id for slot in node.slot_variables]
        near += [each for saveable in node.saveable_objects.values() for each in _functions_that_save(saveable)]
        for name in _functions_of(node):
            if name in objects.concrete_functions:
                near += objects.concrete_functions[name].bound_inputs
        new = {at for at in near if 0 <= at < len(objects.nodes)} - found
        found |= new
        waiting += new
    return found


def _functions_that_save(saveable: Any) -> tuple[int, int]:
    return saveable.save_function, saveable.restore_function


def _with_gradients(graph: Graph, functions: set[str]) -> set[str]:
    """With the functions that are registered as gradients of operations in these, and what those need."""
    library = graph.library
    registered = library.registered_gradients
    while registered:
        used = {
            node.attr[_CUSTOM_GRADIENT].s.decode(errors="replace")
            for name in functions
            for node in library.function(name).node_def
            if _CUSTOM_GRADIENT in node.attr
        }
        more = {registered[key] for key in used & registered.keys()} & set(library) - functions
        if not more:
            break
        functions = reachable_functions(graph, functions | more)
    return functions
