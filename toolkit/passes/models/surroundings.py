"""What belongs to a graph when the graph gets smaller: signatures, collections, saver, object graph."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from google.protobuf.message import Message

from schemas import saver_pb2
from toolkit.formats.inspection.report import plural
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.metagraph import GraphKeys, MetaGraph, Signature, TensorInfo
from toolkit.graph.tensorref import parse_input, parse_tensor
from toolkit.passes.models.objects import reduced_objects
from toolkit.passes.models.references import is_there, item_message, names_in_message, rename_item

INIT_SIGNATURE = "__saved_model_init_op"
PREDICT_METHOD = "tensorflow/serving/predict"
#: the key under which pruning records its feeds and fetches
SIGNATURE_KEY = "pruned"


def shrink(meta: MetaGraph, graph: Graph, gone: Collection[int] = ()) -> tuple[MetaGraph, dict[str, Any]]:
    """`meta` around a smaller graph: what names nodes that are gone is dropped or adapted.

    Returns the new MetaGraph and a report: `collections` (name -> entries dropped), `signatures` (key -> what
    happened), `saver` and `object_graph` (kept, reduced or dropped).

    Args:
        gone: numbers of objects that go, variables that have no value any more.
    """
    report: dict[str, Any] = {"collections": {}, "signatures": {}, "saver": "kept", "object_graph": "kept"}
    collections: dict[str, list[Any]] = {}
    there = is_there(graph)
    for name, values in meta.collections.items():
        kept = [new for value in values if (new := rename_item(name, value, there)) is not None]
        if len(kept) < len(values):
            report["collections"][name] = len(values) - len(kept)
        if kept or not values:
            # a list that was read knows the message that it came from
            collections[name] = values if all(map(operator.is_, kept, values)) and len(kept) == len(values) else kept
    signatures: dict[str, Signature] = {}
    for key, signature in meta.signatures.items():
        adapted, what = _adapt(_retyped(signature, meta.graph, graph), graph)
        if adapted is not None:
            signatures[key] = adapted
        if what:
            report["signatures"][key] = what
    saver = meta.saver
    if saver is not None and not _has_saver(saver, graph):
        saver = None
        report["saver"] = "dropped"
    shell = meta.shell
    assets = [asset for asset in shell.asset_file_def if parse_input(asset.tensor_info.name).node in graph]
    is_smaller = len(graph.library) < len(meta.graph.library) or len(assets) < len(shell.asset_file_def) or bool(gone)
    has_objects = shell.HasField("object_graph_def")
    if len(assets) < len(shell.asset_file_def) or (has_objects and is_smaller):
        shell = type(shell)()
        shell.CopyFrom(meta.shell)
        del shell.asset_file_def[:]
        shell.asset_file_def.extend(assets)
    if has_objects and is_smaller:
        shell.ClearField("object_graph_def")
        # a loader takes signatures as the objects have them
        whole = all(key not in signatures for key in report["signatures"])
        smaller = replace(meta, graph=graph, signatures=signatures)
        objects = reduced_objects(smaller, shell, gone) if whole else None
        report["object_graph"] = "dropped" if objects is None else "reduced"
        if objects is not None:
            shell.object_graph_def.CopyFrom(objects)
        elif GraphKeys.SAVED_MODEL_INIT_OP in collections:
            # Without an object graph TensorFlow loads by the rules of 1.x: the collection names the init op, and
            # a signature of it would need the assets as inputs.
            signatures.pop(INIT_SIGNATURE, None)
    return replace(meta, graph=graph, signatures=signatures, collections=collections, saver=saver, shell=shell), report


def what_was_dropped(report: Mapping[str, Any]) -> list[str]:
    """The report of `shrink` as sentences."""
    lines = [
        f"dropped {plural(count, 'entry', 'entries')} of the collection '{name}'"
        for name, count in report["collections"].items()
    ]
    lines += [f"signature '{name}': {what}" for name, what in report["signatures"].items()]
    if report["saver"] == "dropped":
        lines.append("dropped the saver: its operations are not there any more")
    if report["object_graph"] == "dropped":
        lines.append("dropped the object graph: the signatures are not as it has them")
    elif report["object_graph"] == "reduced":
        lines.append("the object graph lost what is gone")
    return lines


def record_signature(
    meta: MetaGraph, feeds: Mapping[str, str], fetches: Mapping[str, str], *, wanted: str | None = None
) -> str | None:
    """Note feeds and fetches as a signature, unless one has just these; returns its key when one was added.

    Args:
        feeds, fetches: label to tensor name; labels may be tensor names.
        wanted: the key, where it is free.
    """
    inputs = {_label(label): tensor for label, tensor in feeds.items()}
    outputs = {_label(label): tensor for label, tensor in fetches.items()}
    for signature in meta.signatures.values():
        same_inputs = {info.name for info in signature.inputs.values()} == set(inputs.values())
        if same_inputs and {info.name for info in signature.outputs.values()} == set(outputs.values()):
            return None
    if not outputs:
        return None
    key = wanted or SIGNATURE_KEY
    count = 1
    while key in meta.signatures:
        count += 1
        key = f"{SIGNATURE_KEY}_{count}"
    shapes = ShapeMap()
    infos = [
        {label: _info(meta.graph, tensor, shapes) for label, tensor in group.items()} for group in (inputs, outputs)
    ]
    meta.signatures = {**meta.signatures, key: Signature(infos[0], infos[1], PREDICT_METHOD)}
    if meta.shell.HasField("object_graph_def"):  # which knows nothing of it, and loaders look nowhere else
        plain = without_objects(meta)
        meta.shell, meta.signatures = plain.shell, plain.signatures
    return key


def lifecycle_operations(meta: MetaGraph) -> list[str]:
    """The operations that training needs besides its step: initialisers, ready checks, saver, queue runners."""
    graph = meta.graph
    names: list[str] = []
    for key in (
        GraphKeys.INIT_OP, GraphKeys.LOCAL_INIT_OP, GraphKeys.READY_OP, GraphKeys.READY_FOR_LOCAL_INIT_OP,
        GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.LEGACY_INIT_OP, GraphKeys.TABLE_INITIALIZERS,
        GraphKeys.GLOBAL_STEP,
    ):  # fmt: skip
        for value in meta.collections.get(key, []):
            names += [parse_input(value).node] if isinstance(value, str) else _item_nodes(key, value)
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.QUEUE_RUNNERS):
        for value in meta.collections.get(key, []):
            names += _item_nodes(key, value)
    if meta.saver is not None:
        names += _nodes_in(meta.saver)
    return [name for name in dict.fromkeys(names) if name in graph]


def variables_without_initialiser(before: MetaGraph, after: MetaGraph) -> int:
    """How many variables are left without the initialiser that they had, and without a saver."""
    if after.saver is not None:
        return 0
    had = {
        parse_input(name).node
        for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)
        for item in before.collections.get(key, [])
        if (message := item_message(key, item)) is not None
        for name in names_in_message(message)[:1]
    }
    if not had:
        return 0
    lost = 0
    assigned = {
        node.inputs[0].node.name for node in after.graph if node.op in ("Assign", "AssignVariableOp") and node.inputs
    }
    for name in had:
        lost += name in after.graph and name not in assigned
    return lost


def named_tensors(meta: MetaGraph) -> list[str]:
    """The nodes and tensors that collections, the saver, the assets and the object graph name.

    Contexts of control flow are left out: they name every node of a loop, for gradients that are still to be made, and
    `shrink` drops those that no longer hold.
    """
    names: list[str] = []
    for key, values in meta.collections.items():
        is_context = key in (GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT)
        for value in values:
            if isinstance(value, str):
                names.append(value)
            elif not is_context:
                names += _item_nodes(key, value)
    if meta.saver is not None:
        names += _nodes_in(meta.saver)
    names += [parse_input(asset.tensor_info.name).node for asset in meta.shell.asset_file_def]
    names += [item.constant.operation for item in meta.shell.object_graph_def.nodes]
    return [name for name in dict.fromkeys(names) if parse_input(name).node in meta.graph]


def table_initialisers(meta: MetaGraph) -> list[str]:
    """The operations that bring a model to life besides its variables: they fill tables and set paths of assets."""
    keys = (GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.LEGACY_INIT_OP, GraphKeys.TABLE_INITIALIZERS)
    kept = {key: values for key, values in meta.collections.items() if key in keys}
    names = lifecycle_operations(replace(meta, saver=None, collections=kept))
    signature = meta.signatures.get(INIT_SIGNATURE)
    tensors = list(signature.output_tensors().values()) if signature is not None else []
    names += [node for tensor in tensors if (node := parse_input(tensor).node) in meta.graph]
    return list(dict.fromkeys(names))


def record_initializer(meta: MetaGraph, name: str) -> None:
    """Have whoever loads the model run an operation: with the one that brings it to life, or as that.

    Its graph and collections are changed.
    """
    known = [each for each in table_initialisers(meta) if each != name]
    if known:
        first = meta.graph.node(known[0])
        group = meta.graph.node(name)
        if group not in first.control_inputs:
            first.control_inputs = [*first.control_inputs, group]
        return
    keys = (GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.TABLE_INITIALIZERS)
    meta.collections = meta.collections | {key: [name] for key in keys if not meta.collections.get(key)}


def without_objects(meta: MetaGraph) -> MetaGraph:
    """The MetaGraph as TensorFlow 1 has it: loaders of 2.x would follow its objects to what is no longer there.

    The collection then names the operation that brings it to life, and a signature of that would need the assets as
    inputs.
    """
    shell = type(meta.shell)()
    shell.CopyFrom(meta.shell)
    shell.ClearField("object_graph_def")
    signatures = dict(meta.signatures)
    if GraphKeys.SAVED_MODEL_INIT_OP in meta.collections:
        signatures.pop(INIT_SIGNATURE, None)
    return replace(meta, shell=shell, signatures=signatures)


def _label(text: str) -> str:
    return text.removesuffix(":0")


def _info(graph: Graph, tensor: str, shapes: ShapeMap) -> TensorInfo:
    output = graph.output(parse_tensor(tensor))
    return TensorInfo(output.name, output.dtype.base, shapes[output])


def _item_nodes(collection: str, item: Any) -> list[str]:
    message = item_message(collection, item)
    return [] if message is None else _nodes_in(message)


def _nodes_in(message: Message) -> list[str]:
    return [parse_input(name).node for name in names_in_message(message)]


def _has_saver(saver: saver_pb2.SaverDef, graph: Graph) -> bool:
    return all(name in graph for name in _nodes_in(saver))


def _retyped(signature: Signature, before: Graph, graph: Graph) -> Signature:
    """The signature with the types that its tensors have now, where they have others than before."""

    def now(info: TensorInfo) -> TensorInfo:
        ref = parse_input(info.name)
        old, new = before.get(ref.node), graph.get(ref.node)
        if not info.name or old is None or new is None or not (0 <= ref.index < min(old.num_outputs, new.num_outputs)):
            return info
        types = [node.output_types[ref.index].base for node in (old, new)]
        return replace(info, dtype=types[1], proto=None) if types[0] is info.dtype is not types[1] else info

    inputs, outputs = ({key: now(info) for key, info in each.items()} for each in (signature.inputs, signature.outputs))
    changed = inputs != signature.inputs or outputs != signature.outputs
    return replace(signature, inputs=inputs, outputs=outputs) if changed else signature


def _adapt(signature: Signature, graph: Graph) -> tuple[Signature | None, str]:
    """The signature without what is gone, and what was done; None when no output is left."""

    def there(info: TensorInfo) -> bool:
        return all(parse_input(name).node in graph for name in info.parts().values())

    inputs = {key: info for key, info in signature.inputs.items() if there(info)}
    outputs = {key: info for key, info in signature.outputs.items() if there(info)}
    if len(inputs) == len(signature.inputs) and len(outputs) == len(signature.outputs):
        return signature, ""
    if not outputs:
        return None, "dropped"
    gone = [*(signature.inputs.keys() - inputs.keys()), *(signature.outputs.keys() - outputs.keys())]
    return Signature(inputs, outputs, signature.method_name), f"without {', '.join(sorted(gone))}"
