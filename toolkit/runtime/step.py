"""The step that is running: what kernels reach through `StepContext`."""

from __future__ import annotations

from typing import Any

from toolkit.errors import CancelledError
from toolkit.runtime.cancellation import CancellationManager
from toolkit.runtime.functions import FunctionRuntime
from toolkit.runtime.inter_op import InterOpPool
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.rendezvous import LocalRendezvous
from toolkit.runtime.resources import ResourceManager


class Step:
    """One execution of a compiled graph on one device; implements `toolkit.kernels.context.StepContext`.

    Partitions of one step share everything but `frame_iter`, which belongs to the executor's thread.
    """

    __slots__ = (
        "cancellation", "device_name", "frame_iter", "functions", "graph_seed_state", "pool", "probe", "rendezvous",
        "resources", "step_id", "step_resources",
    )  # fmt: skip

    def __init__(
        self,
        step_id: int,
        resources: ResourceManager,
        functions: FunctionRuntime,
        graph_seed_state: dict[str, Any],
        rendezvous: LocalRendezvous,
        cancellation: CancellationManager,
        step_resources: ResourceManager | None = None,
        device_name: str = "",
        probe: Probe | None = None,
        pool: InterOpPool | None = None,
    ):
        self.step_id = step_id
        self.resources = resources
        self.functions = functions
        self.graph_seed_state = graph_seed_state
        self.rendezvous = rendezvous
        self.cancellation = cancellation
        self.step_resources = step_resources if step_resources is not None else ResourceManager()
        self.device_name = device_name
        self.probe = probe
        self.pool = pool
        self.frame_iter: tuple[int, int] = (0, 0)

    def sibling(self, device_name: str = "", site: str = "") -> Step:
        """The same step for another executor: a partition, or the body of a function.

        Args:
            site: where a function is called: its random kernels have a state of their own there.
        """
        state = self.graph_seed_state
        if site:
            state = state.setdefault(site + "/", {})  # no node has a name that ends so
        return Step(
            self.step_id, self.resources, self.functions, state, self.rendezvous,
            self.cancellation, self.step_resources, device_name or self.device_name, self.probe, self.pool,
        )  # fmt: skip

    def check_cancelled(self) -> None:
        """Raises CancelledError when the step is over."""
        if self.cancellation.is_cancelled:
            raise CancelledError("the step was cancelled")
