"""The strategies that `place` knows, by name; what each is given, and how one is registered.

    from toolkit.passes.placement.strategies import PlacementTask, strategy

    @strategy("last", "everything that is free on the last device")
    def last(task: PlacementTask) -> list[Choice]: ...

A plugin registers its own in the same way (`--plugin FILE.py`). A strategy gives a device to every node, out of those
that `task.constraints` allows, and one device to the nodes of a group; both are looked at afterwards.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolkit.errors import GraphError, GraphmillError, UsageError, did_you_mean
from toolkit.formats.settings.cluster_speeds import Speeds
from toolkit.formats.settings.cost_file import MeasuredCosts
from toolkit.graph import plugins
from toolkit.graph.device import DeviceSpec
from toolkit.passes.placement.constraints import Choice, Constraints
from toolkit.passes.placement.costs import BATCH, NodeCosts
from toolkit.passes.placement.simulated_step import SimulatedStep
from toolkit.passes.placement.simulation import Simulator


@dataclass
class PlacementTask:
    """What a strategy works on.

    Attributes:
        speeds, measured, batch: what the costs come from.
        stages: how many pipeline stages are wanted; 0 where nobody says.
        facts: what a strategy has to tell, for the report.
    """

    constraints: Constraints
    speeds: Speeds
    measured: MeasuredCosts | None = None
    batch: int = BATCH
    stages: int = 0
    facts: dict[str, object] = field(default_factory=dict[str, object])
    #: steps without details, by their devices
    _simulated: dict[tuple[DeviceSpec, ...], SimulatedStep] = field(
        default_factory=dict[tuple[DeviceSpec, ...], SimulatedStep], repr=False
    )

    @functools.cached_property
    def costs(self) -> NodeCosts:
        return NodeCosts(self.constraints.graph, self.speeds, self.measured, self.batch)

    @functools.cached_property
    def floating(self) -> list[bool]:
        """By node id, whether a node is a weight or made of weights alone (`placement/floating`)."""
        from toolkit.passes.placement.floating import find_floating

        return find_floating(self.constraints, self.costs)

    @functools.cached_property
    def simulator(self) -> Simulator:
        return Simulator(self.constraints.graph, self.constraints.order, self.costs)

    def simulate(self, choices: Sequence[Choice], *, details: bool = True) -> SimulatedStep:
        """A step with these devices on paper.

        Args:
            details: list runs and transfers, and follow the memory where nothing bounds it.
        """
        devices = [choice.device for choice in choices]
        key = tuple(devices)
        known = None if details else self._simulated.get(key)
        if known is not None:
            return known
        step = self.simulator.run(devices, details=details, memory=details or self.speeds.bounds_memory)
        compiled = self.measured.compiled if self.measured is not None else None
        parts = self.costs.takes_part
        if compiled is not None and self.costs.is_measured:
            used = {device for device, part in zip(devices, parts, strict=True) if part}
            if len(used) == 1 and (only := used.pop()).device_type == "CPU":
                step.seconds = step.busy[only] = compiled
        if not details:
            self._simulated[key] = step
        return step

    def overfull(self, step: SimulatedStep) -> list[str]:
        """The devices whose memory a step would not fit, a phrase each."""
        from toolkit.formats.inspection.report import bytes_text

        return [
            f"{device} would need {bytes_text(peak)} of its {bytes_text(int(self.speeds.of(device).memory))}"
            for device, peak in step.peak.items()
            if peak > self.speeds.of(device).memory
        ]


Strategy = Callable[[PlacementTask], list[Choice]]


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """A row of the table: what the strategy does, in a phrase, and where it is: a module of ours, or the function."""

    text: str
    module: str = ""
    function: Strategy | None = None


_ROOM = "toolkit.passes.placement."
_TABLE: dict[str, StrategyEntry] = {
    "default": StrategyEntry("the default task's first device, as TensorFlow's placer", _ROOM + "default"),
    "single": StrategyEntry("everything on the one device where the simulated step is shortest", _ROOM + "simple"),
    "round-robin": StrategyEntry("one device after another", _ROOM + "simple"),
    "greedy": StrategyEntry("where each node would end first; never slower than the above", _ROOM + "greedy"),
    "stages": StrategyEntry("a pipeline of --stages N devices, balanced", _ROOM + "stages"),
}


def strategy(name: str, text: str) -> Callable[[Strategy], Strategy]:
    """Register a strategy.

    Raises:
        GraphmillError: there is one of that name.
    """

    def register(function: Strategy) -> Strategy:
        known = _TABLE.get(name)
        if known is not None and known.module != function.__module__:
            raise GraphmillError(f"there is a placement strategy '{name}' already")
        if known is not None and known.function is not None and known.function is not function:
            raise GraphmillError(f"there is a placement strategy '{name}' already")
        _TABLE[name] = StrategyEntry(text, function.__module__, function)
        return function

    return register


def strategy_names() -> list[str]:
    """The names of the strategies that are registered."""
    return list(_TABLE)


def find_strategy(name: str) -> Strategy:
    """The strategy of that name; installed plugins are looked through for one that is not known.

    Raises:
        UsageError: there is none.
    """
    if name not in _TABLE:
        plugins.load_installed()
    entry = _TABLE.get(name)
    if entry is None:
        raise UsageError(
            f"there is no strategy '{name}'"
            + did_you_mean(name, _TABLE, then=f"there are {', '.join(strategy_names())}")
        )
    if entry.function is None:
        importlib.import_module(entry.module)
        entry = _TABLE[name]
    assert entry.function is not None
    return entry.function


def is_ours(name: str) -> bool:
    """Whether a strategy is one of graphmill's, whose choices need no check."""
    entry = _TABLE.get(name)
    return entry is not None and entry.module.startswith(_ROOM)


def check_choices(task: PlacementTask, name: str, choices: Sequence[Choice]) -> None:
    """Hold a strategy to what it must keep.

    Raises:
        GraphError: a node has a device that it may not have, or a group has several.
    """
    constraints = task.constraints
    seen: set[int] = set()
    if len(choices) != len(constraints.graph):
        raise GraphError(
            f"the placement strategy '{name}' gave {len(choices)} devices for {len(constraints.graph)} nodes"
        )
    for node in constraints.graph.nodes:
        group = constraints.groups[node.id]
        device = choices[node.id].device
        if device != choices[group.leader.id].device:
            raise GraphError(
                f"the placement strategy '{name}' puts it on {device} and '{group.leader.name}' elsewhere, and the two "
                "must share a device",
                node=node.name,
            )
        if id(group) not in seen:
            seen.add(id(group))
            if device not in constraints.allowed(group)[0]:
                raise GraphError(
                    f"the placement strategy '{name}' puts it on {device}, where it may not be", node=node.name
                )
