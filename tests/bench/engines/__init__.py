"""The engines that take turns: ours and its peers, each behind the same two calls.

An engine is loaded inside its own worker process; nothing here imports one.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tests.bench.workloads.base import Workload
from tests.models import Built

#: given one value per input (in the order of the model's inputs), the values of the outputs
Step = Callable[[Sequence[Any]], list[Any]]


class UnsupportedError(Exception):
    """This engine cannot run this workload; the message says why."""


class Engine(Protocol):
    """One engine with one workload's model loaded."""

    step: Step

    def reset(self) -> None:
        """Set the variables to their initial values."""
        ...


#: name to (module of the engine here, package that must be installed)
ENGINES: Mapping[str, tuple[str, str]] = {
    "graphmill": ("graphmill", "toolkit"),
    "tensorflow": ("tensorflow_session", "tensorflow"),
    "onnxruntime": ("onnx_runtime", "onnxruntime"),
    "openvino": ("open_vino", "openvino"),
}
OURS = "graphmill"
PEERS = tuple(name for name in ENGINES if name != OURS)


def installed(name: str) -> bool:
    """Whether the engine's package can be imported."""
    return importlib.util.find_spec(ENGINES[name][1]) is not None


def load(name: str, workload: Workload, built: Built, threads: int | None, precision: str) -> Engine:
    """The engine, ready to run, with so many threads; None: as many as it takes by itself.

    Raises:
        UnsupportedError: it cannot run this.
    """
    module = importlib.import_module(f"tests.bench.engines.{ENGINES[name][0]}")
    return module.Loaded(workload, built, threads, precision)


def session_step(session: Any, call: str, fetches: Any, inputs: Sequence[Any]) -> Step:
    """A step of a Session, TensorFlow's or ours: through make_callable if `call` is "callable", else through run."""
    several = isinstance(fetches, list)
    if call == "callable":
        function = session.make_callable(fetches, inputs)
        return (lambda values: function(*values)) if several else (lambda values: [function(*values)])
    run = session.run
    if several:
        return lambda values: run(fetches, dict(zip(inputs, values, strict=True)))
    return lambda values: [run(fetches, dict(zip(inputs, values, strict=True)))]
