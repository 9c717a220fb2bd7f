"""The reports of `toolkit.formats.inspection.summary` as text for a terminal: most useful first, columns aligned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from toolkit.printable import printable, text_of

Report = dict[str, Any]
#: longer lists are cut in the text; the JSON has everything
LIMIT = 20
_NAMES = {"graphdef": "GraphDef", "metagraph": "MetaGraphDef", "savedmodel": "SavedModel"}


def render(report: Report) -> str:
    """The text of a report, with a newline at the end."""
    kind = report["kind"]
    lines: list[str]
    if "graphs" in report:
        lines = _model(report)
    else:
        lines = _RENDERERS[kind](report)
    return text_of(lines)


# -- models ----------------------------------------------------------------------------------------------


def _model(report: Report) -> list[str]:
    kind = _NAMES[report["kind"]]
    lines = [f"{report['file']}: {kind}, {report['encoding']}, {bytes_text(report['bytes'])}"]
    graphs = report["graphs"]
    for position, graph in enumerate(graphs):
        tags = ", ".join(graph.get("tags", []))
        if len(graphs) > 1:
            lines += ["", f"graph {position + 1} of {len(graphs)}, tags: {tags or 'none'}"]
        elif tags:
            lines.append(f"tags: {tags}")
        lines += _graph(graph)
    files = report.get("files")
    if files:
        lines += _section("files", table([[name, f"{size:,}"] for name, size in files.items()], right=[1]))
    if report.get("missing"):
        lines += _section("missing: the model cannot be loaded without", report["missing"])
    return lines


def _graph(graph: Report) -> list[str]:
    lines = [_versions(graph), *_needs(graph)]
    lines += _signatures(graph.get("signatures", {}))
    inputs = [[t["name"], t["dtype"] or "?", _shape(t["shape"]), t["op"]] for t in graph["inputs"]]
    lines += _rows("inputs", inputs)
    if not graph.get("signatures"):
        lines += _rows("likely outputs", [[t["name"], t["dtype"] or "?", t["op"]] for t in graph["outputs"]])
    lines += _section("likely targets", [", ".join(graph["targets"])] if graph["targets"] else [])
    lines += _section("contents", table(_contents(graph)))
    lines += _section("ops", _ops(graph))
    lines += _rows("variables", _variables(graph["variables"]))
    lines += _section("devices", _counted(graph["devices"]))
    functions = sorted(graph["functions"], key=lambda f: (-f["nodes"], f["name"]))
    rows = [[f["name"], plural(f["nodes"], "node"), f"{f['inputs']} -> {f['outputs']}"] for f in functions]
    lines += _rows("functions", rows, right=[1])
    lines += _rows("frames", [[name, plural(n, "entry", "entries")] for name, n in graph["frames"].items()])
    collections = graph.get("collections", {})
    rows = [
        [name, f"{entry['items']:,}", (entry["kind"] or "empty").removesuffix("_list")]
        for name, entry in collections.items()
    ]
    lines += _rows("collections", rows, right=[1])
    saver = graph.get("saver")
    if saver:
        wanted = ("filename", "save", "restore", "version")
        lines += _section("saver", table([[key, saver[key]] for key in wanted if saver[key]]))
    lines += _section("assets", graph.get("assets", []))
    return lines


def _versions(graph: Report) -> str:
    versions = graph["versions"]
    parts = [f"producer {versions['producer']}", f"min_consumer {versions['min_consumer']}"]
    if versions["bad_consumers"]:
        parts.append("bad_consumers " + ", ".join(map(str, versions["bad_consumers"])))
    if graph.get("tensorflow_version"):
        parts.insert(0, f"written by TensorFlow {graph['tensorflow_version']}")
    elif graph["written_by"]:
        parts.insert(0, f"version of TensorFlow {graph['written_by']}")
    return ", ".join(parts)


def _needs(graph: Report) -> list[str]:
    needs = graph["needs"]
    if graph.get("broken"):
        return [f"broken: {graph['broken']} (see: graphmill validate)"]
    reasons = f" ({', '.join(needs['reasons'])})" if needs["reasons"] else ""
    lines = [f"loads in TensorFlow {needs['tensorflow']} and newer{reasons}"]
    if needs["custom_ops"]:
        lines.append(f"needs custom ops: {', '.join(needs['custom_ops'])}")
    return lines


def _signatures(signatures: Report) -> list[str]:
    lines: list[str] = []
    # the default one first, TensorFlow's internal ones last
    for key in sorted(signatures, key=lambda key: (key.startswith("__"), key != "serving_default", key)):
        signature = signatures[key]
        method = f"  ({signature['method']})" if signature["method"] else ""
        rows = [
            [direction, name, info["dtype"] or "?", _shape(info["shape"]), info["name"]]
            for direction, side in (("in", "inputs"), ("out", "outputs"))
            for name, info in signature[side].items()
        ]
        lines += _section(f"signature {key}{method}", table(rows) or ["no inputs or outputs"], limit=None)
    return lines


def _contents(graph: Report) -> list[list[str]]:
    functions = graph["functions"]
    rows = [["nodes", f"{graph['nodes']:,}"]]
    if functions:
        inner = sum(graph["function_ops"].values())
        rows.append(["functions", f"{len(functions):,} with {plural(inner, 'node')}"])
    parameters = graph["parameters"]
    total = f"{parameters['total']:,} in {parameters['in']}"
    if parameters["trainable"] is not None:
        total += f", {parameters['trainable']:,} trainable"
    if parameters["unused"]:
        total += f"; {parameters['unused']:,} more that no function reads"
    rows.append(["parameters", total])
    constants = graph["constants"]
    if constants["nodes"]:
        rows.append(["constants", f"{constants['nodes']:,} with {bytes_text(constants['bytes'])}"])
    return rows + _costs(graph.get("costs"))


def _costs(costs: Report | None) -> list[list[str]]:
    """Operations and memory; of each signature where they differ."""
    if costs is None:
        return []
    kinds = {(one["flops"], one["peak_bytes"]) for one in costs["signatures"].values()}
    if len(kinds) <= 1:
        return [
            ["operations", f"{flops_text(costs)} for a batch of 1"],
            ["peak memory", f"{peak_text(costs)} of results at once, beside the weights"],
        ]
    return [
        [key, f"{flops_text(one)} for a batch of 1, {peak_text(one)} of results at once"]
        for key, one in costs["signatures"].items()
    ]


def flops_text(costs: Report) -> str:
    """The operations of something that `measure` measured, as far as they are known."""
    return _as_known(costs, costs["flops"], f"{costs['flops']:,} FLOPs", "an unknown number of FLOPs")


def peak_text(costs: Report) -> str:
    """Its results at once, as far as they are known."""
    return _as_known(costs, costs["peak_bytes"], bytes_text(costs["peak_bytes"]), "unknown bytes")


def _as_known(costs: Report, count: int, text: str, otherwise: str) -> str:
    if not costs["unknown"]:
        return text
    return f"at least {text}" if count else otherwise


def _ops(graph: Report) -> list[str]:
    main, inner = graph["ops"], graph["function_ops"]
    if not inner:
        return _counted(main)
    total = {op: main.get(op, 0) + inner.get(op, 0) for op in (*main, *inner)}
    order = sorted(total, key=lambda op: (-total[op], op))
    rows = [["", "graph", "functions"]]
    rows += [[op, f"{main.get(op, 0):,}", f"{inner.get(op, 0):,}"] for op in order]
    return table(rows, right=[1, 2])


def _variables(variables: Sequence[Report]) -> list[list[str]]:
    marks = {True: "trainable", False: "", None: ""}
    return [
        [v["name"], v["dtype"], _shape(v["shape"]), "not read" if v["used"] is False else marks[v["trainable"]]]
        for v in variables
    ]


# -- other files -----------------------------------------------------------------------------------------


def _checkpoint(report: Report) -> list[str]:
    tensors = report["tensors"]
    counts = [
        plural(len(tensors), "tensor"),
        f"{report['parameters']:,} floating-point numbers",
        plural(report["shards"], "data file")
        + (f" ({len(missing)} missing)" if (missing := report["missing"]) else ""),
    ]
    lines = [f"{report['prefix']}: checkpoint, {bytes_text(report['bytes'])}", ", ".join(counts)]
    rows = [
        [t["name"], t["dtype"], _shape(t["shape"]), f"{t['bytes']:,}", f"{t['slices']} slices" if t["slices"] else ""]
        for t in tensors
    ]
    return lines + _rows("tensors", rows, right=[3])


def _state(report: Report) -> list[str]:
    lines = [f"{report['file']}: list of checkpoints", f"latest: {report['latest'] or 'none'}"]
    return lines + _section("checkpoints", report["checkpoints"])


def _partitions(report: Report) -> list[str]:
    parts = report["partitions"]
    by = f", by {report['by']}" if report["by"] else ""
    lines = [f"{report['file']}: partition folder{by}, {bytes_text(report['bytes'])}"]
    rows = [["", "nodes", "sends", "receives", "file"]]
    rows += [[p["name"], f"{p['nodes']:,}", f"{p['sends']:,}", f"{p['receives']:,}", p["file"]] for p in parts]
    lines += _section(plural(len(parts), "partition"), table(rows, right=[1, 2, 3]))
    return lines + _section("signatures", report["signatures"])


def _tfrecord(report: Report) -> list[str]:
    sizes = report["record_bytes"]
    packed = f", {report['compression']}" if report["compression"] else ""
    lines = [f"{report['file']}: TFRecord file{packed}, {bytes_text(report['bytes'])}"]
    lines.append(plural(report["records"], "record"))
    if report["records"]:
        lines.append(f"record bytes: {sizes['smallest']:,} to {sizes['largest']:,}, {sizes['total']:,} in all")
    features: dict[str, Report] = report["features"] or {}
    rows: list[list[str]] = [
        [name, f["type"], str(f["least"]) if f["least"] == f["most"] else f"{f['least']} to {f['most']}",
         "" if f["records"] == report["records"] else f"in {plural(f['records'], 'record')}"]
        for name, f in sorted(features.items())
    ]  # fmt: skip
    return lines + _section("features of the examples", table(rows, right=[2]))


def _events(report: Report) -> list[str]:
    lines = [f"{report['file']}: event file ({report['version'] or 'no version'}), {bytes_text(report['bytes'])}"]
    if report["steps"]:
        lines.append(f"steps {report['steps'][0]:,} to {report['steps'][1]:,}")
    if report["wall_time"]:
        first, last = map(_time, report["wall_time"])
        lines.append(f"from {first} to {last} UTC")
    lines += _section("events", _counted(report["events"]))
    rows = [
        [tag, plural(t["values"], "value"), f"steps {t['first_step']:,} to {t['last_step']:,}"]
        for tag, t in report["tags"].items()
    ]
    return lines + _section("tags", table(rows, right=[1]))


def _time(seconds: float) -> str:
    """A time since 1970; what no calendar has, as its number."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s"


