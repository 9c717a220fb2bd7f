"""What a `run` asks for, resolved against a model: names a person types to tensors of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.errors import GraphError, GraphmillError, UsageError, about_option, did_you_mean
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import DEFAULT_KEY, MetaGraph, Signature
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_tensor

#: signatures TensorFlow writes for its own use
_INTERNAL_SIGNATURES = frozenset({"__saved_model_init_op", "__saved_model_train_op"})
_SHOWN = 12


@dataclass(slots=True)
class Request:
    """One kind of step.

    Attributes:
        feeds: the tensors to feed with their values.
        fetches: label to tensor; the label is what the caller wrote, or the signature's output name.
        targets: operations to run.
        init_ops: operations to run once before the steps, one after another.
    """

    feeds: dict[Output, Any]
    fetches: dict[str, Output]
    targets: list[Node]
    init_ops: list[Node]


def resolve(
    meta: MetaGraph,
    *,
    feeds: Mapping[str, Any],
    fetches: Sequence[str] = (),
    targets: Sequence[str] = (),
    signature: str | None = None,
    init_ops: Sequence[str] = (),
) -> Request:
    """Resolve names.

    Feeds may be tensor names or, with a signature, its input names. Without fetches, targets and signature the
    file's only signature is meant; so it is where a feed or fetch is no node, and one of its inputs or outputs.

    Raises:
        UsageError: nothing to run was named and it is not clear what is meant; a name is unknown; a feed of the
            signature is missing.
        GraphError: the graph has no such node.
    """
    graph = meta.graph
    chosen: Signature | None = None
    if signature is not None:
        with about_option("--signature"):
            chosen = get_signature(meta, signature)
    elif not fetches and not targets:
        chosen = only_signature(meta)
    else:
        chosen = _named_signature(meta, feeds, fetches)
    fed: dict[Output, Any] = {}
    called: dict[Output, str] = {}  # what the caller named it
    inputs = chosen.input_tensors() if chosen is not None else {}
    for name, value in feeds.items():
        if name in inputs:
            output = _of_signature(graph, "input", name, inputs[name])
        else:
            with about_option("--feed"):
                output = _fed(graph, inputs, name)
        if output in fed:
            raise UsageError(f"'{output.name}' is fed twice, as '{called[output]}' and as '{name}'")
        fed[output] = value
        called[output] = name
    wanted: dict[str, Output] = {}
    if chosen is not None and not fetches:
        taken = {name: _of_signature(graph, "input", name, tensor) for name, tensor in inputs.items()}
        missing = [
            name for name, output in taken.items() if output not in fed and output.node.op != "PlaceholderWithDefault"
        ]
        if missing:
            raise UsageError(
                f"the signature needs the input(s) {', '.join(missing)}; give them with --feed NAME=SOURCE"
            )
        wanted = {n: _of_signature(graph, "output", n, tensor) for n, tensor in chosen.output_tensors().items()}
    for text in fetches:
        if chosen is not None and text in chosen.outputs:
            for part, tensor in chosen.outputs[text].parts().items():
                wanted[text + part] = _of_signature(graph, "output", text + part, tensor)
        else:
            tensor = chosen.output_tensors().get(text, text) if chosen is not None else text
            with about_option("--fetch"):
                wanted[text] = fetchable(graph, tensor)
    with about_option("--init-op"):
        first = [_operation(graph, name) for name in init_ops]
    with about_option("--target"):
        return Request(fed, wanted, [_operation(graph, name) for name in targets], first)


def _named_signature(meta: MetaGraph, feeds: Iterable[str], fetches: Iterable[str]) -> Signature | None:
    """The signature that is meant when none is, where a name is none of the graph's and one of its own."""
    key = _meant_key(meta)
    if key is None:
        return None
    found = meta.signatures[key]
    outputs = {*found.outputs, *found.output_tensors()}
    for names, known in ((feeds, found.input_tensors()), (fetches, outputs)):
        if any(name in known and not _is_node(meta.graph, name) for name in names):
            return found
    return None


