"""Every stage between build and run, chosen by chance, with whatever options it has, on a program in the middle."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.graph_pb2 import GraphDef
from tests.passes.programs import Program
from toolkit.errors import GraphmillError
from toolkit.formats.arrays import tensor
from toolkit.formats.folders.partitions import as_stream, write_partitions
from toolkit.formats.models.model import Model, from_graph, from_meta_graph, read_model, write_model
from toolkit.formats.settings.placement_rules import PlacementRule
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import Node
from toolkit.passes.base import run_pass
from toolkit.passes.edit.apply import apply_edits
from toolkit.passes.edit.names import RenameNodes, RenameScope
from toolkit.passes.edit.table import Step
from toolkit.passes.freezing.freeze import Freeze
from toolkit.passes.freezing.unfreeze import Unfreeze
from toolkit.passes.optimize.kept import kept_by
from toolkit.passes.optimize.notation import parameters
from toolkit.passes.optimize.run import optimize
from toolkit.passes.optimize.table import TABLE, preset
from toolkit.passes.partitioning.partition import SEND_OPS, PartitionGraph
from toolkit.passes.placement.place import Place
from toolkit.passes.pruning.prune import Prune
from toolkit.runtime.devices import make_device
from toolkit.runtime.session import Session

#: passes that keep every bit and need no parameter; what one of them writes to the terminal is for people
EXACT = [
    name
    for name, row in TABLE.items()
    if row.exact
    and name != "insert_logging"
    and all(each.default is not MISSING for _, each in parameters(row.load()).values())
]
_STRATEGIES = ("default", "single", "round-robin", "round-robin", "greedy")
_SPLIT_AS = ("joined", "streamed", "folder")


@dataclass
class Stage:
    """A program between two stages.

    Attributes:
        graph: what became of the program's.
        feeds, fetches, targets, initializers: as the program's; under the names that they have now.
        devices: those that it is placed on; empty where it is not.
        values: tensors that are fed when the initializers run: values of variables that were constants.
        always: further targets of each step.
        log: what was done, for whoever reads of a failure.
    """

    graph: Graph
    feeds: dict[str, Any]
    fetches: list[str]
    targets: list[str]
    initializers: list[str]
    devices: list[DeviceSpec] = field(default_factory=list[DeviceSpec])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    always: list[str] = field(default_factory=list[str])
    log: list[str] = field(default_factory=list[str])

    @property
    def model(self) -> Model:
        return from_graph(self.graph)

    @property
    def everything(self) -> tuple[str, ...]:
        """All operations that somebody runs."""
        return (*self.targets, *self.initializers, *self.always)

    def with_graph(self, graph: Graph, what: str, **changes: Any) -> Stage:
        made = replace(self, graph=graph, log=[*self.log, what], **changes)
        made.feeds = {name: value for name, value in made.feeds.items() if name.partition(":")[0] in graph}
        return made


def start(program: Program) -> Stage:
    """Before any stage."""
    graph = Graph.from_proto(GraphDef.FromString(program.graph.as_graph_def().SerializeToString()))
    return Stage(graph, dict(program.feeds), list(program.fetches), list(program.targets), list(program.initializers))


def run(stage: Stage, steps: int = 2) -> list[Any]:
    """What step after step computes, by the kernels that define the ops."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHMILL_SEGMENTS", "off")
        patch.setenv("GRAPHMILL_ONEDNN", "off")
        devices = [make_device(each) for each in stage.devices] or None
        with Session(stage.graph.copy(), devices=devices) as session:
            session.run([*stage.initializers, *stage.always], {**stage.feeds, **stage.values})
            found: list[Any] = []
            for _ in range(steps):
                found += session.run([stage.fetches, [*stage.targets, *stage.always]], stage.feeds)[0]
    return found


def assert_same(names: Sequence[str], before: Sequence[Any], after: Sequence[Any]) -> None:
    """Bit for bit but for NaN, of which there are many."""
    assert len(before) == len(after)
    for name, old, new in zip([*names, *names], map(np.asarray, before), map(np.asarray, after), strict=True):
        assert old.shape == new.shape and old.dtype == new.dtype, name
        np.testing.assert_array_equal(new, old, name)
        if old.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(new) & ~np.isnan(new), np.signbit(old) & ~np.isnan(old), name)


