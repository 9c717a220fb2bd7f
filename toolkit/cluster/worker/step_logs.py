"""What was received from other workers in a step, for timelines (the Logging method)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from schemas import step_stats_pb2, worker_pb2

#: steps whose logs are kept; a master fetches them when the step is over
_STEPS = 1000
#: transfers of one step
_ENTRIES = 10_000
#: transfers of all of them; the oldest steps make room
_ALL_ENTRIES = 100_000


class StepLogs:
    """Transfers by step, while that is asked for.

    TensorFlow's masters switch the logs on beside the step that they are meant for, not before it, so the
    step may be here first: one that is traced is logged in any case.

    Attributes:
        is_on: whether the transfers of all steps are written down.
    """

    def __init__(self) -> None:
        self.is_on = False
        self._lock = threading.Lock()
        self._steps: OrderedDict[int, step_stats_pb2.StepStats] = OrderedDict()
        self._entries = 0

    def trace(self, step_id: int) -> None:
        """Write down the transfers of one step."""
        with self._lock:
            self._of(step_id)

    def wants(self, step_id: int) -> bool:
        """Whether the transfers of a step are written down."""
        return self.is_on or step_id in self._steps

    def received(self, step_id: int, key: str, size: int, start_ns: int, end_ns: int) -> None:
        """Note a tensor that came.

        Args:
            key: of the rendezvous.
            size: of the response, in bytes.
            start_ns, end_ns: since the epoch.
        """
        source, _, destination, name, _ = key.split(";", 4)
        elapsed = max(1, (end_ns - start_ns) // 1000)
        with self._lock:
            stats = self._of(step_id)
            device = next((each for each in stats.dev_stats if each.device == destination), None)
            device = stats.dev_stats.add(device=destination) if device is None else device
            if len(device.node_stats) >= _ENTRIES:
                return
            entry = device.node_stats.add(
                node_name="RecvTensor",
                all_start_micros=start_ns // 1000,
                op_end_rel_micros=elapsed,
                all_end_rel_micros=elapsed,
                timeline_label=f"[{size} bytes] {name} from {source} to {destination}",
            )
            output = entry.output.add(slot=0)
            output.tensor_description.allocation_description.requested_bytes = size
            self._entries += 1

    def _of(self, step_id: int) -> step_stats_pb2.StepStats:
        found = self._steps.get(step_id)
        if found is None:
            found = self._steps[step_id] = step_stats_pb2.StepStats()
            while len(self._steps) > _STEPS or (self._entries > _ALL_ENTRIES and len(self._steps) > 1):
                self._forget(next(iter(self._steps)))
        return found

    def _forget(self, step_id: int) -> step_stats_pb2.StepStats | None:
        stats = self._steps.pop(step_id, None)
        if stats is not None:
            self._entries -= sum(len(device.node_stats) for device in stats.dev_stats)
        return stats

    def fetch(self, steps: Iterable[int]) -> list[worker_pb2.LabeledStepStats]:
        """What is known of steps; those of which nothing is are left out."""
        with self._lock:
            found = [(step, self._forget(step)) for step in steps]
        return [
            worker_pb2.LabeledStepStats(step_id=step, step_stats=stats)
            for step, stats in found
            if stats is not None and stats.dev_stats
        ]

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._steps.clear()
            self._entries = 0