def _is_node(graph: Graph, name: str) -> bool:
    try:
        return parse_tensor(name).node in graph
    except GraphmillError:
        return False


def _of_signature(graph: Graph, part: str, name: str, tensor: str) -> Output:
    """The tensor that a signature means by one of its inputs or outputs; the file's fault where there is none."""
    try:
        return graph.glance_output(parse_tensor(tensor))
    except GraphmillError as error:
        raise GraphError(f"the signature's {part} '{name}' is the tensor '{tensor}': {error.message}") from None


def _fed(graph: Graph, inputs: Mapping[str, str], name: str) -> Output:
    """The tensor of the graph that a feed means.

    Args:
        inputs: of the signature, to be named where there is no such tensor.
    """
    if parse_tensor(name).node not in graph:
        known = [*inputs, *(node.name for node in graph if node.op.startswith("Placeholder"))]
        listed = _listing("inputs", known)
        near = did_you_mean(name, known, then=listed) if did_you_mean(name, known) else _near(graph, name, then=listed)
        raise UsageError(f"there is nothing named '{name}' to feed{near}")
    return graph.glance_output(parse_tensor(name))


def _near(graph: Graph, name: str, *, then: str = "") -> str:
    """What may have been meant by a name that is none, imported for mistakes alone."""
    from toolkit.runtime.jobs.suggest import suggest

    return suggest(graph, name, then=then)


def _operation(graph: Graph, name: str) -> Node:
    found = graph.glance(name.removeprefix("^"))
    if found is None:
        raise UsageError(f"there is no operation '{name}' in the graph{_near(graph, name)}")
    return found


def fetchable(graph: Graph, text: str) -> Output:
    """The tensor a person named.

    Raises:
        UsageError: there is no such node, or it has no outputs.
        GraphError: it has outputs, but not this one.
    """
    ref = parse_tensor(text)
    node = graph.glance(ref.node)
    if node is None:
        raise UsageError(f"there is no node '{ref.node}' in the graph{_near(graph, ref.node)}")
    if not node.num_outputs:
        raise UsageError(f"'{node.name}' is an operation without outputs; run it with --target {node.name}")
    return graph.glance_output(ref)


def get_signature(meta: MetaGraph, key: str) -> Signature:
    """A signature by key.

    Raises:
        UsageError: there is none of that key; the keys are listed.
    """
    found = meta.signatures.get(key)
    if found is None:
        known = public_signatures(meta)
        raise UsageError(
            f"there is no signature '{key}'" + did_you_mean(key, known, then=f"{_listing('signatures', known)}")
        )
    return found


def public_signatures(meta: MetaGraph) -> list[str]:
    return [key for key in meta.signatures if key not in _INTERNAL_SIGNATURES]


def _meant_key(meta: MetaGraph) -> str | None:
    """The key of the only signature, or of the one that TensorFlow Serving takes; None where neither is there."""
    keys = public_signatures(meta)
    return DEFAULT_KEY if DEFAULT_KEY in keys else keys[0] if len(keys) == 1 else None


def only_signature(meta: MetaGraph) -> Signature:
    """The signature that is meant when nothing is named: the only one, or the one that TensorFlow Serving takes.

    Raises:
        UsageError: there is none, or several; what could be run is listed.
    """
    key = _meant_key(meta)
    if key is not None:
        return meta.signatures[key]
    if keys := public_signatures(meta):
        raise UsageError(f"say what is meant with --signature, --fetch or --target; {_listing('signatures', keys)}")
    from toolkit.graph.summary import likely_outputs

    raise UsageError(
        "say what to compute with --fetch TENSOR or --target OPERATION; "
        + _listing("likely outputs", likely_outputs(meta))
    )


def _listing(what: str, names: Sequence[str]) -> str:
    if not names:
        return f"the file has no {what}"
    shown = ", ".join(names[:_SHOWN])
    more = f", ... ({len(names) - _SHOWN} more)" if len(names) > _SHOWN else ""
    return f"{what}: {shown}{more}"
