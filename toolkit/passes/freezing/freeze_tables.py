"""Tables of a frozen graph, with what fills them.

A table is a resource: no constant can stand in its place, and a GraphDef has no place for "run this first". What fills
a table goes into the graph as constants, the lines of asset files included, behind one operation that is run once
before anything else.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.formats.arrays import tensor
from toolkit.formats.models.checkpoint_graph import ancestors
from toolkit.formats.models.model import Model
from toolkit.formats.models.savedmodel import asset_path
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_input
from toolkit.passes.models.surroundings import table_initialisers
from toolkit.passes.optimize.arithmetic.fold_constants import FoldConstants
from toolkit.passes.optimize.kept import Kept

#: the operation that fills all tables of a frozen graph
INITIALIZER = "init_all_tables"
_TEXT_FILE = frozenset({"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"})
#: what fills a table; its first input
FILLING = _TEXT_FILE | {"InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2"}
#: the form of each that takes a resource, not a reference
_PASSES_ON = frozenset({"Identity", "StopGradient"})
#: calls within calls that are followed
_DEPTH = 50


@dataclass(slots=True)
class Tables:
    """A graph with its tables' contents.

    Attributes:
        initializer: the operation that fills them; None where there are none.
        filled: node of each table to the op that fills it.
        unfilled: tables whose contents could not be made constants.
    """

    graph: Graph
    initializer: str | None = None
    filled: dict[str, str] = field(default_factory=dict[str, str])
    unfilled: list[str] = field(default_factory=list[str])


def carry_tables(model: Model, graph: Graph) -> Tables:
    """Add what fills the tables of a graph that was cut out of a model's.

    Raises:
        RefusedError: an asset that fills a table lies outside of the model's own files.
    """
    out = Tables(graph)
    wanted = {node.name for node in graph if is_table(node)}
    if not wanted:
        return out
    roots = [model.graph.node(name) for name in table_initialisers(model.meta)]
    fills: list[Node] = []
    search = _Search(model, ancestors(roots))
    for fill in search.fills(search.graph, [], 0):
        if fill.table not in wanted:
            continue
        made = search.add(fill, graph, graph.node(fill.table))
        if made is not None:
            fills.append(made)
            out.filled[fill.table] = fill.node.op
    if fills:
        out.initializer = graph.unique_name(INITIALIZER)
        graph.add("NoOp", out.initializer, control_inputs=fills)
    out.unfilled = sorted(wanted - out.filled.keys())
    return out


def asset_variables(model: Model) -> dict[str, str]:
    """The variables that initialisation gives the path of an asset, with that path."""
    assets = _assets(model)
    return {
        node.inputs[0].node.name: assets[node.inputs[1].node.name]
        for node in model.graph
        if node.op in ("Assign", "AssignVariableOp") and node.inputs[1].node.name in assets
    }


def _assets(model: Model) -> dict[str, str]:
    """The path of each asset by the node that stands for it."""
    if model.folder is None:
        return {}
    folder = Path(os.path.realpath(model.folder))
    return {
        parse_input(item.tensor_info.name).node: str(asset_path(folder, item.filename)) for item in model.meta.assets
    }


def is_table(node: Node) -> bool:
    """Whether a node is a table: something to be filled before it is looked up."""
    return "HashTable" in node.op and not node.inputs and node.num_outputs == 1


@dataclass(slots=True)
class _Fill:
    """An operation that fills a table.

    Attributes:
        table: the node of the table in the model's graph.
        node: the operation, perhaps of a function's body.
        values: what it takes besides the table: arrays, or the path of an asset.
    """

    table: str
    node: Node
    values: list[Any]


class _Search:
    """Attributes:
    graph: what runs to fill tables; what follows from constants alone (ids that count lines, say) is computed.
    """

    def __init__(self, model: Model, needed: Collection[Node]):
        self._model = model
        self._assets = _assets(model)
        self._variables = asset_variables(model)
        part = model.graph.subgraph(needed)
        paths = frozenset(name for name in self._assets if name in part)  # stay what they are, not the texts they hold
        known = sum(node.attr("value").ByteSize() for node in part if node.op == "Const")
        # a key takes two bytes of a message or more, what it stands for eight at most
        fold = FoldConstants(kept=Kept(paths, paths), max_bytes=4 * known)
        self.graph = fold.apply(part).graph

    def fills(self, graph: Graph, given: list[Any], depth: int) -> Iterator[_Fill]:
        """The operations that fill tables, calls followed.

        Args:
            given: the arguments, of a function's body.
        """
        for node in graph.nodes:
            if node.op in FILLING:
                table, *values = [self._known(output, given) for output in node.inputs]
                if isinstance(table, Node) and all(value is not None for value in values):
                    yield _Fill(table.name, node, values)
            ref = node.attr_or("f", None)
            if not isinstance(ref, FuncRef) or ref.name not in graph.library or depth >= _DEPTH:
                continue
            body = instantiate(graph.library, ref)
            arguments = [self._known(output, given) for output in node.inputs]
            yield from self.fills(body.graph, arguments, depth + 1)

    def _known(self, output: Output, given: list[Any]) -> Any:
        """What a tensor is before anything runs: a table's node, an asset's path, an array, or None."""
        node = output.node
        seen: set[int] = set()
        while node.op in _PASSES_ON and node.id not in seen:
            seen.add(node.id)
            node = node.inputs[0].node
        if node.op == "_Arg":
            index = node.attr("index")
            return given[index] if index < len(given) else None
        if node.graph is self.graph:
            if node.op == "ReadVariableOp" and node.inputs[0].node.name in self._variables:
                return self._variables[node.inputs[0].node.name]
            if node.name in self._assets:
                return self._assets[node.name]
        if node.op == "Const":
            return tensor.to_array(node.attr("value"))
        return node if is_table(node) else None

    def add(self, fill: _Fill, graph: Graph, table: Node) -> Node | None:
        """The operation that fills a table with constants."""
        is_ref = table.output_types[0].is_ref
        keys, values = self._contents(fill, table) if fill.node.op in _TEXT_FILE else fill.values
        types = {"keys": table.attr("key_dtype"), "values": table.attr("value_dtype")}
        inputs = [table.output()]
        for (name, dtype), array in zip(types.items(), (keys, values), strict=True):
            attrs = {"dtype": dtype, "value": tensor.from_array(array, dtype)}
            constant = graph.add("Const", graph.unique_name(f"{table.name}/{name}"), attrs=attrs, device=table.device)
            inputs.append(constant.output())
        if fill.node.op.startswith("LookupTableImport"):
            op, kinds = "LookupTableImport", {"Tin": types["keys"], "Tout": types["values"]}
        else:
            op, kinds = "InitializeTable", {"Tkey": types["keys"], "Tval": types["values"]}
        name = graph.unique_name(f"{table.name}/fill")
        return graph.add(op if is_ref else f"{op}V2", name, inputs, attrs=kinds, device=table.device)

    def _contents(self, fill: _Fill, table: Node) -> tuple[Any, Any]:
        """The keys and values that the lines of a file are."""
        from toolkit.kernels.resources.tables import LookupTable, pairs_from_file
        from toolkit.policy.access import Access, Files
        from toolkit.policy.rules import Policy

        node, path = fill.node, fill.values[0]
        if not isinstance(path, str):
            path = path.item().decode()
        files = Files(Access(Policy.of_model(self._model.folder or self._model.source)), node.name, node.op)
        held = LookupTable(table.attr("key_dtype"), table.attr("value_dtype"), fixed=True)
        columns = node.attr("key_index"), node.attr("value_index"), node.text("delimiter")
        try:
            held.initialize(pairs_from_file(files, path, held, *columns, node.attr("vocab_size"), node.attr("offset")))
        except GraphmillError as error:
            raise error.at(node=node.name) from None
        return held.export()
