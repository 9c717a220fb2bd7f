"""Tables of mostly zeros looked up by key instead of by row, as the Graph Transform Tool's sparsify_gather did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_READS = frozenset({"Identity", "ReadVariableOp"})


@dataclass(frozen=True)
class SparsifyGather(Optimization):
    """Keep of the weights that rows are gathered from only those that are not 0, in a hash table.

    The weights are float32 of the shape [N] or [N, 1], in a constant or in a variable whose values a checkpoint has. A
    key that is no row gives 0, where Gather fails. The tables are filled by an operation that has to run before the
    first step, as `NAME` in `graphmill run --target`; models with collections name it among what initialises them.

    The report has `sparsified`, by node how many numbers there were and how many are left, and `initializers`.

    Attributes:
        input_checkpoint: the values of variables; without it, constants alone are taken.
        group_init_node: the operation that fills the tables; one of that name waits for that too.
    """

    name: ClassVar[str] = "sparsify_gather"
    in_functions: ClassVar[bool] = False

    input_checkpoint: str = ""
    group_init_node: str = "group_deps"

    def __post_init__(self) -> None:
        if not self.group_init_node:
            raise UsageError("group_init_node is empty; expected the name of the operation that fills the tables")

    def apply(self, graph: Graph) -> PassResult:
        """
        Raises:
            UsageError: the checkpoint cannot be read; the initialiser depends on what would be looked up.
        """
        work = Subgraphs(graph, self.kept)
        weights = _Weights(work, self.input_checkpoint)
        tables: dict[Node, Node] = {}
        fills: list[Node] = []
        counts: dict[str, list[int]] = {}
        for node in work.each("Gather", "GatherV2", "ResourceGather"):
            source = None if work.is_fed(node) else weights.source(node)
            values = None if source is None else weights.values(source)
            if source is None or values is None:
                continue
            if source not in tables:
                tables[source], fill = _table(work, source, values)
                fills.append(fill)
            _look_up(work, node, tables[source], values.ndim)
            counts[node.name] = [values.size, int((values != 0).sum())]
        if not counts:
            return work.result({"sparsified": {}, "initializers": []})
        group = work.graph.get(self.group_init_node)
        if group is None:
            work.add("NoOp", self.group_init_node, control_inputs=fills)
        else:
            work.wait(group, fills)
        return work.result({"sparsified": counts, "initializers": [self.group_init_node]})


class _Weights:
    """What rows are gathered from."""

    def __init__(self, work: Subgraphs, checkpoint: str):
        self.work = work
        self._read: Any = None
        if checkpoint:
            from toolkit.errors import about_option
            from toolkit.formats.bundle import open_checkpoint
            from toolkit.formats.models.model import from_graph
            from toolkit.formats.models.variable_values import VariableValues

            with about_option("--passes"):
                self._read = VariableValues(from_graph(work.original), open_checkpoint(checkpoint))

    def source(self, node: Node) -> Node | None:
        """The constant or the variable of a gather along the first dimension, outside of loops and branches."""
        if node.op == "GatherV2":
            axis = self.work.array(node.inputs[2])
            if axis is None or axis.size != 1 or axis.reshape(()) != 0 or node.attr("batch_dims") != 0:
                return None
        elif node.op == "ResourceGather" and node.attr("batch_dims") != 0:
            return None
        source = node.inputs[0].node
        while source.op in _READS and not self.work.is_fed(source) and source.inputs:
            source = source.inputs[0].node
        known = source.op == "Const" or (source.op in _VARIABLES and self._read is not None)
        if not known or self.work.is_fed(source) or not self.work.is_plain(source):
            return None
        return source if node.output_types[0] is dtypes.float32 else None

    def values(self, source: Node) -> Any:
        """Its numbers; None where they are no column.

        Raises:
            UsageError: the checkpoint lacks the variable.
        """
        found = (
            self.work.array(source.output())
            if source.op == "Const"
            else self._read.read(self.work.original.node(source.name))
        )
        return found if found is not None and (found.ndim == 1 or (found.ndim == 2 and found.shape[1] == 1)) else None


def _table(work: Subgraphs, source: Node, values: Any) -> tuple[Node, Node]:
    """A hash table of the numbers that are not 0, and what fills it."""
    import numpy as np

    flat = values.reshape(-1)
    keys = np.flatnonzero(flat).astype(np.int64)
    if not keys.size:
        keys = np.zeros(1, np.int64)  # a table cannot be filled with nothing
    numbers = flat[keys] if flat.size else np.zeros(1, np.float32)
    name, device = source.name, source.device
    attrs: dict[str, Any] = {"key_dtype": dtypes.int64, "value_dtype": dtypes.float32}
    shared = work.graph.unique_name(f"{name}/HashTable")
    table = work.add("HashTableV2", shared, attrs=attrs | {"shared_name": shared}, device=device)
    parts = [work.add_constant(f"{name}/{what}", array) for what, array in (("indices", keys), ("values", numbers))]
    for part in parts:
        part.device = device
    fill = work.add(
        "InitializeTableV2", f"{name}/InitializeTable", [table.output(), *(part.output() for part in parts)],
        attrs={"Tkey": dtypes.int64, "Tval": dtypes.float32}, device=device,
    )  # fmt: skip
    return table, fill


def _look_up(work: Subgraphs, node: Node, table: Node, rank: int) -> None:
    import numpy as np

    keys: Output = node.inputs[1]
    default = work.add_constant(f"{node.name}/Const", np.float32(0), [])
    default.device = node.device
    if keys.dtype.base is not dtypes.int64:
        attrs = {"SrcT": keys.dtype.base, "DstT": dtypes.int64}
        keys = work.add("Cast", f"{node.name}/keys", [keys], attrs=attrs, device=node.device).output()
    inputs = [table.output(), keys, default.output()]
    types = {"Tin": dtypes.int64, "Tout": dtypes.float32}
    if rank == 1:
        work.make(node, "LookupTableFindV2", inputs, types)
        return
    found = work.add("LookupTableFindV2", f"{node.name}/LookupTableFind", inputs, attrs=types, device=node.device)
    axis = work.add_constant(f"{node.name}/ExpandDims/Const", np.int32(-1), [])
    axis.device = node.device
    work.make(node, "ExpandDims", [found.output(), axis.output()], {"T": dtypes.float32, "Tdim": dtypes.int32})
