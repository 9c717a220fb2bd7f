"""python -m tests.bench.split: steps that are split over devices or tasks, beside the same graph in one piece.

Each model runs whole, over two CPU devices, over two tasks with a worker each, and over two devices node by node (what
the dataflow executor takes). Variables are on the first device, everything else on the second; what has none is cut in
two stages. All are sessions of one process, and their steps are timed in turns: a row has the median step, and the
median of its ratios to the whole graph's of the same turn, by the clock and by the processor's time, in which other
programs of the machine count less.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.workloads import networks, rnn, training
from tests.bench.workloads.base import Workload
from tests.models import ROOT
from toolkit.formats.models.model import read_model
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.passes.placement.place import Place
from toolkit.runtime.devices import make_device
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.graphs import core_graph

BATCH = 64


@dataclass(frozen=True)
class Model:
    """A graph with what to run.

    Attributes:
        fetches: of a step.
        init: what is run first; "" for nothing.
        stages: it has no variables: it is cut in two.
    """

    graph: Graph
    fetches: list[str]
    feeds: dict[str, Any]
    init: str = ""
    stages: bool = False


def digits() -> Model:
    """A training step of the quickstart's network."""
    from toolkit.client.spec import build_spec

    data = np.load(ROOT / "samples" / "digits.npz")
    graph = core_graph(build_spec(str(ROOT / "samples" / "digits_cnn.yaml"), {}, []))
    feeds = {"x:0": data["x_train"][:BATCH], "y:0": data["y_train"][:BATCH]}
    return Model(graph, ["loss:0", "train:0"], feeds, "init")


def of_workload(workload: Workload) -> Model:
    """A model of the benchmark."""
    built = workload.model()
    info = built.info
    inputs = info.get("inputs") or {"image": built.input}
    feeds = {inputs[label]: value for label, value in workload.feeds(np.random.default_rng(1)).items()}
    fetches = [*info["outputs"].values(), *([info["train"]] if "train" in info else [])]
    graph = core_graph(read_model(str(built.path)))
    return Model(graph, fetches, feeds, info.get("init", ""), stages="train" not in info)


MODELS: dict[str, Callable[[], Model]] = {
    "digits CNN training": digits,
    "ResNet-50": lambda: of_workload(networks.workloads()[0]),
    "LSTM": lambda: of_workload(rnn.workloads()[0]),
    "LSTM training": lambda: of_workload(next(each for each in training.workloads() if "LSTM" in each.name)),
}


def placed(model: Model, devices: list[DeviceSpec]) -> Graph:
    """The graph over two devices."""
    if model.stages:
        return Place(devices, strategy="stages", stages=2).apply(model.graph).graph
    graph = model.graph.copy()
    for node in graph:
        node.device = ""
    variables = {node.name for node in graph if node.op in ("VariableV2", "VarHandleOp", "Variable")}
    for node in graph:
        node.device = str(devices[0 if node.name in variables else 1])
    return Place(devices, allow_soft_placement=True).apply(graph).graph


def sessions(model: Model) -> dict[str, Session]:
    """The graph in each form, the whole one first."""
    near = [DeviceSpec("localhost", 0, 0, "CPU", number) for number in (0, 1)]
    far = [DeviceSpec("worker", 0, number, "CPU", 0) for number in (0, 1)]
    whole = model.graph.copy()
    for node in whole:
        node.device = ""
    made = {"whole": Session(whole)}
    for name, devices, tokens in (
        ("2 devices", near, False),
        ("2 tasks", far, False),
        ("2 devices, tokens", near, True),
    ):
        made[name] = Session(
            placed(model, devices), devices=[make_device(each) for each in devices], force_tokens=tokens
        )
    return made


def rows(name: str, turns: int, warm: int = 3) -> list[dict[str, Any]]:
    """A row for each form, in seconds."""
    model = MODELS[name]()
    running = sessions(model)
    found: dict[str, list[tuple[float, float]]] = {form: [] for form in running}
    for session in running.values():
        if model.init:
            session.run(model.init)
    for _ in range(warm + turns):
        for form, session in running.items():
            start, busy = time.perf_counter(), time.process_time()
            session.run(model.fetches, model.feeds)
            found[form].append((time.perf_counter() - start, time.process_time() - busy))
    whole = found["whole"][warm:]
    made: list[dict[str, Any]] = []
    for form, taken in found.items():
        pairs = list(zip(taken[warm:], whole, strict=True))
        made.append(
            {
                "model": name, "form": form,
                "seconds": statistics.median(mine[0] for mine, _ in pairs),
                "processor_seconds": statistics.median(mine[1] for mine, _ in pairs),
                "ratio": statistics.median(mine[0] / one[0] for mine, one in pairs),
                "processor_ratio": statistics.median(mine[1] / one[1] for mine, one in pairs),
            }
        )  # fmt: skip
    return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.split", description=__doc__)
    parser.add_argument("--only", help=f"a model: one of {', '.join(MODELS)}; or part of a name")
    parser.add_argument("--turns", type=int, default=40, help="timed steps of each form (default 40)")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    line = "{:20} {:18} {:>9} {:>12} {:>7} {:>15}"
    if not options.json:
        print(line.format("model", "form", "step ms", "processor ms", "ratio", "processor ratio"))
    for name in MODELS:
        if options.only and options.only.lower() not in name.lower():
            continue
        for row in rows(name, options.turns):
            if options.json:
                print(json.dumps(row))
                continue
            print(line.format(
                name, row["form"], f"{row['seconds'] * 1e3:.2f}", f"{row['processor_seconds'] * 1e3:.2f}",
                f"{row['ratio']:.2f}", f"{row['processor_ratio']:.2f}",
            ), flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
