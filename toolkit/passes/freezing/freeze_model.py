"""Freezing a whole model: what its signatures or fetches need, without the variables that only they knew.

`passes.freezing.freeze` does the graph; this is what stands around it: the subgraph, the checkpoint, tables with what
fills them, signatures, saver and objects.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import UsageError, about_option, did_you_mean
from toolkit.formats.arrays import tensor
from toolkit.formats.bundle.patterns import matcher
from toolkit.formats.bundle.source import TensorSource
from toolkit.formats.models.model import Model
from toolkit.formats.models.variable_values import VariableValues
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node
from toolkit.graph.summary import VARIABLES
from toolkit.passes.base import run_pass
from toolkit.passes.freezing.freeze import Freeze
from toolkit.passes.freezing.freeze_tables import asset_variables, carry_tables
from toolkit.passes.freezing.saver_nodes import Saved, add_saver
from toolkit.passes.models.surroundings import shrink, table_initialisers, without_objects
from toolkit.passes.pruning.prune import Prune

#: what only makes, fills and keeps variables, which are gone
_LIFE_OF_VARIABLES = (
    GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.MODEL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES, GraphKeys.INIT_OP, GraphKeys.READY_OP, GraphKeys.READY_FOR_LOCAL_INIT_OP,
    GraphKeys.SAVERS, GraphKeys.TRAIN_OP, GraphKeys.GLOBAL_STEP,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FreezeRequest:
    """What to freeze of a model.

    Attributes:
        fetches, feeds: tensors; what computes the fetches is kept.
        keep: patterns of variables that stay.
        only: patterns of the variables that become constants; none means all.
        surroundings: keep signatures, collections and initialisers, for a MetaGraph or a SavedModel.
    """

    fetches: tuple[str, ...]
    feeds: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    surroundings: bool = False


class _Values:
    """The variables that are chosen, with their values in a checkpoint."""

    def __init__(self, request: FreezeRequest, model: Model, source: TensorSource | None, assets: dict[str, str]):
        self.assets = assets
        self._stays = assets.keys() if request.surroundings else set[str]()
        self._keep = matcher(request.keep)
        self._only = matcher(request.only) if request.only else None
        self._values = None if source is None else VariableValues(model, source)
        self._checkpoint = source
        self._source = model.source

    def holds(self, name: str) -> bool:
        return name not in self._stays and not self._keep(name) and (self._only is None or self._only(name))

    def value(self, node: Node) -> TensorProto:
        if node.name in self.assets:
            return tensor.from_array(self.assets[node.name].encode())
        if self._values is None:
            raise UsageError(
                f"the variable '{node.name}' has no value here, for there is no checkpoint beside the graph; "
                "give one with --checkpoint PREFIX",
                file=self._source or None,
            )
        return self._values.proto(node)

    def with_saver(self, meta: MetaGraph, names: Collection[str]) -> MetaGraph:
        """The MetaGraph with a saver for the variables that stay and have values."""
        entries: list[Saved] = []
        for node in meta.graph:
            found = self._values.key(node) if self._values is not None and node.name in names else None
            if found is not None and self._checkpoint is not None:
                entries.append(Saved(node, found[0], self._checkpoint.entry(found[0]).dims, found[1]))
        return replace(meta, saver=add_saver(meta.graph, entries)) if entries else meta


def freeze_model(model: Model, source: TensorSource | None, request: FreezeRequest) -> tuple[Model, dict[str, Any]]:
    """The model with constants in the place of its variables, and a report.

    The report has `nodes_before`, `nodes_after`, `variables`, `kept`, `functions` (see `Freeze`), `tables` (node of
    each table to what fills it) and `initializer` (the operation that does so, or None), and what `shrink` says.

    Args:
        source: the checkpoint, or None where there is none.

    Raises:
        UsageError: a pattern matches no variable; there is no checkpoint and something needs one.
        GraphError: something that is needed writes a variable.
    """
    meta = model.meta
    _check_patterns(meta, request)
    targets = tuple(table_initialisers(meta)) if request.surroundings else ()
    pruned = run_pass(Prune(request.feeds, request.fetches, targets), meta.graph).graph
    values = _Values(request, model, source, asset_variables(model))
    result = run_pass(Freeze(values), pruned)
    graph, report = result.graph, dict(result.report)
    report["kept"] = [name for name in report["kept"] if name not in values.assets or not request.surroundings]
    report |= {"nodes_before": len(meta.graph), "tables": {}, "initializer": None}
    if not request.surroundings:
        tables = carry_tables(model, graph)
        report |= {"tables": tables.filled, "initializer": tables.initializer, "unfilled": tables.unfilled}
        graph = tables.graph
    report["nodes_after"] = len(graph)
    report["asset_paths"] = {name: values.assets[name] for name in report["variables"] if name in values.assets}
    smaller, dropped = shrink(_without_life(meta, result.modified), graph)
    if result.modified and request.surroundings:
        smaller = values.with_saver(smaller, report["kept"])
    made = replace(model.with_meta(smaller), checkpoint=None if report["kept"] else "")
    return made if request.surroundings else replace(made, folder=None), {**dropped, **report}


def _check_patterns(meta: MetaGraph, request: FreezeRequest) -> None:
    library = meta.graph.library
    names = [node.name for node in meta.graph if node.op in VARIABLES]
    names += [node.name for f in library for node in library.function(f).node_def if node.op in VARIABLES]
    for option, patterns in (("--keep-variables", request.keep), ("--only", request.only)):
        with about_option(option):
            for pattern in patterns:
                test = matcher([pattern])
                if not any(map(test, names)):
                    raise UsageError(f"no variable matches '{pattern}'{did_you_mean(pattern, names)}")


def _without_life(meta: MetaGraph, is_frozen: bool) -> MetaGraph:
    """The surroundings without what speaks of variables, their saver and the objects of 2.x."""
    if not is_frozen:
        return meta
    collections = {key: values for key, values in meta.collections.items() if key not in _LIFE_OF_VARIABLES}
    return replace(without_objects(meta), saver=None, collections=collections)
