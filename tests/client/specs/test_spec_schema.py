"""Every key that a spec may have, with a value that it may not: the place, the key and what was expected are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.client.specs.test_spec_language import mistakes
from toolkit.client.spec.document import SECTIONS
from toolkit.formats.schema.choices import ByKey, ByTag, OneOf
from toolkit.formats.schema.containers import Key, ListOf, MapOf, Record
from toolkit.formats.schema.kinds import Kind
from toolkit.formats.schema.named import Lazy, Named

#: a value of each form that is right nowhere
WRONG = {"mapping": {"qq": 1}, "list": [["qq"]], "text": "qq:qq qq", "number": -987654.5, "boolean": True}
#: what stands for others and is written out before the document is looked at has tests of its own (test_spec_language)
WRITTEN_OUT = ("parameters", "include")

Wrap = Callable[[Any], Any]


class Place(NamedTuple):
    """Where a value may stand.

    Attributes:
        where: as messages name it.
        kind: what it may be.
        wrap: from a value to a document that has it there.
        last: of the text of such a document: what stands at the place, the value not included.
    """

    where: str
    kind: Kind
    wrap: Wrap
    last: str


def places(where: str, kind: Kind, wrap: Wrap, seen: tuple[str, ...] = ()) -> Iterator[Place]:
    """All places inside of a value of a kind; lists of entries inside of entries once."""
    dot = f"{where}." if where else ""
    match kind:
        case Named() | Lazy():
            if kind.name not in seen:
                inner = kind.kind if isinstance(kind, Named) else kind.find()
                yield from places(where, inner, wrap, (*seen, kind.name))
        case OneOf():
            for each in kind.kinds:
                yield from places(where, each, wrap, seen)
        case ListOf():
            yield from at(f"{where}[0]", kind.kind, lambda value: wrap([value]), "", seen)
        case MapOf():
            for name, each in {"n": kind.kind, **kind.by_name}.items():
                yield from at(f"{dot}{name}", each, keyed(wrap, name), name, seen)
        case Record():
            yield from of_keys(dot, kind.keys, wrap, {}, seen)
        case ByTag():
            for name, keys in kind.records.items():
                yield from of_keys(dot, keys, wrap, {kind.tag: name}, seen)
        case ByKey():
            for name, each in kind.records.items():
                found = each.find() if isinstance(each, Lazy) else each
                if isinstance(found, Record):
                    yield from of_keys(dot, found.keys, wrap, {name: "x"}, seen)
                else:
                    yield from places(where, found, wrap, seen)
        case _:
            pass


def keyed(wrap: Wrap, name: str, beside: dict[str, Any] | None = None) -> Wrap:
    return lambda value: wrap({key: other for key, other in (beside or {}).items() if key != name} | {name: value})


def of_keys(
    dot: str, keys: Any, wrap: Wrap, beside: dict[str, Any], seen: tuple[str, ...]
) -> Iterator[Place]:  # fmt: skip
    key: Key
    for name, key in keys.items():
        yield from at(f"{dot}{name}", key.kind, keyed(wrap, name, beside), name, seen)


def at(where: str, kind: Kind, wrap: Wrap, last: str, seen: tuple[str, ...]) -> Iterator[Place]:
    yield Place(where, kind, wrap, last)
    yield from places(where, kind, wrap, seen)


def wrong_value(kind: Kind) -> Any:
    """A value of a form that the kind does not take; None where it takes all."""
    forms = set(kind.forms)
    if isinstance(kind, Named | Lazy):
        forms = set((kind.kind if isinstance(kind, Named) else kind.find()).forms)
    return next((value for form, value in WRONG.items() if form not in forms), None)


@pytest.mark.parametrize("section", [name for name in SECTIONS if name not in WRITTEN_OUT])
def test_wrong_values_of_every_key_are_told_with_their_place(section: str) -> None:
    kind = SECTIONS[section].kind
    found = [Place(section, kind, lambda value: {section: value}, section)]
    found += places(section, kind, lambda value: {section: value})
    looked_at = 0
    for place in found:
        value = wrong_value(place.kind)
        if value is None:
            continue
        text = json.dumps(place.wrap(value))
        column = text.rindex(json.dumps({place.last: value})[1:-1] if place.last else json.dumps(value)) + 1
        told = mistakes(text)
        start = f"s.yaml:1:{column}: {place.where}: expected "
        assert any(line.startswith(start) and ", found " in line for line in told), f"{text}\n{start}\n" + "\n".join(
            told
        )
        looked_at += 1
    assert looked_at, "no key of the section can be wrong"
