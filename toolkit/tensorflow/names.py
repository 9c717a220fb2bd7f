"""From TensorFlow's names to what implements them.

A name is looked for, in this order:

1. in the tables (`toolkit/tensorflow/tables`, a file for each family of names): "nn.dropout" to the module of
   `toolkit/tensorflow/families` that has it;
2. among the spellings of older releases and of TensorFlow's internal modules (`tables.spellings`, `internal`);
3. in the exported facts (`toolkit.tensorflow.api`): an alias leads to its canonical name, dtypes, plain constants,
   protobuf messages and functions that are one op need no row.

A name stands in one table only, under its canonical name; another one is a mistake and raises.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from typing import Any

from toolkit.errors import BugError, did_you_mean
from toolkit.tensorflow import api, internal
from toolkit.tensorflow.deprecation import warn_once
from toolkit.tensorflow.ragged_dispatch import dispatched
from toolkit.tensorflow.tables import FAMILIES, missing, spellings


@functools.cache
def table() -> dict[str, tuple[str, str]]:
    """Dotted name to (module, attribute), of all families.

    Raises:
        BugError: a name stands in two places.
    """
    found: dict[str, tuple[str, str]] = {}
    for family in FAMILIES:
        homes: dict[str, str] = importlib.import_module(f"toolkit.tensorflow.tables.{family}").HOMES
        for module, names in homes.items():
            for entry in names.split():
                name, _, attribute = entry.partition("=")
                if name in found:
                    raise BugError("the tables of TensorFlow's names", ValueError(f"tf.{name} stands in two places"))
                found[name] = (module, attribute or name.rsplit(".", 1)[-1])
    return found


@functools.cache
def _modules() -> frozenset[str]:
    """Every module there is: of the facts, and those that rows and spellings are in."""
    found: set[str] = set()
    whole = {*api.modules(), *spellings.SEARCHED, *internal.facts()}
    for name in [*table(), *spellings.ALIASES, *whole]:
        parts = name.split(".")
        stop = len(parts) + 1 if name in whole else len(parts)
        found.update(".".join(parts[:length]) for length in range(1, stop))
    return frozenset(found - _classes())


def _classes() -> set[str]:
    """Rows that have rows below them and are no modules."""
    return {name for name in table() if api.fact(name) is not None}


def is_module(name: str) -> bool:
    return name in _modules()


def modules() -> list[str]:
    return sorted(_modules())


_ABSENT = object()


@functools.cache
def _use_graphs() -> None:
    """Whoever uses TensorFlow's names gets default graphs of TensorFlow's kind."""
    importlib.import_module("toolkit.tensorflow.families.framework.graph")


@functools.lru_cache(None)
def find(name: str) -> Any:
    """What a dotted name stands for, without a warning; `ABSENT` where there is nothing."""
    row = table().get(name)
    if row is not None:
        _use_graphs()
        return dispatched(name, getattr(importlib.import_module(row[0]), row[1]))
    other = spellings.ALIASES.get(name)
    if other is not None:
        return find(other)
    known = api.fact(name)
    if known is not None:
        return find(known.canonical) if known.canonical != name else _from_fact(known)
    prefix, _, short = name.rpartition(".")
    if name.startswith("python.") and prefix not in spellings.OP_MODULES:
        public = internal.public_name(name)
        value = _ABSENT if public is None else find(public)
        if value is not _ABSENT:
            return value
    for searched in spellings.SEARCHED.get(prefix, _homes(prefix)):
        value = find(f"{searched}.{short}" if searched else short)
        if value is not _ABSENT:
            return value
    if prefix.startswith("core.") and prefix.endswith("_pb2"):
        return _in_messages(prefix, short)
    if prefix and isinstance(holder := find(prefix), type):
        return getattr(holder, short, _ABSENT)
    if prefix == "raw_ops":
        return _raw_op(short)
    if prefix in spellings.OP_MODULES:
        return _raw(short.removeprefix("_"))  # as releases before 1.10 have many
    return _ABSENT


def _homes(module: str) -> tuple[str, ...]:
    public = internal.home(module)
    return () if public is None else (public,)


def _in_messages(module: str, short: str) -> Any:
    """What a module of protobuf messages, "core.framework.step_stats_pb2", has under a name."""
    try:
        messages = importlib.import_module("schemas." + module.rpartition(".")[2])
    except ImportError:
        return _ABSENT
    return getattr(messages, short, _ABSENT)


ABSENT = _ABSENT


def _from_fact(known: api.Fact) -> Any:
    """What needs no row: the fact says all there is to it."""
    match known.kind:
        case "dtype":
            from toolkit.graph import dtypes

            return dtypes.from_enum(known.detail["value"])
        case "constant" if "value" in known.detail:
            return known.detail["value"]
        case "message":
            return _message(known.detail["message"])
        case "op":
            from toolkit.graph import opdefs

            _use_graphs()
            from toolkit.tensorflow.generated import op_function

            if known.detail["op"] not in opdefs.names():
                return _ABSENT
            return dispatched(known.canonical, op_function(known, find))
        case _:
            return _ABSENT


@functools.cache
def _message_modules() -> dict[str, str]:
    """Message name to the module of `schemas` that has it."""
    import re
    from pathlib import Path

    import schemas

    found: dict[str, str] = {}
    for path in sorted(Path(schemas.__file__).parent.glob("*.proto")):
        for match in re.finditer(r"^message (\w+)", path.read_text(), re.MULTILINE):
            found[match[1]] = f"schemas.{path.stem}_pb2"
    return found


def _is_message(known: api.Fact) -> bool:
    """Whether a name is a message of protocol buffers that the schemas have."""
    return known.kind == "message" and _outer(known.detail["message"])[0] in _message_modules()


def _outer(full_name: str) -> list[str]:
    """The parts of a message's name, the outermost message first."""
    return full_name.removeprefix("tensorflow.").removeprefix("tfprof.").split(".")


