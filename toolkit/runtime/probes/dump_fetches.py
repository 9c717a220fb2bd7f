"""What a dump asks for, as fetches of the step itself: then it runs compiled, with these tensors kept."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Sequence

from toolkit.graph.graph import Graph
from toolkit.graph.node import CONTROL_FLOW_OPS, Node, Output
from toolkit.passes.pruning.client_graph import rewrite_for_execution

#: kinds of types that no file is written for
_NO_TENSORS = frozenset("rv")


def dump_fetches(
    graph: Graph, pattern: str, feeds: Sequence[Output], fetches: Sequence[Output], targets: Collection[Node]
) -> list[Output] | None:
    """The tensors of the step that a pattern means; None where nodes must run one by one to see them.

    That is so behind branches and loops, where a tensor may not be there or come several times, in functions, and for
    references, which hold in the end what others have written.
    """
    step = rewrite_for_execution(graph, feeds, fetches, targets)
    wanted = [node for node in step if fnmatch.fnmatchcase(node.name, pattern) and graph.get(node.name) is not None]
    bodies = (graph.library.function(name).node_def for name in graph.library)
    if any(fnmatch.fnmatchcase(node.name, pattern) for body in bodies for node in body):
        return None
    if any(dtype.is_ref for node in wanted for dtype in node.output_types):
        return None
    stack, seen = list(wanted), set(wanted)
    while stack:
        node = stack.pop()
        if node.op in CONTROL_FLOW_OPS:
            return None
        for source in (*(source for source, _ in node.inputs), *node.control_inputs):
            if source not in seen:
                seen.add(source)
                stack.append(source)
    fed = {(output.node.name, output.index) for output in feeds}
    return [
        graph.node(node.name).output(index)
        for node in wanted
        if node.op != "Const"
        for index, dtype in enumerate(node.output_types)
        if dtype.kind not in _NO_TENSORS and (node.name, index) not in fed
    ]
