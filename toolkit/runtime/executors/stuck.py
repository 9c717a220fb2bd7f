"""Why a loop ended without a value that was wanted: what it waits for comes in other iterations, or never."""

from __future__ import annotations

from toolkit.graph.node import ENTER_OPS, MERGE_OPS, NEXT_ITERATION_OPS, Node


def why(wanted: Node) -> str:
    """The first node behind `wanted` whose inputs never come together, and which input it is."""
    seen = {wanted}
    stack = [wanted]
    while stack:
        node = stack.pop()
        sources = [source for source, _ in node.inputs] + node.control_inputs
        found = _mismatch(node, sources)
        if found is not None:
            return found
        for source in sources:
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return f"of the loops that '{wanted.name}' depends on, none hands a value on to it"


def _mismatch(node: Node, sources: list[Node]) -> str | None:
    """What is wrong with the inputs of one node."""
    if node.op in MERGE_OPS:
        if sources and all(source.op in NEXT_ITERATION_OPS for source in sources):
            return f"'{node.name}' waits for a first iteration, but no Enter leads to it, only '{sources[0].name}'"
        if not any(source.op in NEXT_ITERATION_OPS for source in sources) and all(
            source.op in ENTER_OPS for source in sources
        ):
            return f"'{node.name}' has a value in the first iteration only, for no NextIteration leads to it"
        return None
    for source in sources:
        if source.op in NEXT_ITERATION_OPS:
            return (
                f"'{node.name}' waits for '{source.name}', a NextIteration, which has no value in the first iteration"
            )
        if source.op in ENTER_OPS and not source.attr("is_constant", False):
            return (
                f"'{node.name}' waits in each iteration for '{source.name}', an Enter whose value comes in the first "
                "iteration only (is_constant brings it to all)"
            )
    return None
