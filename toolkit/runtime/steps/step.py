"""The step that is running: what kernels reach through `StepContext`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from toolkit.errors import CancelledError
from toolkit.forks import held_over_forks
from toolkit.kernels.context import RefVariable
from toolkit.kernels.resources.variables import Variable, on_host
from toolkit.runtime.executors.inter_op import InterOpPool
from toolkit.runtime.probes.base import Manner, Probe, manner_of
from toolkit.runtime.steps.cancellation import CancellationManager
from toolkit.runtime.steps.functions import FunctionRuntime
from toolkit.runtime.steps.rendezvous import LocalRendezvous
from toolkit.runtime.steps.resources import ResourceManager

if TYPE_CHECKING:
    from toolkit.compiler.context import Watcher

T = TypeVar("T")

_creation = held_over_forks()


class DeviceStep:
    """One execution of a compiled graph on one device; implements `toolkit.kernels.context.StepContext`.

    Partitions of one step and the functions that it calls share everything but `frame_iter`, which belongs to the
    executor's thread. Most steps need neither a rendezvous nor resources of their own nor a way to be cancelled, so
    these are made when somebody asks.

    Args:
        session: what cancels everything in the session.
    """

    __slots__ = (
        "_cancellation", "_rendezvous", "_root", "_session", "_step_resources", "device_functions", "device_name",
        "frame_iter", "functions", "graph_seed_state", "pool", "probe", "resources", "slots", "step_id",
    )  # fmt: skip

    def __init__(
        self,
        step_id: int,
        resources: ResourceManager,
        functions: FunctionRuntime,
        graph_seed_state: dict[str, Any],
        session: CancellationManager,
        probe: Probe | None = None,
        pool: InterOpPool | None = None,
    ):
        self.step_id = step_id
        self.resources = resources
        self.functions = functions
        self.device_functions = functions
        self.graph_seed_state = graph_seed_state
        self.device_name = ""
        self.probe = probe
        self.pool = pool
        self.slots: list[Any] | None = None  # see `RunningStep.slots`
        self.frame_iter: tuple[int, int] = (0, 0)
        self._root: DeviceStep = self
        self._session = session
        self._cancellation: CancellationManager | None = None
        self._rendezvous: LocalRendezvous | None = None
        self._step_resources: ResourceManager | None = None

    @property
    def watcher(self) -> Watcher | None:
        """Who is told what compiled functions do, if somebody is."""
        probe = self.probe
        if probe is None or manner_of(probe) is not Manner.PLANNED:
            return None
        return cast("Watcher", probe)

    @property
    def cancellation(self) -> CancellationManager:
        """Tells everything that waits that the step is over."""
        found = self._root._cancellation
        return self._make("_cancellation", lambda: CancellationManager(self._session)) if found is None else found

    @property
    def is_cancelled(self) -> bool:
        """Whether the step is over; asking makes nothing."""
        found = self._root._cancellation
        return (self._session if found is None else found).is_cancelled

    @property
    def rendezvous(self) -> LocalRendezvous:
        """Where tensors that cross devices meet; aborted when the step is cancelled."""
        found = self._root._rendezvous
        if found is None:
            cancellation = self.cancellation
            found = self._make("_rendezvous", LocalRendezvous)
            if cancellation.register(found.abort) < 0:
                found.abort()
        return found

    def connect(self, rendezvous: LocalRendezvous) -> None:
        """Use a rendezvous that reaches further than this process; before the step runs."""
        self._rendezvous = rendezvous
        if self.cancellation.register(rendezvous.abort) < 0:
            rendezvous.abort()

    @property
    def step_resources(self) -> ResourceManager:
        """Objects of this step alone."""
        found = self._root._step_resources
        return self._make("_step_resources", ResourceManager) if found is None else found

    def _make(self, name: str, make: Callable[[], T]) -> T:
        """Make what the step did not need until now; of two threads that want it at once, one makes it."""
        with _creation:
            found: T | None = getattr(self._root, name)
            if found is None:
                found = make()
                setattr(self._root, name, found)
            return found

    def variables(self) -> Iterator[tuple[str, Any]]:
        """The variables of the session with their present values."""
        for kind in (RefVariable, Variable):
            for cell in self.resources.all_of(kind):
                yield cell.name, on_host(cell.value)

    def sibling(self, device_name: str = "", site: str = "", functions: FunctionRuntime | None = None) -> DeviceStep:
        """The same step for another executor: a partition, or the body of a function.

        Args:
            functions: of the device, if it is another one and has a memory of its own.
            site: where a function is called: its random kernels have a state of their own there.
        """
        state = self.graph_seed_state
        if site:
            state = state.setdefault(site + "/", {})  # no node has a name that ends so
        looked_into = manner_of(self.probe) in (Manner.NODE_BY_NODE, Manner.PLANNED, Manner.CHECKED) or not site
        probe = self.probe if looked_into else None
        made = DeviceStep(
            self.step_id, self.resources, self.functions, state, self._session, probe=probe, pool=self.pool
        )
        made._root = self._root
        made.device_name = device_name or self.device_name
        made.device_functions = functions or self.device_functions
        return made

    def finish(self) -> None:
        """The end: what was made for this step alone is dropped."""
        if self._cancellation is not None:
            self._cancellation.detach()
        if self._step_resources is not None:
            self._step_resources.clear()

    def check_cancelled(self) -> None:
        """Raises CancelledError when the step is over."""
        if self.cancellation.is_cancelled:
            raise CancelledError("the step was cancelled")
