"""Kinds that are one of several: told by the value's form, by the text under a key, by the key that is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.formats.schema.containers import Key, ListOf, Record
from toolkit.formats.schema.definitions import Definitions, Json
from toolkit.formats.schema.kinds import Kind, form_of, is_mapping
from toolkit.formats.schema.mistakes import Mistakes
from toolkit.formats.schema.scalars import Text
from toolkit.formats.settings.tree import YamlItem


@dataclass(frozen=True)
class OneOf(Kind):
    """What one of several kinds takes: the first that knows values of this form.

    Kinds that know the same form, such as two mappings, are to be told apart by `ByTag` or `ByKey`.
    """

    kinds: tuple[Kind, ...]

    def __init__(self, *kinds: Kind):
        object.__setattr__(self, "kinds", kinds)

    @property
    def noun(self) -> str:  # type: ignore[override]
        return _either([kind.noun for kind in self.kinds])

    @property
    def forms(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset[str]().union(*(kind.forms for kind in self.kinds))

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        form = form_of(item)
        for kind in self.kinds:
            if form in kind.forms:
                kind.check(item, mistakes)
                return
        mistakes.add(item.error(f"expected {self.noun}, found {item.describe()}"))

    def json(self, definitions: Definitions) -> Json:
        return {"anyOf": [kind.json(definitions) for kind in self.kinds]}


def one_or_more(kind: Kind) -> OneOf:
    """A value, or a list of them."""
    return OneOf(kind, ListOf(kind))


@dataclass(frozen=True)
class ByTag(Kind):
    """A record whose keys depend on the text under one of them.

    Attributes:
        tag: the key, "type".
        records: text to the record's other keys.
        default: the text that holds when the key is missing; None: the key must be there.
        plain: the text alone may stand for a record with nothing else.
    """

    tag: str
    records: Mapping[str, Mapping[str, Key]]
    default: str | None = None
    plain: bool = False
    noun: str = "a mapping"

    @property
    def forms(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"mapping", "text"}) if self.plain else frozenset({"mapping"})

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        tag = Text(tuple(self.records))
        if self.plain and isinstance(item.value, str):
            tag.check(item, mistakes)
            if item.value in self.records:
                self._missing(item, self.records[item.value], mistakes)
            return
        if not is_mapping(item, mistakes, self.noun):
            return
        section = item.section()
        found = section.get(self.tag)
        if found is None and self.default is None:
            mistakes.add(item.error(f"the key '{self.tag}' is missing"))
            return
        if found is not None:
            tag.check(found, mistakes)
        name = self.default if found is None else found.value
        if isinstance(name, str) and name in self.records:
            Record({self.tag: Key(tag)} | dict(self.records[name])).check(item, mistakes)

    def _missing(self, item: YamlItem, keys: Mapping[str, Key], mistakes: Mistakes) -> None:
        for key, known in keys.items():
            if known.required:
                mistakes.add(item.error(f"'{item.value}' needs '{key}': {{{self.tag}: {item.value}, {key}: ...}}"))

    def json(self, definitions: Definitions) -> Json:
        names = list(self.records)
        choices: list[Json] = []
        for name, keys in self.records.items():
            tag = Key(Text((name,)), required=name != self.default)
            choices.append(Record({self.tag: tag} | dict(keys)).json(definitions))
        if self.plain:
            choices.append({"enum": [n for n in names if not any(k.required for k in self.records[n].values())]})
        return {"anyOf": choices}


@dataclass(frozen=True)
class ByKey(Kind):
    """A record, of which one of some keys tells what else it has.

    Attributes:
        records: the key that tells, to the record.
        written_out: further ones that documents have, which are replaced before they are checked.
    """

    records: Mapping[str, Kind]
    written_out: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    noun: str = "a mapping"

    forms = frozenset({"mapping"})

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        if not is_mapping(item, mistakes):
            return
        found = [key for key in self.records if key in item.section()]
        with mistakes.within(item, is_entry=True):
            if len(found) == 1:
                self.records[found[0]].check(item, mistakes)
            else:
                mistakes.add(
                    item.error(
                        f"each entry has exactly one of the keys {_either([*self.records, *self.written_out], 'and')}"
                    )
                )

    def json(self, definitions: Definitions) -> Json:
        kinds = [*self.records.values(), *self.written_out.values()]
        return {"anyOf": [kind.json(definitions) for kind in kinds]}


def _either(nouns: Sequence[str] | Iterable[str], word: str = "or") -> str:
    """`a, b or c`."""
    *most, last = dict.fromkeys(nouns)
    return f"{', '.join(most)} {word} {last}" if most else last
