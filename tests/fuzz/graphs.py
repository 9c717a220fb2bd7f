"""Valid graphs with hostile details, run in every executor: the damage is in the graph, not in the file."""

from __future__ import annotations

import random
from collections.abc import Callable

from schemas import graph_pb2, meta_graph_pb2
from tests.fuzz import command_lines, graphs_mutate
from tests.fuzz.case import Case
from tests.fuzz.executors import LIMITS
from tests.fuzz.formats import RUNS, with_feeds
from tests.fuzz.seeds import CLUSTER, Files

_SEEDS = ("net", "loop", "calls", "meta", "training")


def cases(seeds: dict[str, Files]) -> Callable[[random.Random], Case]:
    """A maker of changed graphs: mostly run, at times given to the other commands."""

    def make(rng: random.Random) -> Case:
        seed = rng.choice(_SEEDS)
        data = seeds[seed]["model.pb"]
        if seed in ("meta", "training"):
            meta = meta_graph_pb2.MetaGraphDef.FromString(data)
            graphs_mutate.mutate(rng, meta.graph_def)
            data = meta.SerializeToString()
        else:
            data = graphs_mutate.mutate(rng, graph_pb2.GraphDef.FromString(data)).SerializeToString()
        feeds, fetch = RUNS[seed]
        if rng.random() < 0.6:
            line = ["run", "model.pb", *feeds, "--fetch", fetch, *LIMITS]
            return Case(
                "graphs", seed, with_feeds({"model.pb": data}, feeds), [line], executors=True, exact=seed != "training"
            )
        files = with_feeds({"model.pb": data}, feeds) | {
            "seed.pb": seeds["net"]["model.pb"],
            "cluster.yaml": CLUSTER.encode(),
        }
        return Case("graphs", seed, files, rng.sample(command_lines.of_model(rng, "model.pb", feeds, fetch), 4))

    return make
