"""Assertions, checks for NaN and printing taken out of a graph that is served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.attrs import FuncRef
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs

#: ops that hand on their first input, and look at it
_LOOKING = ("CheckNumerics", "CheckNumericsV2", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3")
#: ops that give nothing
_SILENT = ("Assert", "PrintV2")
#: what the branches of an assertion are made of, besides
_HARMLESS = frozenset({"Assert", "NoOp", "Identity", "Const", "_Arg", "_Retval"})


@dataclass(frozen=True)
class RemoveChecks(Optimization):
    """Remove Assert, CheckNumerics, Print and their kin; what waited for them waits for what they waited for.

    Results stay, but what would have failed goes on. The report has `removed`: how many, by op.

    Attributes:
        asserts, numerics, prints: which of them go.
    """

    name: ClassVar[str] = "remove_checks"

    asserts: bool = True
    numerics: bool = True
    prints: bool = True

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        removed: dict[str, int] = {}
        gone: list[Node] = []
        looking = [*(_LOOKING if self.numerics else ()), *(["Print"] if self.prints else ())]
        silent = [op for op, asked in zip(_SILENT, (self.asserts, self.prints), strict=True) if asked]
        guards = ["If", "StatelessIf"] if self.asserts else []
        for node in found.each(*looking, *silent, *guards):
            op = node.op
            if found.is_fed(node) or node.name in self.kept.fed:
                continue
            if op in looking:
                waits = list(node.control_inputs)  # what Print shows besides need not be computed
                found.turn_identity(node, node.inputs[0], waits)
            elif op in silent or _is_guard(found, node):
                dropped = _drop(found, node)
                if dropped is None:
                    continue
                gone += dropped
            else:
                continue
            removed[op] = removed.get(op, 0) + 1
        if gone:
            found.remove(gone)
        return found.result({"removed": dict(sorted(removed.items()))})


def _is_guard(found: Subgraphs, node: Node) -> bool:
    """Whether a branch does nothing but assert: its result is read by nobody, or by identities nobody reads."""
    for user in found.users(node):
        if any(source.node is node for source in user.inputs) and not (
            user.op == "Identity" and not any(user.output() in reader.inputs for reader in found.users(user))
        ):
            return False
    names: list[str] = []
    for key in ("then_branch", "else_branch"):
        ref = node.attr_or(key, None)
        if not isinstance(ref, FuncRef) or ref.name not in node.graph.library:
            return False
        names.append(ref.name)
    bodies = [node.graph.library.function(name).node_def for name in names]
    return any(n.op == "Assert" for body in bodies for n in body) and all(n.op in _HARMLESS for b in bodies for n in b)


def _drop(found: Subgraphs, node: Node) -> list[Node] | None:
    """Cut off a node that gives nothing; what is asked for by name becomes a NoOp. None where it has to stay."""
    # Identities of a guard's result are there to be waited for.
    idle = [user for user in found.users(node) if any(source.node is node for source in user.inputs)]
    if any(found.is_kept(user) for user in idle) or (idle and found.is_kept(node)):
        return None
    for user in idle:
        found.redirect_controls(user, [*(c for c in user.control_inputs if c is not node), node])
        found.set_inputs(user, ())
        found.set_controls(user, ())
    found.redirect_controls(node, node.control_inputs)
    if found.is_kept(node):
        found.turn(node, "NoOp")
        return []
    return [*idle, node]
