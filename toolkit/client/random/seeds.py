"""Graph seeds and op seeds (TensorFlow's random_seed.get_seed)."""

from __future__ import annotations

from toolkit.client.construction.context import get_default_graph

DEFAULT_GRAPH_SEED = 87654321
_LIMIT = 2**31 - 1


def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph."""
    get_default_graph().seed = seed


def get_seed(op_seed: int | None) -> tuple[int, int]:
    """The attributes `seed` and `seed2` of a random op.

    (0, 0) asks the kernel for a seed of its own. With a graph seed, the n-th op without a seed gets n, so that
    the same program draws the same numbers.
    """
    graph = get_default_graph()
    if graph.seed is None:
        if op_seed is None:
            return 0, 0
        pair = DEFAULT_GRAPH_SEED, op_seed % _LIMIT
    else:
        if op_seed is None:
            op_seed = graph.next_op_seed()
        pair = graph.seed % _LIMIT, op_seed % _LIMIT
    return (0, _LIMIT) if pair == (0, 0) else pair
