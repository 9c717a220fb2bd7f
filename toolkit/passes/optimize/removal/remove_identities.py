"""Bypass nodes that hand on what they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import CONTROL_FLOW_OPS, Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization, Rewriting

_HANDING_ON = frozenset({"Identity", "Snapshot", "StopGradient", "PreventGradient"})


@dataclass(frozen=True)
class RemoveIdentities(Optimization):
    """Bypass Identity, IdentityN, Snapshot, StopGradient, PreventGradient, and NoOps that join control edges.

    What reads a variable by reference stays, for it says when the variable is read; so do nodes that are asked for,
    that carry a tensor to another device, and those that hold control edges of a branch (an Identity behind a Switch).

    Attributes:
        keep_gradient_stops: keep StopGradient, PreventGradient and custom gradients, for gradients that are
            still to be made.
    """

    name: ClassVar[str] = "remove_identities"

    keep_gradient_stops: bool = False

    def apply(self, graph: Graph) -> PassResult:
        """The report has `bypassed`, how many nodes were, and `noops`, how many of these joined control edges."""
        work = Rewriting(graph, self.kept)
        bypassed = noops = 0
        for node in graph.topological_order():
            copy = work.graph.node(node.name)
            if copy.op in _HANDING_ON:
                bypassed += self._bypass(work, copy)
            elif copy.op == "IdentityN" and not (self.keep_gradient_stops and "_gradient_op_type" in copy.attrs):
                bypassed += _bypass_many(work, copy)
            elif copy.op == "NoOp" and _join(work, copy):
                noops += 1
        return work.result({"bypassed": bypassed + noops, "noops": noops})

    def _bypass(self, work: Rewriting, node: Node) -> bool:
        if self.keep_gradient_stops and node.op in ("StopGradient", "PreventGradient"):
            return False
        source = node.inputs[0]
        if not _hands_on(node, source):
            return False
        return work.bypass(node, source)


def _hands_on(node: Node, source: Output) -> bool:
    return not source.dtype.is_ref and node.device in ("", source.node.device)


def _bypass_many(work: Rewriting, node: Node) -> bool:
    """Bypass the outputs of an IdentityN, whose users then wait for one input instead of all."""
    if work.is_fed(node) or node.control_inputs or work.waiting(node):
        return False
    if not all(
        work.is_idle_wait(source, node) for source, _ in node.inputs
    ):  # one dead input, and all outputs are dead
        return False
    moved = 0
    for index, source in enumerate(node.inputs):
        if _hands_on(node, source):
            moved += work.redirect(Output(node, index), source)
    return bool(moved)


def _join(work: Rewriting, node: Node) -> bool:
    """Have whoever waits for a NoOp wait for what it waits for, where that makes no more edges."""
    waiting = work.waiting(node)
    if work.is_kept(node) or node.device or any(user.op in CONTROL_FLOW_OPS for user in waiting):
        return False
    before, after = len(node.control_inputs), len(waiting)
    if not after or before * after > before + after:
        return False
    return bool(work.redirect_controls(node, node.control_inputs))
