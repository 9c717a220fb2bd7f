"""graphmill devices: the GPUs of this machine, what drives them, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commands.messages import show
from commands.options import Json, command_app, print_json

if TYPE_CHECKING:
    from toolkit.kernels.cuda.found import Found

app = command_app()


@app.command()
def devices(json: Json = False) -> None:
    """List the GPUs that graphs can run on, the driver and the libraries, and what is missing.

    Without a GPU, graphs run on the CPU; the exit code is 0 all the same.

    With --json: {"devices": [{"device", "name", "memory", "capability", "multiprocessors", "l2"}], "missing",
    "libraries": [{"name", "use", "version", "missing"}], "pip"}; memory in bytes, "missing" is "" for what is there.
    """
    from toolkit.kernels.cuda.found import find

    found = find()
    if json:
        print_json(found.as_json())
    else:
        _show(found)


def _show(found: Found) -> None:
    from toolkit.limits.limits import size_text

    for gpu in found.gpus:
        show(
            f"{gpu.device}  {gpu.name}, {size_text(gpu.memory)}, compute capability {gpu.capability}, "
            f"{gpu.multiprocessors} multiprocessors, {size_text(gpu.l2)} of L2 cache"
        )
    if not found.gpus:
        show(f"{found.missing.removesuffix('.')}; graphs run on the CPU")
    width = max(len(part.name) for part in found.parts)
    for part in found.parts:
        if found.gpus or part.name != "driver":
            show(f"{part.name:<{width}}  {part.missing or part.version}  ({part.use})")
    if found.pip:
        show(f"what is missing comes with: {found.pip}")
    if found.gpus:
        show(f"run a graph there: graphmill run MODEL --devices GPU={len(found.gpus)}")
