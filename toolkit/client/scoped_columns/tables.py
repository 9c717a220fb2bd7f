"""The tables of columns: variables in the scopes that are open, shared by name, started from checkpoints."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.tensor import Tensor
from toolkit.client.scoped_columns.base import Lookup, ScopedColumn, inner_flatten
from toolkit.client.scoped_layers.embeddings import safe_embedding_lookup_sparse
from toolkit.client.train.warm_start import initialize_from_checkpoint
from toolkit.client.variables.model_variables import model_variable
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


def parts_of(variable: Any) -> list[Any]:
    """The parts of a variable that may be partitioned."""
    return list(getattr(variable, "parts", [variable]))


def start_from_checkpoint(checkpoint: tuple[str, str] | None, parts: list[Any]) -> None:
    """Let a table, or its parts, begin with a tensor of a checkpoint."""
    if checkpoint is not None:
        path, name = checkpoint
        initialize_from_checkpoint(path, {name: parts[0] if len(parts) == 1 else parts})


def embedded(column: ScopedColumn, lookup: Lookup, collections: Any, trainable: bool, output_rank: int = 2) -> Tensor:
    """Rows of the column's table, combined: [batch, dimension], or [batch, time, dimension] for rank 3."""
    ids = inner_flatten(lookup.ids, output_rank)
    weights = None if lookup.weights is None else inner_flatten(lookup.weights, output_rank)
    shape = [lookup.size, lookup.dimension]
    trainable = trainable and lookup.trainable
    if lookup.shared_name is None:
        table = _made("weights", shape, lookup.initializer, trainable, collections)
    else:
        table = _shared(lookup.shared_name, shape, lookup.initializer, trainable, collections)
    parts = parts_of(table)
    start_from_checkpoint(column.checkpoint, parts)
    return safe_embedding_lookup_sparse(
        parts, ids, weights, lookup.combiner, name=column.name + "weights", max_norm=lookup.max_norm
    )


def _made(name: str, shape: list[Any], initializer: Any, trainable: bool, collections: Any) -> Any:
    return model_variable(
        name, shape, dtypes.float32, initializer=initializer, trainable=trainable, collections=collections
    )


def _shared(name: str, shape: list[Any], initializer: Any, trainable: bool, collections: Any) -> Any:
    graph, key = get_default_graph(), f"SHARED_EMBEDDING_COLLECTION_{name.upper()}"
    there = graph.get_collection(key)
    if len(there) > 1:
        raise ValueError(f"the collection '{key}' holds {len(there)} variables; columns share one")
    if not there:
        table = _made(name, shape, initializer, trainable, collections)
        graph.add_to_collection(key, table)
        return table
    if there[0].static_shape != Shape(shape):
        raise ValueError(
            f"the shared table '{name}' is of shape {there[0].static_shape}; {Shape(shape)} is needed; give another "
            "shared_embedding_name"
        )
    return there[0]
