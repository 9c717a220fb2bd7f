"""What a graph expects of a checkpoint: which tensors, of which type and shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from schemas import variable_pb2
from toolkit.errors import GraphmillError, NotFoundError, did_you_mean
from toolkit.formats.arrays import tensor
from toolkit.formats.bundle.check import CheckpointFinding
from toolkit.formats.bundle.object_graph import KEY, find_object_graph
from toolkit.formats.bundle.slices import TensorSlice, parse_spec
from toolkit.formats.bundle.source import TensorSource
from toolkit.formats.models.collections import variable_def
from toolkit.formats.models.model import Model
from toolkit.formats.models.object_variables import variable_keys
from toolkit.graph import shape as shapes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import GraphKeys, MetaGraph, Signature
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape

VARIABLE_OPS = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_RESTORE_OPS = frozenset({"RestoreV2", "Restore", "RestoreSlice"})
_ASSIGN_OPS = frozenset({"Assign", "AssignVariableOp"})
_PASS_ON = frozenset({"Identity", "Reshape", "Cast"})


@dataclass(frozen=True, slots=True)
class Expected:
    """A tensor that a graph reads from its checkpoint.

    Attributes:
        name: its name there.
        dtype: its type, or None if the graph does not say.
        shape: its shape, as far as the graph says.
        node: the node that says so.
        part: the part of it that is read, or None for all.
    """

    name: str
    dtype: DType | None
    shape: Shape
    node: str
    part: TensorSlice | None = None


def expected_tensors(model: Model) -> list[Expected]:
    """The tensors that restoring a graph reads.

    They are what the graph's restore ops name; in a graph without any, its variables. Ops that name nothing but the
    object graph restore nothing: variables that such a graph has hold paths of assets, and the like, which its
    initialisation assigns.

    Raises:
        NotFoundError: the graph has neither.
        UsageError: a SavedModel has several graphs and none is chosen.
    """
    meta = model.meta
    found = list(_restored(meta))
    if not found:
        found = list(variables(meta))
    found = [item for item in found if item.name != KEY]
    if not found:
        raise NotFoundError("the graph has no variables and restores nothing", file=model.source or None)
    return list({(item.name, item.part): item for item in found}.values())


def restores(model: Model) -> bool:
    """Whether something in the graph or its functions reads a checkpoint."""
    return next(_restored(model.meta), None) is not None


def _restored(meta: MetaGraph) -> Iterator[Expected]:
    graph = meta.graph
    roots: list[Node] = []
    if meta.saver is not None and meta.saver.restore_op_name:
        root = graph.get(meta.saver.restore_op_name.split(":")[0])
        roots = [root] if root is not None else []
    within = {node.name for node in ancestors(roots)} if roots else None
    for body, names in _bodies(graph, within):
        consumers: dict[str, list[tuple[int, Node]]] = {}
        restores = [node for node in body.nodes if node.op in _RESTORE_OPS and (names is None or node.name in names)]
        if restores:
            for node in body.nodes:
                for src, index in node.inputs:
                    consumers.setdefault(src.name, []).append((index, node))
        for node in restores:
            yield from _one_restore(node, consumers)


def _bodies(graph: Graph, within: set[str] | None) -> Iterator[tuple[Graph, set[str] | None]]:
    """The graph itself, and the bodies of functions that restore."""
    yield graph, within
    called = {
        value.name
        for node in graph.nodes
        if within is None or node.name in within
        for value in node.attrs.values()
        if isinstance(value, FuncRef)
    }
    for name in graph.library:
        function = graph.library.function(name)
        if any(node.op in _RESTORE_OPS for node in function.node_def) and (within is None or name in called):
            try:
                yield instantiate(graph.library, FuncRef(name)).graph, None
            except GraphmillError:
                continue  # a function that cannot be built on its own says nothing


def _one_restore(node: Node, consumers: dict[str, list[tuple[int, Node]]]) -> Iterator[Expected]:
    names = _strings(node.inputs[1].node)
    specs = _strings(node.inputs[2].node) if len(node.inputs) > 2 else []
    types = node.output_types
    for at, name in enumerate(names):
        spec = parse_spec(specs[at]) if at < len(specs) else None
        shape = Shape(spec[0]) if spec else _assigned_shape(node, at, consumers)
        yield Expected(name, types[at] if at < len(types) else None, shape, node.name, spec[1] if spec else None)


def restored_variables(meta: MetaGraph) -> dict[str, Expected]:
    """For the node of each variable that the graph's restore ops fill, what they read for it.

    Restore ops in functions are followed to the variables that calls of these hand over.
    """
    found: dict[str, Expected] = {}
    for item, variable in _filled(meta.graph, {}):
        found.setdefault(variable.name, item)
    library = meta.graph.library
    restoring = {name for name in library if any(node.op in _RESTORE_OPS for node in library.function(name).node_def)}
    for node in meta.graph.nodes if restoring else ():
        for ref in [value for value in node.attrs.values() if isinstance(value, FuncRef)]:
            if ref.name not in restoring:
                continue
            try:
                body = instantiate(library, ref)
            except GraphmillError:
                continue  # it says nothing that can be followed
            given = {at: src for at, (src, _) in enumerate(node.inputs)}
            for item, variable in _filled(body.graph, given):
                found.setdefault(variable.name, item)
    return found


def _filled(graph: Graph, given: dict[int, Node]) -> Iterator[tuple[Expected, Node]]:
    """What restore ops read, with the variables that it is assigned to.

    Args:
        given: where the arguments come from, of a function's body.
    """
    restores = [node for node in graph.nodes if node.op in _RESTORE_OPS]
    consumers: dict[str, list[tuple[int, Node]]] = {}
    for node in graph.nodes if restores else ():
        for src, index in node.inputs:
            consumers.setdefault(src.name, []).append((index, node))
    for node in restores:
        for output, item in enumerate(_one_restore(node, consumers)):
            for assign in _assigns(node, output, consumers):
                holder = assign.inputs[0].node
                variable = given.get(holder.attr("index")) if holder.op == "_Arg" else holder
                if variable is not None and variable.op in VARIABLE_OPS:
                    yield item, variable


def _strings(node: Node) -> list[str]:
    """The elements of a constant of strings; none where there is no such constant."""
    passed: set[str] = set()
    while node.op == "Identity" and node.inputs and node.name not in passed:
        passed.add(node.name)
        node = node.inputs[0].node
    if node.op != "Const":
        return []
    elements = tensor.to_array(node.attr("value")).ravel().tolist()
    return [element.decode("utf-8", "surrogateescape") for element in elements if isinstance(element, bytes)]


def _assigned_shape(node: Node, index: int, consumers: dict[str, list[tuple[int, Node]]]) -> Shape:
    """The shape of the variable that an output is assigned to."""
    for assign in _assigns(node, index, consumers):
        variable = assign.inputs[0].node
        if variable.op in VARIABLE_OPS:
            return variable.attr_or("shape", shapes.UNKNOWN)
    return shapes.UNKNOWN


def _assigns(node: Node, index: int, consumers: dict[str, list[tuple[int, Node]]]) -> Iterator[Node]:
    """The operations that assign an output to a variable."""
    queue = [(node, index)]
    seen = {(node.name, index)}
    for source, output in queue:
        for used, consumer in consumers.get(source.name, []):
            if used != output:
                continue
            if consumer.op in _ASSIGN_OPS:
                yield consumer
            elif consumer.op in _PASS_ON and (consumer.name, 0) not in seen:
                seen.add((consumer.name, 0))
                queue.append((consumer, 0))


def variables(meta: MetaGraph) -> Iterator[Expected]:
    """The variables of a graph under the names that a Saver gives them: all, or those of the collection "variables"
    where there is one (local variables are not saved)."""
    slices: dict[str, variable_pb2.SaveSliceInfoDef] = {}
    listed: set[str] | None = None
    collection = meta.collections.get(GraphKeys.GLOBAL_VARIABLES)
    if collection:
        listed = set()
        for item in collection:
            definition = variable_def(item) if isinstance(item, bytes) else None
            if definition is not None:
                name = definition.variable_name.split(":")[0]
                listed.add(name)
                if definition.HasField("save_slice_info_def"):
                    slices[name] = definition.save_slice_info_def
    for node in meta.graph.nodes:
        if node.op not in VARIABLE_OPS or (listed is not None and node.name not in listed):
            continue
        yield _variable(node, slices.get(node.name))


def _variable(node: Node, info: variable_pb2.SaveSliceInfoDef | None) -> Expected:
    name = node.name
    if node.op == "VarHandleOp":
        shared: bytes | str = node.attr_or("shared_name", b"")
        name = (shared.decode("utf-8", "surrogateescape") if isinstance(shared, bytes) else shared) or name
    dtype: DType = node.attr("dtype")
    if info is not None:
        part = TensorSlice(tuple(zip(info.var_offset, info.var_shape, strict=True)))
        return Expected(info.full_name, dtype, Shape(info.full_shape), node.name, part)
    return Expected(name, dtype, node.attr_or("shape", shapes.UNKNOWN), node.name)


def ancestors(roots: Iterable[Node]) -> list[Node]:
    """The nodes that some nodes depend on, those included."""
    queue = list(roots)
    seen = {id(node) for node in queue}
    for node in queue:
        for before in (*(src for src, _ in node.inputs), *node.control_inputs):
            if id(before) not in seen:
                seen.add(id(before))
                queue.append(before)
    return queue


def signature_variables(model: Model, key: str) -> list[Expected]:
    """The variables that a signature's outputs depend on.

    Raises:
        NotFoundError: there is no such signature, or it needs no variables.
        GraphError: the signature names tensors that do not exist.
    """
    meta = model.meta
    signature: Signature | None = meta.signatures.get(key)
    if signature is None:
        raise NotFoundError(
            f"there is no signature '{key}'{did_you_mean(key, meta.signatures)}", file=model.source or None
        )
    roots = [meta.graph.output(name).node for name in signature.output_tensors().values()]
    needed = {node.name for node in ancestors(roots)}
    found = [item for item in variables(meta) if item.node in needed]
    if not found:
        raise NotFoundError(f"signature '{key}' needs no variables", file=model.source or None)
    return found


def resolve(
    source: TensorSource, expected: Iterable[Expected], model: Model | None = None
) -> dict[Expected, str | None]:
    """For each expectation, the tensor of the checkpoint that meets it, or None.

    A tensor has the expected name, or, in an object-based checkpoint, it as its full name. Keras 3 gives variables
    other names in graphs than in checkpoints: there the objects say which is which.

    Args:
        model: what the expectations are of; its objects are looked at.
    """
    keys = variable_keys(model.meta, source) if model is not None else {}
    objects = find_object_graph(source)
    by_full: dict[str, str | None] = {}
    if objects is not None:
        for key, full in objects.keys().items():
            by_full[full] = None if full in by_full else key
    return {
        item: keys.get(item.node) or (item.name if item.name in source else by_full.get(item.name)) for item in expected
    }


def compare_with_graph(source: TensorSource, model: Model, extra: bool = True) -> list[CheckpointFinding]:
    """Would this checkpoint restore into this graph?

    Args:
        extra: tensors that the graph does not read are findings too.

    Returns:
        Missing tensors, others of another type or shape, and extra ones.

    Raises:
        NotFoundError: the graph has no variables.
    """
    found: list[CheckpointFinding] = []
    used: set[str] = set()
    for item, name in resolve(source, expected_tensors(model), model).items():
        if name is None:
            hint = did_you_mean(item.name, source)
            found.append(
                CheckpointFinding(
                    "missing", f"node '{item.node}' reads it, the checkpoint lacks it{hint}", item.name, source.prefix
                )
            )
            continue
        used.add(name)
        entry = source.entry(name)
        if item.dtype is not None and item.dtype.base is not entry.dtype:
            message = f"the checkpoint has {entry.dtype}, the graph {item.dtype.base}"
            found.append(CheckpointFinding("dtype", message, item.name, source.prefix))
        if not item.shape.is_compatible_with(entry.shape):
            message = f"the checkpoint has {entry.shape}, the graph {item.shape}"
            found.append(CheckpointFinding("shape", message, item.name, source.prefix))
    if extra:
        for name in source:
            if name not in used and name != KEY:
                found.append(CheckpointFinding("extra", "the graph does not read it", name, source.prefix))
    return found