# -- stages ------------------------------------------------------------------------------------------------------


def _optimized(stage: Stage, rng: random.Random) -> Stage:
    if rng.random() < 0.4:
        name = rng.choice(("size", "training", "canonical"))
        passes, what = preset(name), f"optimize {name}"
    else:
        names = [rng.choice(EXACT) for _ in range(rng.randint(1, 4))]
        passes, what = [TABLE[name].load()() for name in names], f"optimize {','.join(names)}"
    kept = kept_by(MetaGraph(stage.graph), [*stage.feeds, *stage.values], stage.fetches, stage.everything)
    return stage.with_graph(optimize(stage.graph, passes, kept).graph, what)


def _devices(rng: random.Random) -> list[DeviceSpec]:
    tasks = rng.choice((1, 1, 2))
    job = "localhost" if tasks == 1 else "worker"
    return [DeviceSpec(job, 0, task, "CPU", n) for task in range(tasks) for n in range(rng.randint(1, 4 // tasks))]


def _assert_calls_can_be_placed(stage: Stage, graph: Graph, devices: list[DeviceSpec]) -> None:
    """Raise GraphmillError where rules keep resources apart that one node in the body of a function takes.

    Placement looks at calls from outside, as TensorFlow's does; what cannot be placed inside shows when
    they are inlined.
    """
    kept = kept_by(MetaGraph(graph), [*stage.feeds, *stage.values], stage.fetches, stage.everything)
    run_pass(Place(devices), optimize(graph, [TABLE["inline_functions"].load()()], kept).graph)


def _placed(stage: Stage, rng: random.Random) -> Stage:
    devices, strategy = stage.devices or _devices(rng), rng.choice(_STRATEGIES)
    rules = tuple(
        PlacementRule(node.name, False, str(rng.choice(devices)), "")
        for node in rng.sample(stage.graph.nodes, min(len(stage.graph), rng.choice((0, 0, 2, 6))))
    )
    what = f"place {strategy} {[str(each) for each in devices]}"
    try:
        done = run_pass(Place(devices, strategy=strategy, rules=rules), stage.graph)
        if rules:
            _assert_calls_can_be_placed(stage, done.graph, devices)
            what += f" rules {[(rule.pattern, rule.device) for rule in rules]}"
    except GraphmillError:  # what must be together, in the graph or in a call, was sent to different devices
        if not rules:
            raise
        done = run_pass(Place(devices, strategy=strategy), stage.graph)
    return stage.with_graph(done.graph, what, devices=devices)


def _partitioned(stage: Stage, rng: random.Random) -> Stage:
    if not stage.devices or any(node.op in SEND_OPS for node in stage.graph):
        return stage
    stage = _placed(stage, rng) if any(not node.device for node in stage.graph) else stage
    options = PartitionGraph(rng.choice(("device", "task")), share_controls=rng.random() < 0.5)
    how = rng.choice(_SPLIT_AS)
    parts = options.split(stage.graph).graphs
    what = f"partition by {options.by}, {how}, share_controls={options.share_controls}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parts"
        if how == "folder":
            write_partitions(str(path), parts, stage.model, options.by)
        else:
            model = as_stream(parts, stage.model, options.by)
            write_model(model, f"{path}.meta", "metagraph")
        source = str(path) if how == "folder" else f"{path}.meta"
        graph = read_model(source).graph
    return stage.with_graph(graph, what)


def _edited(stage: Stage, rng: random.Random) -> Stage:
    """Names changed, and changed back."""
    taken = {node.name for node in stage.graph}
    if rng.random() < 0.5 or "elsewhere" in taken:
        nodes = rng.sample(stage.graph.nodes, min(5, len(stage.graph)))
        there = [RenameNodes(node.name, f"elsewhere_{n}/x") for n, node in enumerate(nodes)]
        back = [RenameNodes(f"elsewhere_{n}/x", node.name) for n, node in enumerate(nodes)]
        what = f"rename {[node.name for node in nodes]} and back"
    else:
        there, back = [RenameScope("", "elsewhere")], [RenameScope("elsewhere", "")]
        what = "rename everything and back"
    moved = apply_edits(MetaGraph(stage.graph), [Step(edit) for edit in there]).meta
    return stage.with_graph(apply_edits(moved, [Step(edit) for edit in back]).meta.graph, what)


def _converted(stage: Stage, rng: random.Random) -> Stage:
    kind = rng.choice(("graphdef", "metagraph", "savedmodel"))
    encoding = rng.choice((".binary", ".text", ".json", ".split"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("model.cpb" if encoding == ".split" else "model.pb")
        model = from_meta_graph(MetaGraph(stage.graph), "")
        write_model(model, path, kind + encoding)
        return stage.with_graph(read_model(path).graph, f"convert {kind}{encoding}")


def _pruned(stage: Stage, rng: random.Random) -> Stage:
    asked = (*stage.fetches, *stage.values)
    done = run_pass(Prune(tuple(stage.feeds), asked, stage.everything), stage.graph)
    feeds = {done.report["feeds"].get(name, name): value for name, value in stage.feeds.items()}
    fetches = [done.report["fetches"].get(name, name) for name in stage.fetches]
    return stage.with_graph(done.graph, "prune", feeds=feeds, fetches=fetches)


@dataclass
class Initial:
    """Values of variables: those that their initializers would give them."""

    values: dict[str, Any]

    def holds(self, name: str) -> bool:
        return name in self.values

    def value(self, node: Node) -> Any:
        return tensor.from_array(self.values[node.name])


def _frozen(stage: Stage, rng: random.Random) -> Stage:
    """Variables that nothing writes are constants; some of them become variables again."""
    found = {}
    for name in stage.initializers:
        node = stage.graph.get(name)
        if node is not None and node.op in ("Assign", "AssignVariableOp") and node.inputs[1].node.op == "Const":
            found[node.inputs[0].node.name] = name, tensor.to_array(node.inputs[1].node.attr("value"))
    chosen = rng.sample(sorted(found), min(len(found), rng.randint(1, 4)))
    for name in chosen:
        initializer, value = found[name]
        initializers = [each for each in stage.initializers if each != initializer]
        rest = replace(stage, initializers=initializers)
        asked = (*stage.fetches, *stage.values)
        alone = run_pass(Prune((), asked, rest.everything), stage.graph).graph
        try:
            done = run_pass(Freeze(Initial({name: value})), alone)
        except GraphmillError:  # something writes it
            continue
        if done.report["variables"]:
            stage = rest.with_graph(done.graph, f"freeze {name}")
            if rng.random() < 0.5 and stage.graph.get(name) is not None:
                stage = _unfrozen(stage, name, rng)
    return stage


def _unfrozen(stage: Stage, name: str, rng: random.Random) -> Stage:
    if stage.graph.node(name).op != "Const":
        return stage
    thaw = Unfreeze(only=(name,), reference=rng.random() < 0.5)
    done = run_pass(thaw, stage.graph)
    if not thaw.made:
        return stage
    (made,) = thaw.made
    values = {**stage.values, made.initial.name: tensor.to_array(made.value)}
    initializers = [*stage.initializers, made.initializer.name]
    return stage.with_graph(done.graph, f"unfreeze {name}", values=values, initializers=initializers)


STAGES: dict[str, Callable[[Stage, random.Random], Stage]] = {
    "optimize": _optimized,
    "place": _placed,
    "partition": _partitioned,
    "edit": _edited,
    "convert": _converted,
    "prune": _pruned,
    "freeze": _frozen,
}


def through(stage: Stage, rng: random.Random, count: int) -> Stage:
    """So many stages, one after the other."""
    for _ in range(count):
        name = rng.choice(("optimize", "optimize", "optimize", "place", "partition", "partition", *STAGES))
        if name == "partition" and not stage.devices:
            stage = _placed(stage, rng)
        stage = STAGES[name](stage, rng)
    return stage
