"""What a YAML document may say: kinds of values, each of which checks a value and describes itself as JSON Schema.

A document is described once, as a tree of kinds. `Kind.check` walks a document along with it and notes every mistake,
with file, line and column; `json_schema` writes the same tree as JSON Schema (draft 2020-12) for editors. That two
names fit each other, or two sizes, is beyond a schema: whoever reads the document says so.

| kind | takes |
|---|---|
| Anything | what nobody checks here |
| Boolean, Integer, Number, Text | one value, with bounds or choices |
| DTypeName, DeviceName | text that names one |
| ListOf, OneOrMore, MapOf | a list; a value or a list of them; a mapping whose keys are free |
| Record | a mapping with known keys |
| OneOf | what one of several kinds takes, told by the value's form |
| ByTag | a record, which one by the text under a key: {type: adam, ...} |
| ByKey | a record, which one by the key that is there: {layer: ...} or {op: ...} |
| Named | a kind that has a name, which JSON Schema refers to |
| Lazy | a kind that is named before it exists, for trees that contain themselves |
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import GraphmillError, did_you_mean
from toolkit.formats.tree import SpecError, YamlItem, dtype_of
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec

_NUMBER = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

Json = dict[str, Any]


class Mistakes:
    """What is wrong with a document, and with which of its values."""

    def __init__(self) -> None:
        self.errors: list[GraphmillError] = []
        self._said: set[tuple[str | None, str]] = set()
        self._open: list[tuple[YamlItem, bool]] = []
        self._wrong: set[int] = set()

    def __len__(self) -> int:
        return len(self.errors)

    def add(self, error: GraphmillError) -> None:
        """Note a mistake, once, of the values that are being checked."""
        if (error.file, error.message) not in self._said:
            self._said.add((error.file, error.message))
            self.errors.append(error)
        for item, is_entry in reversed(self._open):
            self._wrong.add(id(item))
            if is_entry:
                break

    @contextmanager
    def within(self, item: YamlItem, is_entry: bool = False) -> Generator[None]:
        """Within this, mistakes are also those of `item`; those of an entry are not those of what it is in."""
        self._open.append((item, is_entry))
        yield
        self._open.pop()

    def has(self, item: YamlItem) -> bool:
        """Whether something is wrong with a value, or in it outside of the entries in it."""
        return id(item) in self._wrong


class Definitions:
    """The parts of a JSON Schema that others refer to.

    Args:
        stand_in: a pattern of texts that may stand for any value, such as those that name a parameter.
    """

    def __init__(self, stand_in: str | None = None) -> None:
        self.made: dict[str, Json] = {}
        self._stand_in = stand_in

    def value(self, kind: Json) -> Json:
        """A single value, or what may stand for it."""
        if self._stand_in is None:
            return kind
        pattern = self._stand_in
        return {"anyOf": [kind, self.refer("parameter", lambda _: {"type": "string", "pattern": pattern})]}

    def refer(self, name: str, make: Callable[[Definitions], Json]) -> Json:
        """A reference to the definition of a name, which is made when it is first asked for."""
        if name not in self.made:
            self.made[name] = {}
            self.made[name] = make(self)
        return {"$ref": f"#/$defs/{name}"}


class Kind(ABC):
    """What a value may be.

    Attributes:
        noun: how messages call it, "a whole number".
        forms: of which forms a value is: "null", "boolean", "number", "text", "list", "mapping".
    """

    noun: str
    forms: frozenset[str]

    @abstractmethod
    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        """Note what is wrong with a value."""

    @abstractmethod
    def json(self, definitions: Definitions) -> Json:
        """The kind as JSON Schema."""


def _forms(*forms: str) -> frozenset[str]:
    return frozenset(forms)


def form_of(item: YamlItem) -> str:
    """The form of a value: "null", "boolean", "number", "text", "list" or "mapping"."""
    match item.value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case _:
            return "mapping"


class _Checked(Kind):
    """A kind whose reader raises at the first mistake, as those of `YamlItem` do."""

    @abstractmethod
    def read(self, item: YamlItem) -> Any:
        """The value.

        Raises:
            SpecError: it is of another kind.
        """

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        try:
            self.read(item)
        except SpecError as error:
            mistakes.add(error)


@dataclass(frozen=True)
class Anything(Kind):
    """Whatever it is: values of attributes and constants, which their ops check."""

    noun = "a value"
    forms = _forms("null", "boolean", "number", "text", "list", "mapping")

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        pass

    def json(self, definitions: Definitions) -> Json:
        return {}


@dataclass(frozen=True)
class Boolean(_Checked):
    noun = "true or false"
    forms = _forms("boolean")

    def read(self, item: YamlItem) -> bool:
        return item.boolean()

    def json(self, definitions: Definitions) -> Json:
        return definitions.value({"type": "boolean"})


@dataclass(frozen=True)
class Integer(_Checked):
    minimum: int | None = None

    noun = "a whole number"
    forms = _forms("number")

    def read(self, item: YamlItem) -> int:
        return item.integer(self.minimum)

    def json(self, definitions: Definitions) -> Json:
        return definitions.value({"type": "integer"} | _given(minimum=self.minimum))


@dataclass(frozen=True)
class Number(_Checked):
    """A number; `1e-3`, which YAML 1.1 takes for text, is one."""

    minimum: float | None = None
    maximum: float | None = None

    noun = "a number"
    forms = _forms("number", "text")

    def read(self, item: YamlItem) -> float:
        return item.number(self.minimum, self.maximum)

    def json(self, definitions: Definitions) -> Json:
        written = definitions.refer("number", lambda _: {"type": "string", "pattern": _NUMBER})
        number: Json = {"type": "number"} | _given(minimum=self.minimum, maximum=self.maximum)
        return definitions.value({"anyOf": [number, written]})


@dataclass(frozen=True)
class Text(_Checked):
    """Text, one of some words where `choices` are given."""

    choices: tuple[str, ...] = ()
    noun: str = "text"

    forms = _forms("text")

    def read(self, item: YamlItem) -> str:
        return item.text(self.choices or None)

    def json(self, definitions: Definitions) -> Json:
        return definitions.value({"enum": list(self.choices)}) if self.choices else {"type": "string"}


@dataclass(frozen=True)
class DTypeName(_Checked):
    noun = "a data type"
    forms = _forms("text")

    def read(self, item: YamlItem) -> Any:
        return dtype_of(item)

    def json(self, definitions: Definitions) -> Json:
        return definitions.refer("dtype", lambda made: made.value({"enum": dtypes.names()}))


@dataclass(frozen=True)
class DeviceName(_Checked):
    noun = "a device name"
    forms = _forms("text")

    def read(self, item: YamlItem) -> DeviceSpec:
        text = item.text()
        try:
            return DeviceSpec.parse(text)
        except GraphmillError as error:
            raise item.error(error.message) from None

    def json(self, definitions: Definitions) -> Json:
        return {"type": "string"}


@dataclass(frozen=True)
class ListOf(Kind):
    """A list.

    Attributes:
        lengths: how many elements it may have; any number where none is said.
        optional: null stands for an element that is not known.
    """

    kind: Kind
    lengths: tuple[int, ...] = ()
    optional: bool = False

    noun = "a list"
    forms = _forms("list")

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        if not isinstance(item.value, list):
            mistakes.add(item.error(f"expected a list, found {item.describe()}"))
            return
        elements = item.items()
        if self.lengths and len(elements) not in self.lengths:
            wanted = " or ".join(map(str, self.lengths))
            mistakes.add(item.error(f"expected {wanted} values, found {len(elements)}"))
        for element in elements:
            if not (self.optional and element.value is None):
                with mistakes.within(element):
                    self.kind.check(element, mistakes)

    def json(self, definitions: Definitions) -> Json:
        element = self.kind.json(definitions)
        made: Json = {"type": "array", "items": _or_null(element) if self.optional else element}
        if self.lengths:
            made |= {"minItems": min(self.lengths), "maxItems": max(self.lengths)}
        return made


def _is_mapping(item: YamlItem, mistakes: Mistakes, noun: str = "a mapping") -> bool:
    """Whether a value is a mapping; a mistake is noted where it is none."""
    if isinstance(item.value, dict):
        return True
    mistakes.add(item.error(f"expected {noun}, found {item.describe()}"))
    return False


@dataclass(frozen=True)
class MapOf(Kind):
    """A mapping whose keys the document chooses.

    Attributes:
        by_name: kinds of keys that mean something by themselves.
    """

    kind: Kind
    by_name: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    noun: str = "a mapping"

    forms = _forms("mapping")

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        if not _is_mapping(item, mistakes):
            return
        for key, value in item.section():
            with mistakes.within(value):
                self.by_name.get(key, self.kind).check(value, mistakes)

    def json(self, definitions: Definitions) -> Json:
        made: Json = {"type": "object", "additionalProperties": self.kind.json(definitions)}
        if self.by_name:
            made["properties"] = {name: kind.json(definitions) for name, kind in self.by_name.items()}
        return made


@dataclass(frozen=True)
class Key:
    """A key of a record: what its value is, and what it means.

    Attributes:
        default: what holds when it is missing, for people; None where nothing is to be said.
    """

    kind: Kind
    meaning: str = ""
    required: bool = False
    default: Any = None


@dataclass(frozen=True)
class Record(Kind):
    """A mapping with known keys; null stands for a key that is missing."""

    keys: Mapping[str, Key]
    noun: str = "a mapping"

    forms = _forms("mapping")

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        if not _is_mapping(item, mistakes):
            return
        section = item.section()
        place = f"{item.where}: " if item.where else ""
        meant: set[str] = set()
        for key, value in section:
            known = self.keys.get(key)
            if known is None:
                meant.update(difflib.get_close_matches(key, self.keys))
                hint = did_you_mean(key, self.keys)
                message = f"{place}unknown key '{key}'{hint} (expected: {', '.join(self.keys)})"
                mistakes.add(SpecError(message, file=value.place))
            elif value.value is not None:
                with mistakes.within(value):
                    known.kind.check(value, mistakes)
        for key, known in self.keys.items():
            if known.required and key not in section and key not in meant:
                mistakes.add(item.error(f"the key '{key}' is missing"))

    def json(self, definitions: Definitions) -> Json:
        properties: Json = {}
        for name, key in self.keys.items():
            described = {} if not key.meaning else {"description": key.meaning}
            default = {} if key.default is None else {"default": key.default}
            properties[name] = key.kind.json(definitions) | described | default
        made: Json = {"type": "object", "properties": properties, "additionalProperties": False}
        if required := [name for name, key in self.keys.items() if key.required]:
            made["required"] = required
        return made


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
        return _forms("mapping", "text") if self.plain else _forms("mapping")

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        tag = Text(tuple(self.records))
        if self.plain and isinstance(item.value, str):
            tag.check(item, mistakes)
            if item.value in self.records:
                self._missing(item, self.records[item.value], mistakes)
            return
        if not _is_mapping(item, mistakes, self.noun):
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

    forms = _forms("mapping")

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        if not _is_mapping(item, mistakes):
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


@dataclass(frozen=True)
class Named(Kind):
    """A kind that many places take, under a name that JSON Schema refers to."""

    name: str
    kind: Kind

    @property
    def noun(self) -> str:  # type: ignore[override]
        return self.kind.noun

    @property
    def forms(self) -> frozenset[str]:  # type: ignore[override]
        return self.kind.forms

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        self.kind.check(item, mistakes)

    def json(self, definitions: Definitions) -> Json:
        return definitions.refer(self.name, self.kind.json)


@dataclass(frozen=True)
class Lazy(Kind):
    """A kind that is found when it is needed, under a name that JSON Schema refers to."""

    name: str
    find: Callable[[], Kind] = field(compare=False)
    noun: str = "a value"
    forms: frozenset[str] = frozenset({"mapping", "list"})

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        self.find().check(item, mistakes)

    def json(self, definitions: Definitions) -> Json:
        return definitions.refer(self.name, lambda made: self.find().json(made))


def json_schema(kind: Kind, title: str, description: str, stand_in: str | None = None) -> Json:
    """A kind as a JSON Schema document (draft 2020-12).

    Null, which a document may give for every key that it could leave out, is not in it.

    Args:
        stand_in: see `Definitions`.
    """
    definitions = Definitions(stand_in)
    body = kind.json(definitions)
    head: Json = {"$schema": _DIALECT, "title": title, "description": description}
    return head | body | ({"$defs": definitions.made} if definitions.made else {})


def _given(**values: Any) -> Json:
    return {key: value for key, value in values.items() if value is not None}


def _or_null(kind: Json) -> Json:
    """A kind that may also be null."""
    if not kind:
        return kind
    if "anyOf" in kind:
        return kind | {"anyOf": [*kind["anyOf"], {"type": "null"}]}
    if isinstance(kind.get("type"), str) and "enum" not in kind:
        return kind | {"type": [kind["type"], "null"]}
    if set(kind) == {"enum"}:
        return {"enum": [*kind["enum"], None]}
    return {"anyOf": [kind, {"type": "null"}]}


def _either(nouns: Sequence[str] | Iterable[str], word: str = "or") -> str:
    """`a, b or c`."""
    *most, last = dict.fromkeys(nouns)
    return f"{', '.join(most)} {word} {last}" if most else last
