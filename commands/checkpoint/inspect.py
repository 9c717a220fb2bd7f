"""`graphmill checkpoint inspect`: what is in a checkpoint."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commands.checkpoint.complete import complete_tensor
from commands.checkpoint.shared import Only, Prefix, bytes_done, plural, size, table
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()
FINDINGS_EXIT = 1


@app.command()
def inspect(
    prefix: Prefix,
    only: Only = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Read the tensors: minimum, maximum, mean, NaN and infinity counts.")
    ] = False,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--values",
            metavar="NAME",
            help="Print a tensor, or the values of an object. Repeatable.",
            autocompletion=complete_tensor,
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Print all elements with --values.")] = False,
    scopes: Annotated[bool, typer.Option("--scopes", help="Sizes by scope instead of tensors.")] = False,
    depth: Annotated[int, typer.Option("--depth", min=0, help="Levels that --scopes shows; 0: all.")] = 0,
    tree: Annotated[bool, typer.Option("--tree", help="The objects of an object-based checkpoint.")] = False,
    json: Json = False,
) -> None:
    """List a checkpoint's tensors: name, type, shape, bytes and data file. Exit code 1 when a data file is missing.

    graphmill checkpoint inspect model/ckpt-7 --only '*/kernel' --stats
    """
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.bundle.patterns import matcher, require_matches

    if bool(values) + scopes + tree > 1 or (stats and (values or scopes or tree)):
        raise UsageError("--stats, --values, --scopes and --tree are different reports; give one")
    with open_tensors(prefix) as reader:
        if only:
            with about_option("--only"):
                require_matches(only, reader, reader.prefix)
        test = matcher(only or ["*"])
        entries = [entry for name, entry in reader.entries.items() if test(name)]
        if values:
            _print_values(reader, values, full, json)
        elif scopes:
            _print_scopes(entries, depth, json)
        elif tree:
            _print_tree(reader, json)
        else:
            _print_tensors(reader, entries, stats, json)
            if not json:
                for path in reader.missing_files():
                    show(f"missing data file: {path}")
        if reader.missing_files():
            raise typer.Exit(FINDINGS_EXIT)


def _print_tensors(reader: Any, entries: list[Any], stats: bool, json: bool) -> None:
    computed: dict[str, Any] = {}
    if stats:
        from toolkit.formats.bundle.stats import statistics

        total = sum(entry.bytes for entry in entries)
        done = 0
        with bytes_done("reading") as progress:
            for entry in entries:
                computed[entry.name] = statistics(reader, entry)
                done += entry.bytes
                progress(done, total)
    nbytes = sum(entry.bytes for entry in entries)
    if json:
        from toolkit.formats.bundle.describe import describe

        tensors = {entry.name: describe(entry) for entry in entries}
        for name, found in computed.items():
            tensors[name]["stats"] = found.as_json()
        print_json(
            {
                "prefix": reader.prefix,
                "shards": reader.num_shards,
                "missing": reader.missing_files(),
                "tensors": tensors,
                "bytes": nbytes,
            }
        )
        return
    head = ["name", "dtype", "shape", "bytes", "shard"]
    right = [3, 4]
    rows = [
        [
            entry.name, entry.dtype.name, str(entry.shape), f"{entry.bytes:,}",
            str(entry.shard) if not entry.slices else plural(len(entry.slices), "part"),
        ]
        for entry in entries
    ]  # fmt: skip
    if stats:
        head += ["min", "max", "mean", "nan", "inf"]
        right += [5, 6, 7, 8, 9]
        for row in rows:
            row += computed[row[0]].as_cells()
    if rows:
        show(*table(rows, head, right))
    elements = sum(entry.count for entry in entries)
    show(
        f"{plural(len(rows), 'tensor')}, {elements:,} elements, {nbytes:,} bytes ({size(nbytes)}) in "
        f"{plural(reader.num_shards, 'data file')}: {reader.prefix}"
    )


def _print_values(reader: Any, names: list[str], full: bool, json: bool) -> None:
    from toolkit.errors import about_option
    from toolkit.formats.bundle.describe import describe, format_values, json_values
    from toolkit.formats.bundle.object_graph import find_tensors

    with about_option("--values"):
        names = [found for name in names for found in find_tensors(reader, name)]
    if json:
        report = {name: {**describe(reader.entry(name)), "values": json_values(reader.read(name))} for name in names}
        print_json({"prefix": reader.prefix, "tensors": report})
        return
    for name in names:
        entry = reader.entry(name)
        show(f"{name} {entry.dtype}{entry.shape}")
        show(*format_values(reader.read(name), full).split("\n"))


def _print_scopes(entries: list[Any], depth: int, json: bool) -> None:
    from toolkit.formats.bundle.describe import by_scope

    scopes = by_scope(entries, depth)
    if json:
        print_json(
            {"scopes": {name or "/": {"tensors": n, "elements": e, "bytes": b} for name, (n, e, b) in scopes.items()}}
        )
        return
    rows = [
        [
            "  " * (name.count("/") + 1 if name else 0) + (name.rsplit("/", 1)[-1] or "(all)"),
            f"{n:,}",
            f"{e:,}",
            size(b),
        ]
        for name, (n, e, b) in scopes.items()
    ]
    show(*table(rows, ["scope", "tensors", "elements", "size"], [1, 2, 3]))


def _print_tree(reader: Any, json: bool) -> None:
    from toolkit.formats.bundle.object_graph import read_object_graph

    objects = read_object_graph(reader)
    if json:
        print_json({"prefix": reader.prefix, "objects": objects.as_json()})
        return
    show(*objects.tree(reader.entries))
