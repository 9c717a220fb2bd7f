"""python -m tests.bench.placement: how far `place`'s estimate of a step is from the step that was placed.

Each model is measured (`run --measure`), placed on CPU devices of this machine by that (`place --costs`), and run as it
was placed (`run --repeat`), with each number of threads. A row has the estimate, the median and the fastest of the
measured steps, and how many times those the estimate is. A machine that does other things meanwhile shows in the
measured steps, not in the estimate.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.workloads import networks, rnn, training
from tests.bench.workloads.base import Workload

#: steps that are looked at, and steps that are timed
MEASURED, TIMED = 36, 30
STRATEGIES = {"greedy": ["--strategy", "greedy"], "2 stages": ["--stages", "2"]}
BATCH, WIDTH, DEPTH = 256, 512, 8


@dataclass(frozen=True)
class Model:
    """A file, and how it is run."""

    file: str
    arguments: list[str]
    initialise: bool = False


def branches(folder: Path, count: int) -> Model:
    """So many chains of products and tanh, side by side."""
    from tests.passes.graphs import F
    from toolkit.formats.arrays.tensor import from_array
    from toolkit.formats.models.model import from_graph, write_model
    from toolkit.graph.graph import Graph
    from toolkit.graph.shape import Shape

    rng = np.random.default_rng(1)
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([BATCH, WIDTH])})
    ends: list[Any] = []
    for branch in range(count):
        last = x
        for index in range(DEPTH):
            value = from_array((rng.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32))
            weight = graph.add("Const", f"branch{branch}/w{index}", attrs={"dtype": F, "value": value})
            last = graph.add("MatMul", f"branch{branch}/product{index}", [last, weight], attrs={"T": F})
            last = graph.add("Tanh", f"branch{branch}/tanh{index}", [last], attrs={"T": F})
        ends.append(last)
    graph.add("AddN", "y", ends, attrs={"T": F, "N": count})
    write_model(from_graph(graph), str(folder / "model.pb"))
    np.save(folder / "x.npy", rng.standard_normal((BATCH, WIDTH)).astype(np.float32))
    return Model(str(folder / "model.pb"), ["--feed", f"x={folder / 'x.npy'}", "--fetch", "y"])


def of_workload(folder: Path, workload: Workload) -> Model:
    """A model of the benchmark, with its feeds and fetches."""
    built = workload.model()
    info = built.info
    inputs = info.get("inputs") or {"image": built.input}
    arguments: list[str] = []
    for label, value in workload.feeds(np.random.default_rng(1)).items():
        np.save(folder / f"{label}.npy", value)
        arguments += ["--feed", f"{inputs[label].removesuffix(':0')}={folder / label}.npy"]
    for name in info["outputs"].values():
        arguments += ["--fetch", name]
    if "train" in info:
        arguments += ["--target", info["train"]]
    return Model(str(built.path), arguments, "train" in info)


def models(folder: Path, name: str) -> Model:
    """The model of that name."""
    match name.partition(" "):
        case ("branches", _, count):
            return branches(folder, int(count))
        case ("perceptron", _, _):
            return of_workload(folder, next(each for each in training.workloads() if "SGD" in each.name))
        case ("LSTM", _, _):
            return of_workload(folder, rnn.workloads()[0])
        case _:
            return of_workload(folder, networks.workloads()[0])


NAMES = ("branches 2", "branches 4", "perceptron training", "LSTM", "ResNet50")


def graphmill(*arguments: str) -> str:
    """What a command prints.

    Raises:
        RuntimeError: it failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "commands.main", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"graphmill {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def rows(name: str, threads: int, devices: int) -> list[dict[str, Any]]:
    """A row for each strategy: what `place` expects and what was measured, in seconds."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="graphmill-placement-") as scratch:
        folder = Path(scratch)
        model = models(folder, name)
        begin = ["--init"] if model.initialise else []
        (folder / "cluster.yaml").write_text(f"local: {{CPU: {devices}}}\n")
        costs, placed, report = (str(folder / each) for each in ("costs.json", "placed.pb", "report.json"))
        more = ["--threads", str(threads), *begin]
        graphmill("run", model.file, *model.arguments, *more, "--steps", str(MEASURED), "--measure", costs)
        for strategy, options in STRATEGIES.items():
            place = ["place", model.file, "--cluster", str(folder / "cluster.yaml"), "--costs", costs, *options]
            graphmill(*place, "--report", report, "-o", placed)
            expected = json.loads(Path(report).read_text())["simulated"]
            timed = ["--repeat", str(TIMED), "--warmup", "3", "--devices", f"CPU={devices}", "--stats", "json"]
            measured = json.loads(graphmill("run", placed, *model.arguments, *more, *timed))["step_ms"]
            found.append(
                {
                    "model": name, "threads": threads, "strategy": strategy,
                    "devices": sum(1 for row in expected["devices"].values() if row["busy_seconds"]),
                    "estimate_ms": expected["seconds"] * 1e3,
                    "median_ms": measured["median"], "min_ms": measured["min"],
                }
            )  # fmt: skip
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.placement", description=__doc__)
    parser.add_argument("--only", help=f"a model: one of {', '.join(NAMES)}; or part of a name")
    parser.add_argument("--devices", type=int, default=4, help="CPU devices (default 4)")
    parser.add_argument("--threads", type=int, action="append", help="of a kernel; repeatable (default 1)")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    line = "{:20} {:>7} {:10} {:>7} {:>12} {:>11} {:>9} {:>6} {:>7}"
    if not options.json:
        print(line.format(
            "model", "threads", "strategy", "devices", "estimate ms", "median ms", "min ms", "ratio", "to min"
        ))  # fmt: skip
    for name in NAMES:
        if options.only and options.only.lower() not in name.lower():
            continue
        for threads in options.threads or [1]:
            for row in rows(name, threads, options.devices):
                if options.json:
                    print(json.dumps(row))
                    continue
                estimate = row["estimate_ms"]
                print(line.format(
                    name, threads, row["strategy"], row["devices"], f"{estimate:.2f}", f"{row['median_ms']:.2f}",
                    f"{row['min_ms']:.2f}", f"{estimate / row['median_ms']:.2f}", f"{estimate / row['min_ms']:.2f}",
                ), flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
