"""Ops by family: the table in the README."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.kernels.catalogue import catalogue
from toolkit.kernels.registry import DEFAULT

#: the beginning of a kernel module's name, behind those of its folders, to the family it belongs to; the longest match
#: counts
FAMILIES: dict[str, str] = {
    "accumulator": "queues and input",
    "array": "arrays",
    "arrays_cast": "math",
    "audio": "audio",
    "barrier": "queues and input",
    "cast": "math",
    "common": "math",
    "control": "functions and control flow",
    "counting": "math",
    "dataset": "datasets",
    "debug": "debugging",
    "decoding": "strings and parsing",
    "fft": "linear algebra and Fourier transforms",
    "file_io": "files",
    "files": "strings and parsing",
    "files_file_io": "files",
    "files_reader": "queues and input",
    "files_save_restore": "checkpoints",
    "flow": "functions and control flow",
    "framework": "functions and control flow",
    "functional": "functions and control flow",
    "image": "images",
    "iterator": "datasets",
    "kernels": "functions and control flow",  # toolkit.kernels.default.kernels: copies between memories
    "lists": "data structures",
    "lists_ragged": "sparse and ragged",
    "linalg": "linear algebra and Fourier transforms",
    "logging": "debugging",
    "lookup": "data structures",
    "math": "math",
    "math_fft": "linear algebra and Fourier transforms",
    "math_reduction": "reductions and segments",
    "math_segment": "reductions and segments",
    "matmul": "linear algebra and Fourier transforms",
    "mutex": "queues and input",
    "nn": "neural networks",
    "optimizers": "variables and optimizers",
    "optional": "datasets",
    "parsing": "strings and parsing",
    "proto": "strings and parsing",
    "quantiz": "quantization",
    "queue": "queues and input",
    "ragged": "sparse and ragged",
    "random": "random numbers",
    "reader": "queues and input",
    "reduction": "reductions and segments",
    "save_restore": "checkpoints",
    "script": "functions and control flow",
    "segment": "reductions and segments",
    "session_state": "queues and input",
    "sets": "arrays",
    "sorting": "arrays",
    "sparse": "sparse and ragged",
    "special": "math",
    "stack": "data structures",
    "staging": "queues and input",
    "state": "variables and optimizers",
    "state_accumulator": "queues and input",
    "state_mutex": "queues and input",
    "state_session_state": "queues and input",
    "string": "strings and parsing",
    "summary": "summaries",
    "table": "data structures",
    "tensor": "data structures",
}


@dataclass(slots=True)
class FamilyRow:
    """How many ops of a family have a kernel on the CPU, on GPUs, and a gradient."""

    family: str
    forward: int = 0
    gradient: int = 0
    cpu: int = 0
    gpu: int = 0


def family_of(module: str) -> str:
    """The family of a kernel module, "other" when its name says nothing."""
    name = "_".join(module.partition(".kernels.")[2].split(".")[1:])  # behind that of the device type
    found = max((prefix for prefix in FAMILIES if name.startswith(prefix)), key=len, default="")
    return FAMILIES.get(found, "other")


def families() -> list[FamilyRow]:
    """One row per family, by name, and a last one for all; ops of plugins do not count."""
    rows: dict[str, FamilyRow] = {}
    total = FamilyRow("all")
    for entry in catalogue():
        if not entry.kernels or entry.plugin:
            continue
        devices = {kernel.device_type for kernel in entry.kernels}
        own = [kernel for kernel in entry.kernels if kernel.device_type == "CPU"] or entry.kernels
        family = family_of(own[-1].factory.__module__)  # as the CPU's are sorted
        for row in (rows.setdefault(family, FamilyRow(family)), total):
            row.forward += 1
            row.gradient += entry.gradient == "function"
            row.cpu += "CPU" in devices
            row.gpu += not devices.isdisjoint(("GPU", DEFAULT))
    return [*sorted(rows.values(), key=lambda row: row.family), total]


def markdown() -> str:
    """The table in Markdown."""
    lines = ["| family | forward | gradient | CPU | GPU |", "|---|---:|---:|---:|---:|"]
    lines += [f"| {r.family} | {r.forward} | {r.gradient} | {r.cpu} | {r.gpu} |" for r in families()]
    return "\n".join(lines)
