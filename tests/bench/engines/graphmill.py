"""Ours, through the public API alone."""

from __future__ import annotations

import inspect
from typing import Any

from tests.bench.engines import Step, UnsupportedError, session_step
from tests.bench.workloads.base import Workload
from tests.models import Built


class Loaded:
    """A session over the model file."""

    def __init__(self, workload: Workload, built: Built, threads: int | None, precision: str):
        from toolkit import Session, read_model

        accepted = inspect.signature(Session).parameters
        options: dict[str, Any] = {"threads": threads} if "threads" in accepted else {}
        if precision != "f32":
            if "precision" not in accepted:
                raise UnsupportedError(f"Session takes no precision, so it cannot run in {precision}")
            options["precision"] = precision
        session = Session(read_model(str(built.path)), **options)
        info = built.info
        inputs, outputs = list(info["inputs"].values()), list(info["outputs"].values())
        train = [info["train"]] if "train" in info else []
        fetches: Any = [*outputs, *train] if train or len(outputs) > 1 else outputs[0]
        self._session, self._init = session, info.get("init")
        self._fetches, self._inputs = fetches, inputs
        self.reset()
        self.step = session_step(session, workload.call, fetches, inputs)

    def coalesced(self) -> Step:
        """A step in which requests of several threads run together."""
        call = self._session.batched(self._fetches, self._inputs)
        return lambda values: [call(*values)] if isinstance(self._fetches, str) else call(*values)

    def reset(self) -> None:
        if self._init:
            self._session.run(self._init)