def _message(full_name: str) -> Any:
    outer, *inner = _outer(full_name)
    module = _message_modules().get(outer)
    if module is None:
        return _ABSENT
    value = getattr(importlib.import_module(module), outer)
    for part in inner:
        value = getattr(value, part)
    return value


def _raw(short: str) -> Any:
    """The function of an op by its name in snake case, as TensorFlow's gen_ modules have it."""
    from toolkit.client import ops

    return getattr(ops, short) if short in dir(ops) else _ABSENT


def _raw_op(op: str) -> Any:
    """An op's function in tf.raw_ops."""
    from toolkit.tensorflow.families.ops import raw_ops

    _use_graphs()
    return raw_ops.function(op) if op in raw_ops.names() else _ABSENT


def exists(name: str) -> bool:
    """Whether a dotted name stands for something here."""
    return find(name) is not _ABSENT or is_module(name)


def resolve(name: str, *, warn: bool = True) -> Any:
    """What a dotted name stands for.

    Args:
        warn: say, once, where the name is deprecated.

    Raises:
        AttributeError: nothing; says what the name is in TensorFlow, why it is not here, and the nearest that is.
    """
    value = find(name)
    if value is _ABSENT:
        raise AttributeError(absent(name))
    known = api.fact(name)
    if not warn:
        return value
    if name in spellings.DEPRECATED:
        warn_once(name, spellings.ALIASES.get(name, ""))
    elif known is not None and known.is_deprecated and name not in spellings.CURRENT:
        warn_once(name, known.canonical)
    return value


def absent(name: str) -> str:
    """One line about a name that is not here."""
    known = api.fact(name)
    near = _near(name)
    if known is not None and known.kind == "module":
        inside = next((n for n in missing.rows() if n.startswith(name + ".")), name)
        reason = missing.reason(inside) or missing.reason(name)
        why = f" ({reason})" if reason else ""
        return f"tf.{name} is a module of TensorFlow 1 that graphmill does not have{why}"
    if known is not None:
        reason = missing.reason(known.canonical)
        why = f" ({reason})" if reason else ""
        return f"tf.{name} is a {known.kind} of TensorFlow 1 that graphmill does not have{why}{near}"
    reason = missing.reason(name) or internal.instead(name)
    if reason:
        return f"tf.{name} is not here: {reason}{near}"
    holder = name.rpartition(".")[0]
    if name in internal.all_modules():
        return f"tf.{name} is a module of TensorFlow 1.15 that graphmill does not have{near}"
    if holder in internal.all_modules() and not is_module(holder):
        return f"tf.{name}: graphmill does not have the module tf.{holder} of TensorFlow 1.15{near}"
    return f"there is no tf.{name}{near}"


def _near(name: str) -> str:
    """A hint at names that may be meant: in the same module, of the same last part, or of nearly the same one."""
    module, _, last = name.rpartition(".")
    by_last: dict[str, list[str]] = {}
    for each in available():
        by_last.setdefault(each.rpartition(".")[2], []).append(each)
    beside = [each for each in available() if each.rpartition(".")[0] == module]
    hint = did_you_mean(f"tf.{name}", [f"tf.{each}" for each in beside]) if module else ""
    if hint and last in hint:
        return hint
    found = sorted(by_last.get(last, []), key=len)
    if not found and not hint:
        close = difflib.get_close_matches(last, by_last, n=3, cutoff=0.75)
        found = [min(by_last[each], key=len) for each in close]
    if not found:
        return hint
    return "; did you mean " + " or ".join(f"'tf.{each}'" for each in found[:3]) + "?"


@functools.cache
def available() -> tuple[str, ...]:
    """Every public name that can be had here, sorted."""
    found = set(table()) | set(spellings.ALIASES)
    for name in (*api.names(), *api.dropped()):
        known = api.fact(name)
        assert known is not None
        canonical = known.canonical
        known_by_facts = known.kind in ("dtype", "op") or "value" in known.detail or _is_message(known)
        if canonical in table() or known_by_facts:
            found.add(name)
    return tuple(sorted(found))


def below(prefix: str) -> list[str]:
    """The names directly inside a module; "" is the root."""
    if prefix == "raw_ops":
        from toolkit.tensorflow.families.ops import raw_ops

        return raw_ops.names()
    start = prefix + "." if prefix else ""
    names = [*available(), *modules()]
    return sorted({name[len(start) :].split(".")[0] for name in names if name.startswith(start)})