_RENDERERS = {
    "checkpoint": _checkpoint,
    "checkpoint state": _state,
    "partitions": _partitions,
    "tfrecord": _tfrecord,
    "events": _events,
}


# -- layout ----------------------------------------------------------------------------------------------


def _section(title: str, lines: Sequence[str], limit: int | None = LIMIT, count: int | None = None) -> list[str]:
    """A title over indented lines, nothing when there are none.

    Args:
        count: how many lines there would be, where only the first ones are given.
    """
    if not lines:
        return []
    count = len(lines) if count is None else count
    shown = lines if limit is None or count <= limit + 1 else lines[:limit]
    out = ["", title, *(f"  {line}" for line in shown)]
    if len(shown) < count:
        out.append(f"  ... {count - len(shown):,} more (--json has all)")
    return out


def _rows(title: str, rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """A title over indented rows with aligned columns."""
    return _section(title, table(rows, right, LIMIT + 1), count=len(rows))


def table(rows: Sequence[Sequence[str]], right: Iterable[int] = (), shown: int | None = None) -> list[str]:
    """Rows with aligned columns.

    Args:
        right: the columns of numbers.
        shown: only the first ones, so many, in columns as wide as all of them need.
    """
    if not rows:
        return []
    widths = [max(map(len, map(printable, column))) for column in zip(*rows, strict=True)]
    numeric = set(right)
    return [
        "  ".join(
            printable(cell).rjust(width) if column in numeric else printable(cell).ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows[:shown]
    ]


def _counted(counts: Report) -> list[str]:
    return table([[name, f"{count:,}"] for name, count in counts.items()], right=[1])


def _shape(dims: list[int | None] | None) -> str:
    return "<unknown>" if dims is None else "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


def plural(count: int, one: str, many: str = "") -> str:
    """1 node, 2,345 nodes."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def bytes_text(count: int) -> str:
    """1,234,567 bytes (1.2 MB)."""
    text = plural(count, "byte")
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{text} ({count / size:.1f} {unit})"
    return text
