"""What has to stay when a graph is optimized: everything that somebody asks for by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.graph.bodies import FunctionBody
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import CONTROL_FLOW_OPS
from toolkit.graph.tensorref import parse_input, parse_tensor
from toolkit.passes.models.objects import needed_functions
from toolkit.passes.models.surroundings import named_tensors


@dataclass(frozen=True, slots=True)
class Kept:
    """What may not be removed, renamed or, where it is fed, looked through.

    A kept node may become another op, as long as it has its name and the outputs that are asked for: a fetched Mul
    whose value is known may become a Const.

    Attributes:
        names: nodes that stay under their names: fetches, feeds, targets, what signatures, collections and the saver
            name; in a function, its arguments, results and whatever has effects.
        fed: nodes (of `names`) of which an output is given from outside. They stay exactly as they are, and nothing
            is known of their values.
        outputs: what is asked for of the outputs of these nodes beside the first, "node:1".
        functions: functions that stay although nothing may call them.
        effects: nodes (of `names`) that stay for their effect alone, in a function; they may move where they run alike.
        in_function: whether it is of the body of a function, which shares the library of the graph around it.
    """

    names: frozenset[str] = frozenset()
    fed: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    effects: frozenset[str] = frozenset()
    in_function: bool = False


NOTHING = Kept()


def kept_by(
    meta: MetaGraph, feeds: Iterable[str] = (), fetches: Iterable[str] = (), targets: Iterable[str] = ()
) -> Kept:
    """What has to stay of a model.

    Without fetches and targets, nodes that nothing reads are results as well.

    Args:
        feeds, fetches: tensors, besides those of the signatures.
        targets: operations.

    Raises:
        GraphError: there is no such node.
    """
    graph = meta.graph
    fed = [graph.output(parse_tensor(text)).name for text in feeds]
    asked = [graph.output(parse_tensor(text)).name for text in fetches]
    asked += [graph.node(name.removeprefix("^")).name for name in targets]
    if not asked:
        asked += sinks(graph)
    for signature in meta.signatures.values():
        fed += signature.input_tensors().values()
        asked += signature.output_tensors().values()
    asked += named_tensors(meta)
    # TensorFlow 2 loads functions through the objects, gradients and all; those that only nodes call may go with these
    has_objects = meta.shell.HasField("object_graph_def")
    functions = needed_functions(meta, meta.graph.subgraph(()), keep_objects=True) if has_objects else ()
    inputs = [parse_input(text) for text in fed]
    results = [parse_input(text) for text in asked]
    return Kept(
        frozenset(ref.node for ref in (*inputs, *results) if ref.node in graph),
        frozenset(ref.node for ref in inputs if ref.node in graph),
        frozenset(ref.tensor_name for ref in results if ref.index > 0),
        frozenset(functions),
    )


def kept_in(body: FunctionBody) -> Kept:
    """What has to stay of a function: its arguments and results, and what runs for its effect."""
    names = frozenset(node.name for node in (*body.args, *body.results, *body.control_results))
    effects: list[str] = []
    for node in body.graph:
        definition = body.graph.find_op_def(node.op)
        if node.op not in CONTROL_FLOW_OPS and (definition is None or definition.is_stateful):
            effects.append(node.name)
    fed = frozenset(node.name for node in body.args)
    return Kept(names.union(effects), fed, effects=frozenset(effects) - names, in_function=True)


def sinks(graph: Graph) -> list[str]:
    """The nodes that nothing reads and nothing waits for."""
    read = bytearray(len(graph))
    for node in graph:
        for source, _ in node.inputs:
            read[source.id] = 1
        for source in node.control_inputs:
            read[source.id] = 1
    return [node.name for node in graph if not read[node.id]]
