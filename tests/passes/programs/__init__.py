"""Random programs for passes: control flow of both kinds, functions, state in a fixed order, many types.

A program is made of a list of small tuples of numbers, its pieces, so that a failing one can be made smaller by taking
pieces away. Everything with an effect waits for the effect before it, so that a step computes the same however its
nodes are spread over threads and devices; nothing fails when it runs.
"""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tests.passes.programs import flow, functions, numbers, state  # noqa: F401 -- the order of the table of pieces
from tests.passes.programs.builder import KINDS, TINY, Builder, Piece
from tests.tolerance import SMALLEST
from toolkit import client as gm
from toolkit.graph import dtypes
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, MERGE_OPS, SWITCH_OPS
from toolkit.graph.shape import Shape

ops = gm.ops
_WRITES = frozenset({"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "QueueEnqueueV2", "Assert"})


class Program:
    """A random program.

    Attributes:
        graph: of the client.
        fetches: names of tensors of every kind, some of them in the middle, and the variables at the end.
        targets: operations without results.
        feeds: of the placeholders, and in some programs of a tensor in the middle.
        initializers: operations to be run first.
    """

    def __init__(
        self,
        pieces: list[Piece],
        *,
        fed: int | None = None,
        count: int = 2,
        flag: bool = True,
        odd: bool = False,
        subnormal: bool = True,
    ):
        """Args:
        fed: which tensor in the middle is fed.
        count, flag: what two placeholders are fed.
        odd: what is fed has infinities, NaN and zeros of both signs.
        subnormal: there may be numbers that are too small for all digits among what is fed and in constants. Whether
            TensorFlow takes them as zero depends on the thread that computes.
        """
        rng = np.random.default_rng(len(pieces))
        floats = rng.normal(size=(2, 2, 3)).astype(np.float32)
        if odd:
            floats[0, 0, :2] = np.inf, np.nan
            floats[1, 1] = -0.0, 0.0, TINY if subnormal else SMALLEST
        with gm.Graph().as_default() as self.graph:
            pools: dict[str, list[Any]] = {kind: [] for kind in KINDS}
            self.feeds: dict[str, Any] = {}

            def given(name: str, kind: str, value: Any) -> Any:
                tensor = gm.placeholder(*KINDS[kind], name=name)
                pools[kind].append(tensor)
                self.feeds[tensor.name] = value
                return tensor

            given("x", "float", floats[0])
            given("y", "float", floats[1])
            given("u", "rows", rng.normal(size=(4, 3)).astype(np.float32))
            given("d", "double", rng.normal(size=(2, 3)))
            count_tensor = given("count", "int", np.int32(count))
            given("k", "long", np.int64([3, -1, 12]))
            given("flag", "bool", np.bool_(flag))
            given("s", "text", np.array([b"banana", b"ab"], object))
            pools["float"].append(gm.constant(np.float32([[1, -2, 3], [0.5, 0, 4]])))
            pools["int"].append(gm.constant(3))
            b = Builder(pools, [], None, {"count": count_tensor}, subnormal=subnormal)
            variables = [
                gm.get_variable(
                    f"v{n}", [2, 3], use_resource=n < 2, initializer=gm.initializers.Constant(floats[1] + n)
                )
                for n in range(4)
            ]
            b.cells, b.references = [each.handle for each in variables[:2]], variables[2:]
            b.table = ops.hash_table_v2(key_dtype=dtypes.string, value_dtype=dtypes.int64, shared_name="words")
            filled = ops.lookup_table_import_v2(b.table, ["ab", "banana", "AB"], gm.constant([1, 2, 3], dtypes.int64))
            types, shapes = [dtypes.float32, dtypes.string], [Shape([2, 3]), Shape([2])]
            b.queues = [[ops.fifo_queue_v2(component_types=types, shapes=shapes, shared_name="q"), 0]]
            for piece in pieces:
                b.add(piece)
            last = [b.effect(lambda each=each: each.read_value() * 1.0) for each in variables]
            self.initializers = [*(each.initializer.name for each in variables), filled.name]
            made = [t for kind in KINDS for t in b.pools[kind] if t.op.type not in ("Placeholder", "Const")]
            step = max(1, len(made) // 8)
            chosen = [*made[::step], *made[-2:], *last]
            self.fetches = list(dict.fromkeys(tensor.name for tensor in chosen))
            flows = _in_flows(self.graph.core) | set(self.initializers)
            writes = [op.name for op in self.graph.get_operations() if op.type in _WRITES]
            self.targets = [name for name in writes if name not in flows][:3]
            floats_made = [t for t in b.pools["float"][3:] if t.op.node.name not in flows and t.shape.is_fully_defined]
            if fed is not None and floats_made:
                tensor = floats_made[fed % len(floats_made)]
                self.feeds[tensor.name] = rng.normal(size=tensor.shape.as_list()).astype(np.float32)


def _in_flows(core: Any) -> set[str]:
    """Nodes inside of branches and loops: what does not run has no value and cannot be asked for."""
    depth: dict[Any, int] = {}
    found: set[str] = set()
    for node in core.topological_order():
        sources = [*(source for source, _ in node.inputs), *node.control_inputs]
        level = max((depth.get(source, 0) for source in sources), default=0)
        level += node.op in SWITCH_OPS or node.op in ENTER_OPS
        if level:
            found.add(node.name)
        depth[node] = max(level - (node.op in MERGE_OPS or node.op in EXIT_OPS), 0)
    return found


def pieces_of(seed: int, count: int) -> list[Piece]:
    """Pieces by chance."""
    rng = random.Random(seed)
    return [
        (rng.randrange(10**6), rng.randrange(1000), rng.randrange(1000), rng.randrange(10**5)) for _ in range(count)
    ]
