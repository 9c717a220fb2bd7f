"""The table of a spec's sections: what each may say and what builds it, and from a document to a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.client.metagraphs.export import to_meta_graph
from toolkit.client.spec import (
    around,
    data_entries,
    devices,
    flow_entries,
    function_entries,
    inputs,
    losses,
    parameters,
    starting,
    training,
)
from toolkit.client.spec.builder import SpecBuilder
from toolkit.client.spec.entries import NODES, build_nodes
from toolkit.client.spec.expand import Expander
from toolkit.client.spec.values import NAMES, PLACEMENT
from toolkit.client.variables.store import variable_scope
from toolkit.errors import MultipleMistakesError
from toolkit.formats.schema.containers import Key, Record
from toolkit.formats.schema.definitions import Json
from toolkit.formats.schema.kinds import Kind
from toolkit.formats.schema.mistakes import Mistakes
from toolkit.formats.schema.named import json_schema
from toolkit.formats.schema.scalars import Boolean, Integer, Text
from toolkit.formats.settings.tree import YamlItem
from toolkit.graph.metagraph import MetaGraph


@dataclass(frozen=True)
class SectionKind:
    """A section: what it may say, what it is for, and what makes its part of the graph.

    Attributes:
        build: called in the order of the table when the section is there; None: it is looked at elsewhere.
    """

    kind: Kind
    meaning: str
    build: Callable[[SpecBuilder, YamlItem], None] | None = None


#: modules that register entries of `nodes` besides those of `entries`
ENTRY_MODULES = (flow_entries, data_entries, function_entries)

#: the sections in the order in which they are built, which is not that of the file
SECTIONS: dict[str, SectionKind] = {
    "name": SectionKind(Text(), "for people"),
    "description": SectionKind(Text(), "for people"),
    "parameters": SectionKind(
        parameters.KIND, "NAME: DEFAULT, or NAME: {type, default, choices, ...}; ${NAME} is its value"
    ),
    "include": SectionKind(NAMES, "files whose sections come before those of this one"),
    "seed": SectionKind(Integer(0), "graph seed of random ops"),
    "device": SectionKind(PLACEMENT["device"].kind, "where everything goes that says nothing else"),
    "devices": SectionKind(devices.DEVICES, "rules: which nodes go where"),
    "resource_variables": SectionKind(Boolean(), "true: resource variables instead of references"),
    "inputs": SectionKind(inputs.INPUTS, "NAME: {dtype, shape, default}: placeholders", inputs.build_inputs),
    "variables": SectionKind(
        inputs.VARIABLES, "NAME: {shape, initializer, ...} or {value: ...}", inputs.build_variables
    ),
    "functions": SectionKind(
        function_entries.FUNCTIONS, "NAME: {inputs, nodes, output}: functions", function_entries.build_functions
    ),
    "nodes": SectionKind(NODES, "a list of entries", lambda spec, found: build_nodes(spec, found, "")),
    "loss": SectionKind(losses.LOSS, "{type, name, labels, logits or predictions, ...}", losses.build_loss),
    "losses": SectionKind(losses.MANY, "NAME: a loss", losses.build_losses),
    "metrics": SectionKind(losses.METRICS_KIND, "NAME: {type, labels, predictions, ...}", losses.build_metrics),
    "optimizer": SectionKind(training.OPTIMIZER, "{type, learning_rate, clip_norm, ...}", training.build_optimizer),
    "optimizers": SectionKind(training.MANY, "NAME: an optimizer", training.build_optimizers),
    "summaries": SectionKind(around.SUMMARIES, "KIND: [NAMES]", around.build_summaries),
    "start_from": SectionKind(starting.START_FROM, "a checkpoint, or {checkpoint, variables}: first values"),
    "saver": SectionKind(around.SAVER, "{max_to_keep, ...}, or false"),
    "init": SectionKind(Boolean(), "false: no `init` operation"),
    "collections": SectionKind(around.COLLECTIONS, "KEY: [NAMES]"),
    "signatures": SectionKind(around.SIGNATURES, "KEY: {inputs, outputs, method}"),
}

#: the whole document
DOCUMENT = Record({name: Key(section.kind, section.meaning) for name, section in SECTIONS.items()})


def schema() -> Json:
    """The JSON Schema of specs, `${...}` in place of values included."""
    return json_schema(DOCUMENT, "graphmill spec", "A graph for `graphmill build`", r"\$\{")


def build_document(
    root: YamlItem, folder: Path, given: Mapping[str, str] | None = None, include_folders: tuple[Path, ...] = ()
) -> MetaGraph:
    """The MetaGraph of a parsed spec.

    Args:
        folder: of the file: what it includes lies there or below.
        given: values of parameters, as text.
        include_folders: other folders of which files may be included.

    Raises:
        MultipleMistakesError: everything that is wrong with the spec, or `SpecError`, where that is one thing.
        UsageError: a value that is given does not fit its parameter.
    """
    mistakes = Mistakes()
    written = Expander(given or {}, include_folders, mistakes).expand(root, folder)
    DOCUMENT.check(written, mistakes)
    meta = None
    if isinstance(written.value, dict):
        meta = _build(written, mistakes)
    if mistakes.errors:
        found = sorted(mistakes.errors, key=lambda error: _position(error.file))
        raise found[0] if len(found) == 1 else MultipleMistakesError(found)
    if meta is None or not len(meta.graph):
        raise root.error("the spec makes no graph: give inputs, variables or nodes")
    return meta


def _position(file: str | None) -> tuple[Any, ...]:
    name, *numbers = (file or "").split(":")
    return (name, *(int(each) if each.isdigit() else 0 for each in numbers))


def _build(written: YamlItem, mistakes: Mistakes) -> MetaGraph | None:
    """The graph; None where something is wrong."""
    root = written.section()
    spec = SpecBuilder(root, mistakes)
    seed, device = root.get("seed"), root.get("device")
    resources = root.get("resource_variables")
    if seed is not None and not mistakes.has(seed):
        spec.graph.seed = seed.integer()
    with spec.graph.as_default(), ExitStack() as stack:
        if device is not None and not mistakes.has(device):
            spec.place(root, stack)
        devices.enter(spec, root.get("devices"), stack)
        use_resource = resources is not None and resources.value is True
        stack.enter_context(variable_scope("", use_resource=use_resource))
        for name, section in SECTIONS.items():
            found = root.get(name)
            if section.build is not None and found is not None and isinstance(found.value, dict | list):
                section.build(spec, found)
        starting.build_start(spec, root.get("start_from"))
        around.build_saver(spec, root.get("saver"))
        around.build_init(spec, root.get("init"))
        around.build_collections(spec, root.get("collections"))
        signatures = around.build_signatures(spec, root.get("signatures"))
    if mistakes.errors:
        return None
    return to_meta_graph(spec.graph, signatures, spec.saver.saver_def if spec.saver else None)
