"""The texts behind `graphmill help`, and manual pages made of them.

A topic is a file in `commands/topics`, or the docstrings of the modules that do what it explains: there is one text
for readers of the code and for readers of the manual.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from commands import checkpoint, cluster
from commands.main import COMMANDS, app
from toolkit.errors import UsageError, did_you_mean

_RECORDS = "toolkit/runtime/jobs/record_feeds.py"
#: commands that have commands of their own
GROUPS = {"checkpoint": checkpoint.COMMANDS, "cluster": cluster.COMMANDS}
#: topic to (one line about it, what it is made of: a text of `topics`, or files whose docstrings it is)
TOPICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "formats": ("files that are read and written", ("formats.txt",)),
    "queries": ("the language of inspect --where", ("toolkit/graph/query.py",)),
    "specs": ("the YAML that build reads", ("toolkit/client/spec/__init__.py",)),
    "edits": ("the YAML that edit takes, and its kinds of edits", ("toolkit/passes/edit/__init__.py",)),
    "feeds": (
        "what run --feed takes",
        (
            "toolkit/formats/arrays/given.py",
            "toolkit/runtime/jobs/random_feeds.py",
            "toolkit/runtime/jobs/record_feeds.py",
        ),
    ),
    "optimizations": ("what optimize does, its presets, what stays", ("optimizations.txt",)),
    "gtt": ("the Graph Transform Tool's transforms, and what does the same here", ("gtt.txt",)),
    "placement": ("how place finds a device for every node", ("placement.txt",)),
    "clusters": (
        "several processes that run graphs together; the files that say which devices there are, and how fast",
        ("clusters.txt", "toolkit/formats/settings/cluster.py", "toolkit/formats/settings/cluster_speeds.py"),
    ),
    "costs": ("measured times: what run --measure writes", ("toolkit/formats/settings/cost_file.py",)),
    "placement-rules": ("which nodes go where: place --rules", ("toolkit/formats/settings/placement_rules.py",)),
    "partitions": ("the folders that partition writes", ("toolkit/formats/folders/partitions.py",)),
    "rules": ("what validate looks for", ()),
    "configuration": ("graphmill.yaml and baselines", ("toolkit/passes/validate/config.py",)),
    "limits": ("what a run may use: memory, time, tensors; signals", ("limits.txt",)),
    "numerics": ("which numbers are promised, and --precision", ("numerics.txt",)),
    "trust": ("what a model may touch, --allow and --trust", ("trust.txt",)),
    "plugins": ("custom ops", ("toolkit/graph/plugins.py", "toolkit/kernels/plugins.py")),
    "exit-codes": ("0, 1, 2, 3, 70, 130, 143", ("exit-codes.txt",)),
    "shell": ("completion, messages, colour, the environment", ("shell.txt",)),
}
#: commands whose topic is shown behind their options
_ALSO = {"optimize": "optimizations"}


def text(words: Sequence[str]) -> str:
    """What to print for a topic, a command ("checkpoint prune" too) or a rule; the list of topics for nothing.

    Raises:
        UsageError: there is nothing of that name.
    """
    if not words:
        return _overview()
    first, *rest = words
    if first == "rules":
        return _rules(rest)
    if first in TOPICS and not rest:
        return _topic(first)
    if first in COMMANDS and (not rest or rest[0] in GROUPS.get(first, {})):
        more = f"\n{_topic(_ALSO[first])}" if first in _ALSO else ""
        return _command([first, *rest]) + more
    if "/" in first:
        return _rules([first])
    known = [*TOPICS, *COMMANDS]
    raise UsageError(
        f"there is no topic or command '{' '.join(words)}'" + did_you_mean(first, known, then="see: graphmill help")
    )


def _overview() -> str:
    width = max(map(len, [*TOPICS, *COMMANDS]))
    lines = ["graphmill help TOPIC:", ""]
    lines += [f"  {name:<{width}}  {summary}" for name, (summary, _) in TOPICS.items()]
    lines += ["", "graphmill help COMMAND: its options, and the JSON it prints", ""]
    lines += [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(lines) + "\n"


def _topic(name: str) -> str:
    if name == "rules":
        return _rules([])
    parts = [
        resources.files("commands").joinpath("topics", source).read_text(encoding="utf-8").strip()
        if source.endswith(".txt")
        else docstring(source)
        for source in TOPICS[name][1]
    ]
    if name == "specs":
        parts.append(_spec_tables())
    if name == "edits":
        from toolkit.passes.edit.table import describe

        parts.append(f"The kinds of edits, with their arguments:\n\n{describe().rstrip()}")
    if name == "gtt":
        from toolkit.passes.optimize.transforms import lines

        parts.append("\n".join(lines()))
    if name == "trust":
        parts.append(_outside())
    return "\n\n".join(parts) + "\n"


def docstring(path: str) -> str:
    """The docstring of a module of `toolkit` or `commands` by its path; the module is not imported."""
    package, _, rest = path.partition("/")
    source = resources.files(package).joinpath(*rest.split("/")).read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def _spec_tables() -> str:
    """The tables of specs: sections, entries, layers, losses, optimizers and the like with their keys."""
    from toolkit.client.spec import document, entries, inputs, layers, losses, training, values
    from toolkit.client.train import schedules
    from toolkit.client.variables import initializers

    tables: list[tuple[str, Mapping[str, str]]] = [
        ("Sections", {name: section.meaning for name, section in document.SECTIONS.items()}),
        ("Entries of nodes", {name: entry.meaning for name, entry in entries.ENTRIES.items()}),
        ("Layers", {name: ", ".join(sorted(layers.LAYERS[name].keys)) for name in sorted(layers.LAYERS)}),
        ("Activations", {"": ", ".join(values.ACTIVATIONS)}),
        ("Initializers", {name: ", ".join(values.INITIALIZERS[name]) for name in initializers.BY_NAME}),
        ("Inputs", {"": ", ".join(inputs.INPUT)}),
        ("Variables", {"": ", ".join(inputs.VARIABLE)}),
        ("Losses", {name: ", ".join(keys) for name, (keys, _) in losses.LOSSES.items()}),
        ("Of any loss", {"": ", ".join(["name", *losses.LOSS_KEYS])}),
        ("Metrics", {name: ", ".join(keys) for name, (keys, _) in losses.METRICS.items()}),
        ("Optimizers", {name: ", ".join(training.OPTIONS[name]) for name in training.OPTIMIZERS}),
        ("Of any optimizer", {"": ", ".join(["name", *training.common("sgd")])}),
        ("Schedules of learning rates", {name: ", ".join(training.SCHEDULES[name]) for name in schedules.BY_NAME}),
    ]
    lines: list[str] = []
    for title, rows in tables:
        width = max(map(len, rows))
        margin = " " * (width + 4)
        lines += [f"{title}:", ""]
        for name, text in rows.items():
            head = f"  {name:<{width}}  " if name else "  "
            lines.append(textwrap.fill(f"{head}{text}".rstrip(), 110, subsequent_indent=margin if name else "  "))
        lines.append("")
    return "\n".join(lines).rstrip()


def _outside() -> str:
    """The table of ops that reach outside, by class."""
    from toolkit.policy import outside

    lines = ["The ops that reach outside, by what --allow calls it; (*) goes on with what another one opened:", ""]
    for reach in outside.Reach:
        ops = {op: row for op, rows in outside.table() for row in rows if row.reach is reach}
        if ops:
            switch = f"{reach.switch}=DIR" if reach.on_paths else reach.switch
            lines.append(f"  {switch}: {outside.MEANING[reach]}")
            listed = ", ".join(f"{op}(*)" if ops[op].through else op for op in sorted(ops))
            lines.append(textwrap.fill(listed, 110, initial_indent="      ", subsequent_indent="      "))
    return "\n".join(lines)


def _rules(words: Sequence[str]) -> str:
    """All rules, those of a family, or one in full."""
    from toolkit.passes.validate import registry

    rules = registry.all_rules()
    chosen = [name for word in words for name in registry.matching(word)] if words else list(rules)
    if not chosen:
        raise UsageError(f"there is no rule '{words[0]}'{did_you_mean(words[0], [*registry.FAMILIES, *rules])}")
    lines: list[str] = []
    if not words:
        lines = ["What `graphmill validate` looks for. Severities are changed, and rules turned off, with --rule or in",
                 "graphmill.yaml (see: graphmill help configuration).", ""]  # fmt: skip
    for name in chosen:
        rule = rules[name]
        lines += [f"{name} ({rule.severity.label})", f"    {rule.summary}", f"    fix: {rule.fix}"]
    return "\n".join(lines) + "\n"


def _command(words: Sequence[str]) -> str:
    """The help of a command, and what its module says about JSON and exit codes."""
    module = COMMANDS[words[0]][0] if len(words) == 1 else GROUPS[words[0]][words[1]][0]
    path = module.replace(".", "/")
    is_package = len(words) == 1 and words[0] in GROUPS
    more = docstring(f"{path}/__init__.py" if is_package else f"{path}.py").partition("\n\n")[2].strip()
    return _help_of(words) + (f"\n{more}\n" if more else "")


def _help_of(words: Sequence[str]) -> str:
    """What --help prints."""
    return _context(words).get_help() + "\n"


def _context(words: Sequence[str]) -> Any:
    from typer.main import get_command

    command: Any = get_command(app)
    context = command.make_context("graphmill", [], resilient_parsing=True)
    for word in words:
        command = command.get_command(context, word)
        context = command.make_context(word, [], parent=context, resilient_parsing=True)
    return context


# -- manual pages ----------------------------------------------------------------------------------------


def write_pages(folder: str) -> int:
    """Write a manual page for every command and topic into a folder; returns how many.

    Raises:
        GraphmillError: a page cannot be written.
    """
    from pathlib import Path

    from toolkit.errors import GraphmillError
    from toolkit.formats.io import write_atomic

    pages = dict(_pages())
    root = Path(folder)
    try:
        for section in ("man1", "man7"):
            (root / section).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GraphmillError(f"cannot be made: {error.strerror}", file=folder) from None
    for name, content in pages.items():
        write_atomic(root / f"man{name[-1]}" / name, content.encode())
    return len(pages)


def _pages() -> list[tuple[str, str]]:
    pages = [("graphmill.1", _page("graphmill", "1", "TensorFlow's graph lifecycle as Unix tools", _help_of([])))]
    for name, (_, summary) in COMMANDS.items():
        pages.append((f"graphmill-{name}.1", _page(f"graphmill-{name}", "1", summary, _command([name]))))
    for group, commands in GROUPS.items():
        for name, (_, summary) in commands.items():
            page = f"graphmill-{group}-{name}"
            pages.append((f"{page}.1", _page(page, "1", summary, _command([group, name]))))
    for name, (summary, _) in TOPICS.items():
        pages.append((f"graphmill-{name}.7", _page(f"graphmill-{name}", "7", summary, _topic(name))))
    return pages


def _page(name: str, section: str, summary: str, body: str) -> str:
    """A page in roff: the text as it is printed, so that tables and examples keep their form."""
    others = ", ".join(f"graphmill-{topic}(7)" for topic in TOPICS if name != f"graphmill-{topic}")
    lines = [
        f'.TH "{name.upper()}" "{section}" "" "graphmill" "graphmill"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(summary.rstrip('.'))}",
        ".SH DESCRIPTION",
        ".nf",
        *map(_roff, body.rstrip().splitlines()),
        ".fi",
        ".SH SEE ALSO",
        _roff(f"graphmill(1), {others}"),
    ]
    return "\n".join(lines) + "\n"


#: signs that roff turns into others
_SIGNS = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"})


def _roff(line: str) -> str:
    """A line that roff prints as it is."""
    escaped = line.translate(_SIGNS)
    return "\\&" + escaped if escaped.startswith(".") else escaped
