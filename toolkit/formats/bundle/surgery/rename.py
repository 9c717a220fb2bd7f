"""Renaming tensors, and going between name-based and object-based checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from toolkit.errors import InvalidArgumentError, NotFoundError, UsageError, did_you_mean
from toolkit.formats import io
from toolkit.formats.bundle.object_graph import KEY, ObjectGraph, find_object_graph, from_names, read_object_graph
from toolkit.formats.bundle.patterns import REGEX
from toolkit.formats.bundle.source import TensorSource
from toolkit.formats.bundle.surgery.prune import graph_item
from toolkit.formats.bundle.transfer import copy_of, write_items
from toolkit.formats.expressions import MalformedError, compile_expression, compile_glob
from toolkit.formats.settings.documents import load_json

#: names in a message
_SHOWN = 3


def parse_rules(rules: Sequence[str]) -> list[tuple[str, str]]:
    """Read "OLD=NEW" texts.

    Raises:
        UsageError: one has no "=".
    """
    found: list[tuple[str, str]] = []
    for rule in rules:
        old, sign, new = rule.partition("=")
        if not sign or not old:
            raise UsageError(f"'{rule}' is no rule: expected OLD=NEW, e.g. 'dense/*=model/dense/*'")
        found.append((old, new))
    return found


def read_rules(path: str | Path) -> list[tuple[str, str]]:
    """Read rules from a file: a JSON object, or lines of OLD=NEW ("#" starts a comment).

    Raises:
        UsageError: it is neither.
    """
    try:
        text = io.read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("not a table of names: it is not UTF-8 text", file=str(path)) from None
    if text.lstrip().startswith("{"):
        return [(str(old), str(new)) for old, new in load_json(text, str(path)).items()]
    lines = [line.strip() for line in text.splitlines()]
    return parse_rules([line for line in lines if line and not line.startswith("#")])


def apply_rules(
    names: Sequence[str], rules: Sequence[tuple[str, str]], file: str | None, kind: str = "tensor"
) -> dict[str, str]:
    """New names for old ones; the first rule that matches a name counts.

    A rule's OLD is a name, a glob whose `*` stand for the same `*` in NEW, or "re:EXPRESSION" whose groups NEW may
    use as \\1; an expression is replaced wherever it is found in a name.

    Args:
        file: for errors.
        kind: what messages call the thing that has the name.

    Raises:
        NotFoundError: a rule matches no name.
        InvalidArgumentError: two tensors would have one name, or one none.
        UsageError: the stars of a rule do not fit together, or an expression is wrong.
    """
    table: dict[str, str] = {}
    used: set[str] = set()
    compiled = [(old, _compile(old, new)) for old, new in rules]
    for name in names:
        for old, rule in compiled:
            renamed = rule(name)
            if renamed is not None:
                used.add(old)
                if renamed != name:
                    table[name] = renamed
                break
    for old, _ in compiled:
        if old not in used:
            raise NotFoundError(f"no {kind} matches '{old}'{did_you_mean(old, names)}", file=file)
    counts = Counter(table.get(name, name) for name in names)
    for name, new in table.items():
        if not new:
            raise InvalidArgumentError(f"'{name}' would have an empty name", file=file)
        if counts[new] > 1:
            others = [repr(other) for other in names if table.get(other, other) == new]
            more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
            raise InvalidArgumentError(f"{' and '.join(others[:_SHOWN])}{more} would all be called '{new}'", file=file)
    return table


def _compile(old: str, new: str) -> Callable[[str], str | None]:
    try:
        if old.startswith(REGEX):
            expression = compile_expression(old[len(REGEX) :])
            compile_expression(f"(?:)|{old[len(REGEX) :]}").sub(new, "")  # it matches: NEW may name no other groups
            return lambda name: expression.sub(new, name) if expression.search(name) else None
        if "*" not in old:
            return lambda name: new if name == old else None
        if new.count("*") > old.count("*"):
            raise UsageError(f"'{old}={new}': NEW has more stars than OLD")
        glob = compile_glob(old)
    except (MalformedError, IndexError) as error:
        raise UsageError(f"'{old}={new}' is not a usable expression: {error}") from None

    def rename(name: str) -> str | None:
        match = glob.fullmatch(name)
        if match is None:
            return None
        first, *rest = new.split("*")
        return first + "".join(group + part for group, part in zip(match.groups(), rest, strict=False))

    return rename


def rename(source: TensorSource, target: str | Path, table: Mapping[str, str]) -> None:
    """Copy a checkpoint with other names; the object graph of an object-based one follows.

    Raises:
        GraphmillError: reading or writing failed.
    """
    objects = find_object_graph(source)
    items = [copy_of(source, name, table.get(name, name)) for name in source if name != KEY or objects is None]
    if objects is not None:
        items.append(graph_item(objects.renamed(lambda key: table.get(key, key))))
    write_items(target, items)


def names_of(source: TensorSource) -> dict[str, str]:
    """The full names of an object-based checkpoint's variables, by key.

    Raises:
        NotFoundError: the checkpoint is name-based already.
        InvalidArgumentError: two variables have one full name (Keras 3 names many "kernel"), or one has none.
    """
    full = read_object_graph(source).keys()
    table: dict[str, str] = {}
    for name in source:
        if name != KEY:
            if not full.get(name):
                raise InvalidArgumentError(f"tensor '{name}' has no full name in the object graph", file=source.prefix)
            table[name] = full[name]
    counts = Counter(table.values())
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise InvalidArgumentError(
            f"{len(twice)} full names belong to several variables each, such as '{twice[0]}'; rename by pattern",
            file=source.prefix,
        )
    return table


def to_names(source: TensorSource, target: str | Path) -> dict[str, str]:
    """Make a name-based checkpoint of an object-based one: variables get their full names back.

    Returns:
        The new names by key.

    Raises:
        GraphmillError: see `names_of`; or writing failed.
    """
    table = names_of(source)
    write_items(target, [copy_of(source, name, new) for name, new in table.items()])
    return table


def keys_for(source: TensorSource, like: TensorSource | None = None) -> tuple[dict[str, str], ObjectGraph]:
    """The keys that the tensors of a name-based checkpoint get in an object-based one, by name, and its objects.

    Args:
        like: an object-based checkpoint of the same model: variables get the keys that its graph gives to their
            full names. Without it, the objects are nested as the slashes in the names say.

    Raises:
        InvalidArgumentError: the checkpoint is object-based already, or `like` lacks a variable.
    """
    if KEY in source:
        raise InvalidArgumentError("the checkpoint is object-based already", file=source.prefix)
    if like is None:
        objects, keys = from_names(list(source))
    else:
        objects = read_object_graph(like)
        by_name = {full: key for key, full in objects.keys().items()}
        missing = [name for name in source if name not in by_name]
        if missing:
            raise InvalidArgumentError(
                f"{len(missing)} tensors have no object in '{like.prefix}', such as '{missing[0]}'"
                f"{did_you_mean(missing[0], by_name)}",
                file=source.prefix,
            )
        keys = {name: by_name[name] for name in source}
        objects = objects.without(set(objects.keys()) - set(keys.values()))
    return keys, objects


def to_objects(source: TensorSource, target: str | Path, like: TensorSource | None = None) -> dict[str, str]:
    """Make an object-based checkpoint of a name-based one.

    Args:
        like: see `keys_for`.

    Returns:
        The new keys by name.

    Raises:
        GraphmillError: see `keys_for`; or writing failed.
    """
    keys, objects = keys_for(source, like)
    items = [copy_of(source, name, keys[name]) for name in source]
    write_items(target, [*items, graph_item(objects)])
    return keys
