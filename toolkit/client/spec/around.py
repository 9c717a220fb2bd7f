"""What stands around the graph: the sections `summaries`, `saver`, `init`, `collections` and `signatures`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from toolkit.client.construction.tensor import Tensor
from toolkit.client.metagraphs.export import PREDICT_METHOD, predict_signature
from toolkit.client.spec.builder import FAILED, FollowError, SpecBuilder
from toolkit.client.spec.values import NAME, NAMES
from toolkit.client.train.saver import Saver
from toolkit.client.variables import by_collection
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import did_you_mean
from toolkit.formats.schema.choices import OneOf
from toolkit.formats.schema.containers import Key, MapOf, Record
from toolkit.formats.schema.kinds import Kind
from toolkit.formats.schema.scalars import Boolean, Integer, Number, Text
from toolkit.formats.settings.tree import YamlItem
from toolkit.graph.metagraph import GraphKeys, Signature

_TENSOR = Key(NAME, "what is written; by default what is named like the summary")
_FIRST = Key(Integer(1), "how many of a batch are written", default=3)
#: kinds of summaries with what each may say
_SUMMARIES: dict[str, dict[str, Key]] = {
    "scalar": {"tensor": _TENSOR},
    "histogram": {"tensor": _TENSOR},
    "image": {"tensor": _TENSOR, "max_outputs": _FIRST},
    "text": {"tensor": _TENSOR},
    "audio": {
        "tensor": _TENSOR,
        "sample_rate": Key(Number(0), "samples in a second", required=True),
        "max_outputs": _FIRST,
    },
}


def _summaries(keys: dict[str, Key]) -> Kind:
    """Names, where nothing more must be said; or options for each by the summary's name."""
    by_name = MapOf(Record(keys))
    return by_name if any(key.required for key in keys.values()) else OneOf(NAMES, by_name)


SUMMARIES = Record({
    kind: Key(_summaries(keys), f"what is written as {kind} summaries: names, or NAME: {{{', '.join(keys)}}}")
    for kind, keys in _SUMMARIES.items()
})  # fmt: skip


def build_summaries(spec: SpecBuilder, found: YamlItem) -> None:
    """Make summary operations, and one that merges them."""
    from toolkit.client.summaries import summary

    makers: dict[str, Callable[..., Tensor]] = {
        "scalar": summary.scalar, "histogram": summary.histogram, "image": summary.image, "text": summary.text,
        "audio": summary.audio,
    }  # fmt: skip
    for kind, entries in found.section():
        if kind not in makers or spec.mistakes.has(entries):
            continue
        for name, item, options in _written(entries):
            with spec.noting(item):
                makers[kind](name.replace(":", "_"), spec.tensor(item), **options)
    merged = summary.merge_all()
    if merged is not None:
        spec.graph.add_to_collection(GraphKeys.SUMMARY_OP, merged)


def _written(entries: YamlItem) -> Iterator[tuple[str, YamlItem, dict[str, Any]]]:
    """The name of each summary, the name of its tensor, and its options."""
    if not isinstance(entries.value, dict):
        for item in entries.texts():
            yield item.text(), item, {}
        return
    for name, item in entries.section():
        section = item.section()
        options = {key: value.plain() for key, value in section if key != "tensor"}
        yield name, section.get("tensor") or replace(item, value=name), options


SAVER = OneOf(
    Boolean(),
    Record({
        "max_to_keep": Key(Integer(0), "checkpoints that are kept; 0: all", default=5),
        "keep_checkpoint_every_n_hours": Key(Number(0), "how often one is kept for good", default=10000.0),
        "sharded": Key(Boolean(), "a file for each device", default=False),
        "variables": Key(NAMES, "what it saves; by default all variables"),
        "name": Key(NAME, "the scope of its operations"),
    }),
)  # fmt: skip


def build_saver(spec: SpecBuilder, found: YamlItem | None) -> None:
    """Make the saver: by default of all variables, where there are some."""
    stored = spec.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
    if found is not None and (found.value is False or spec.mistakes.has(found)):
        return
    if found is None or found.value is True:
        spec.saver = Saver() if stored else None
        if found is not None and not stored and not spec.mistakes.errors:
            spec.mistakes.add(found.error("there are no variables to save"))
        return
    with spec.noting(found):
        section = found.section()
        chosen = section.get("variables")
        name = section.get("name")
        if not stored and spec.mistakes.errors:
            raise FollowError("")
        spec.saver = Saver(
            None if chosen is None else [_variable(spec, i) for i in chosen.texts()],
            section.integer("max_to_keep", 5),
            section.number("keep_checkpoint_every_n_hours", 10000.0),
            name=None if name is None else name.text(),
            sharded=section.boolean("sharded", False),
        )


def _variable(spec: SpecBuilder, item: YamlItem) -> BaseVariable:
    name = item.text()
    by_name = {v.op.name: v for v in spec.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
    if name not in by_name:
        if spec.names.found.get(name.partition("/")[0]) is FAILED:
            raise FollowError("")
        raise item.error(f"there is no variable '{name}'{did_you_mean(name, by_name)}")
    return by_name[name]


def build_init(spec: SpecBuilder, found: YamlItem | None) -> None:
    """`init` for the global variables, in the collection INIT_OP, where sessions look for it."""
    if found is not None and not found.value:
        return
    graph = spec.graph
    if graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
        graph.add_to_collection(GraphKeys.INIT_OP, by_collection.global_variables_initializer())
    if graph.get_collection(GraphKeys.LOCAL_VARIABLES):
        local = by_collection.variables_initializer(by_collection.local_variables(), "local_init")
        graph.add_to_collection(GraphKeys.LOCAL_INIT_OP, local)


COLLECTIONS = MapOf(NAMES)


def build_collections(spec: SpecBuilder, found: YamlItem | None) -> None:
    """Put things into collections."""
    if found is None or not isinstance(found.value, dict):
        return
    for key, names in found.section():
        if not spec.mistakes.has(names):
            for item in names.texts():
                with spec.noting(item):
                    spec.graph.add_to_collection(key, spec.find(item))


_ENDPOINTS = OneOf(MapOf(NAME), NAMES)
SIGNATURES = MapOf(
    Record({
        "inputs": Key(_ENDPOINTS, "names, or KEY: NAME"),
        "outputs": Key(_ENDPOINTS, "names, or KEY: NAME", required=True),
        "method": Key(Text(), "what kind of call it is", default=PREDICT_METHOD),
    })
)  # fmt: skip


def build_signatures(spec: SpecBuilder, found: YamlItem | None) -> dict[str, Signature]:
    """The signatures by key."""
    made: dict[str, Signature] = {}
    if found is None or not isinstance(found.value, dict):
        return made
    for key, item in found.section():
        if spec.mistakes.has(item):
            continue
        section = item.section()
        inputs, outputs = _endpoints(spec, section.get("inputs")), _endpoints(spec, section.get("outputs"))
        with spec.noting(item):
            made[key] = predict_signature(inputs, outputs, section.text("method", PREDICT_METHOD))
    return made


def _endpoints(spec: SpecBuilder, item: YamlItem | None) -> dict[str, Tensor]:
    """A list of names (each its own key), or a mapping from key to name."""
    if item is None:
        return {}
    named = list(item.section()) if isinstance(item.value, dict) else [(i.text(), i) for i in item.texts()]
    found: dict[str, Tensor] = {}
    for key, each in named:
        with spec.noting(each):
            found[key] = spec.tensor(each)
    return found
