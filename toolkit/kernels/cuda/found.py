"""What of CUDA is on this machine: GPUs, driver, libraries, what is missing and what brings it."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from toolkit.errors import UsageError
from toolkit.kernels.cuda import settings
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import DeviceProperties

#: what brings all that is Python's side
PIP = 'pip install "graphmill[cuda]"'
_LIBRARIES = "toolkit.kernels.cuda.libraries"


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU.

    Attributes:
        device: its name in graphs: "/device:GPU:0".
        name: what NVIDIA calls it.
        memory: bytes.
        capability: its compute capability: "9.0".
        multiprocessors: how many there are.
        l2: bytes of the second cache.
    """

    device: str
    name: str
    memory: int
    capability: str
    multiprocessors: int
    l2: int

    @staticmethod
    def of(index: int, known: DeviceProperties) -> Gpu:
        capability = ".".join(map(str, known.capability))
        return Gpu(f"/device:GPU:{index}", known.name, known.memory, capability, known.multiprocessors, known.l2)


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is installed, or is not.

    Attributes:
        name: as people call it.
        use: what it is for.
        version: "" where that is not known, or it is missing.
        missing: why it is not there; "" where it is.
    """

    name: str
    use: str
    version: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What there is.

    Attributes:
        gpus: those that sessions can have.
        missing: why there is none; "" where there is one.
        parts: driver and libraries.
        pip: the command that brings what is missing of Python's side; "" where nothing is.
    """

    gpus: tuple[Gpu, ...]
    missing: str
    parts: tuple[Part, ...]
    pip: str

    def as_json(self) -> dict[str, Any]:
        """{"devices": [{"device", "name", "memory", ...}], "missing", "libraries": [{"name", ...}], "pip"}."""
        return {
            "devices": [asdict(gpu) for gpu in self.gpus],
            "missing": self.missing,
            "libraries": [asdict(part) for part in self.parts],
            "pip": self.pip,
        }


def find() -> Found:
    """Look for all of it; no GPU is opened."""
    gpus: list[Gpu] = []
    parts: list[Part] = []
    try:
        driver = choose.driver()
        for index in range(settings.count()):
            known = driver.properties(settings.number_of(index))
            gpus.append(Gpu.of(index, known))
        first = driver.properties(0)
        parts.append(Part("driver", "runs what the rest makes", f"CUDA {_dotted(first.driver)}"))
        missing = ""
    except UsageError as error:
        missing = error.message
        parts.append(Part("driver", "runs what the rest makes", missing=missing))
    parts.append(_package("cuda-bindings", "calls the driver"))
    parts.append(_package("llvmlite", "makes kernels"))
    parts.append(_library("cuBLASLt", "matrix products", "cublaslt"))
    parts.append(_library("cuDNN", "convolutions and attention", "cudnn_graphs"))
    lacks = any(part.missing for part in parts[1:])
    return Found(tuple(gpus), missing, tuple(parts), PIP if lacks else "")


def _package(name: str, use: str) -> Part:
    try:
        return Part(name, use, version(name))
    except PackageNotFoundError:
        return Part(name, use, missing="not installed")


def _library(name: str, use: str, module: str) -> Part:
    """A library that a module of ours loads, which says what is missing."""
    try:
        loaded: Any = importlib.import_module(f"{_LIBRARIES}.{module}").load()
    except ImportError as error:
        return Part(name, use, missing=str(error).partition(": ")[0])  # behind that is where it was looked for
    return Part(name, use, _VERSIONS[module](loaded))


def _dotted(number: int) -> str:
    """12040 as "12.4"."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _of_cublaslt(loaded: Any) -> str:
    number = int(loaded.cublasLtGetVersion())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _of_cudnn(loaded: Any) -> str:
    number = int(loaded.backend_version())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


#: by module, what asks a loaded library for its version
_VERSIONS = {"cublaslt": _of_cublaslt, "cudnn_graphs": _of_cudnn}
