"""graphmill ops: what is known about every op, and what can run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from commands.messages import show
from commands.options import Json, command_app, print_json

if TYPE_CHECKING:
    from toolkit.kernels.catalogue import OpEntry

app = command_app()


@app.command()
def ops(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show this op in full.")] = None,
    json: Json = False,
    families: Annotated[bool, typer.Option("--families", help="Print a Markdown table of families instead.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="List ops without a kernel too.")] = False,
    device: Annotated[
        str | None, typer.Option("--device", metavar="TYPE", help="Only ops with kernels there (GPU), and these.")
    ] = None,
) -> None:
    """List the ops that can run, or show one: signature, attributes, kernels by device and type, gradient.

    DEFAULT stands for every device with a memory of its own.

    With --json: a list of {"name", "kernels", "dtypes", "gradient", "shape_function", "plugin"}, or one such object.
    """
    from toolkit.errors import UsageError, about_option
    from toolkit.kernels import catalogue

    if device is not None and families:
        raise UsageError("--families has a column for each device; --device is without effect there")
    if device is not None and everything:
        raise UsageError("--device lists ops with a kernel there, --all those without one too; give one of them")

    def narrowed(entry: OpEntry) -> OpEntry:
        with about_option("--device"):
            return entry if device is None else catalogue.narrowed(entry, device)

    if families:
        from toolkit.kernels.families import markdown

        show(*markdown().split("\n"))
        return
    if name is not None:
        found = narrowed(catalogue.entry(name))
        if json:
            print_json(found.as_json())
        else:
            _show(found)
        return
    entries = [e for e in map(narrowed, catalogue.catalogue()) if e.kernels or everything]
    if json:
        print_json([e.as_json() for e in entries])
        return
    rows = [("op", "kernels", "gradient", "shapes")]
    for e in entries:
        devices = ",".join(sorted({k.device_type for k in e.kernels})) or "-"
        rows.append((e.definition.name, devices, e.gradient or "-", "yes" if e.shape_function else "-"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for *cells, last in rows:
        show("  ".join([*(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)), last]))
    show(f"{sum(bool(e.kernels) for e in entries)} ops with a kernel")


def _show(entry: OpEntry) -> None:
    from toolkit.kernels.catalogue import attribute, signature

    definition = entry.definition
    show(signature(definition))
    for attr in definition.attrs.values():
        show(f"  {attribute(attr)}")
    if definition.deprecated_at:
        show(f"deprecated since version {definition.deprecated_at}: {definition.deprecation}")
    for kernel in entry.kernels:
        types = "; ".join(f"{attr}: {', '.join(sorted(map(str, t)))}" for attr, t in kernel.types.items())
        show(f"kernel    {kernel.device_type} {kernel.label} ({kernel.kind.value}){': ' + types if types else ''}")
    if not entry.kernels:
        show("kernel    none")
    show(f"gradient  {entry.gradient or 'none registered'}")
    show(f"shapes    {'inferred' if entry.shape_function else 'not inferred'}")
    if entry.plugin:
        show(f"plugin    {entry.plugin}")
