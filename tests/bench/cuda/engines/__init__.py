"""The engines: ours, PyTorch as it is and compiled, and JAX. Nothing here imports one before it is asked for.

An engine has a workload's network on its device, with the weights and data of `Network`, and makes steps of it that
take nothing in and give nothing back.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tests.bench.cuda.workloads import CudaWorkload

OURS = "graphmill"
#: name to (module here, package that must be installed, arguments of its engine)
ENGINES: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    OURS: ("graphmill_gpu", "toolkit", {}),
    "torch": ("torch_gpu", "torch", {}),
    "torch.compile": ("torch_gpu", "torch", {"compiled": True}),
    "jax": ("jax_gpu", "jax", {}),
}
PEERS = tuple(name for name in ENGINES if name != OURS)
#: steps of training of which results are compared
STEPS = 3
#: the device that tests without a GPU ask for
CPU, GPU = "cpu", "gpu"


class Engine(Protocol):
    """A network on a device."""

    #: what hinders a fair comparison, in words: nodes that ran elsewhere; ""
    note: str

    def run(self) -> None:
        """One step; it may return before it is done."""
        ...

    def wait(self) -> None:
        """Until all steps are done."""
        ...

    def results(self) -> dict[str, Any]:
        """What is compared, as arrays, of an engine that has run nothing yet: for inference "output"; in training
        "losses" of the first steps, and "change" of the last layer's weights by them."""
        ...

    def fed(self) -> Callable[[], Any] | None:
        """A step that takes an array of the host in and gives one back, for inference."""
        ...


def installed(name: str) -> bool:
    """Whether the engine's package can be imported."""
    return importlib.util.find_spec(ENGINES[name][1]) is not None


def load(name: str, workload: CudaWorkload, device: str = GPU) -> Engine:
    """The engine with a workload, ready to run."""
    module, _, arguments = ENGINES[name]
    return importlib.import_module(f"tests.bench.cuda.engines.{module}").Loaded(workload, device, **arguments)


def last_weights(network: Any) -> str:
    """The name of the matrix nearest to the loss, whose change by training is compared."""
    return [name for name, array in network.weights().items() if array.ndim == 2][-1]
