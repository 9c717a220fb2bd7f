"""A model put together from pieces: graphs, the checkpoints with their values, and their assets.

Every piece is taken by the rules of TensorFlow 1, which both of TensorFlow's loaders and TensorFlow Serving know: the
variables come back through one saver, made anew for all of them, and one operation fills all tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.formats.bundle.locate import open_tensors
from toolkit.formats.bundle.transfer import Item, copy_of, write_items
from toolkit.formats.inspection.report import plural
from toolkit.formats.models.checkpoint_graph import ancestors
from toolkit.formats.models.model import Model, ModelKind
from toolkit.formats.models.variable_values import VariableValues
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.metagraph import DEFAULT_KEY, GraphKeys, MetaGraph, Signature, TensorInfo
from toolkit.graph.summary import PLACEHOLDERS, VARIABLES
from toolkit.graph.tensorref import parse_input
from toolkit.passes.edit.draft import Draft
from toolkit.passes.edit.merge import add_model, unused_key
from toolkit.passes.edit.names import RenameScope
from toolkit.passes.freezing.saver_nodes import Saved, add_saver
from toolkit.passes.models.assets import add_assets
from toolkit.passes.models.references import names_in_message
from toolkit.passes.models.surroundings import (
    INIT_SIGNATURE,
    named_tensors,
    shrink,
    table_initialisers,
    without_objects,
)
from toolkit.passes.optimize.kept import sinks
from toolkit.passes.pruning.prune import Prune

#: the checkpoint of what is put together, in the folder that it is given
CHECKPOINT = "values"
_INIT = "init_all"


@dataclass(frozen=True, slots=True)
class Piece:
    """A model that becomes a part of another.

    Attributes:
        model: with its graph and surroundings.
        checkpoint: the prefix of what has its variables' values; None where there is none.
        scope: into which its nodes go; "" for none.
    """

    model: Model
    checkpoint: str | None = None
    scope: str = ""

    def now(self, name: str) -> str:
        """What a node or a tensor of a checkpoint is called in the whole."""
        return f"{self.scope}/{name}" if self.scope else name


def assemble(
    pieces: Sequence[Piece], folder: Path, check_links: Callable[[list[Path]], None] | None = None
) -> tuple[Model, list[str]]:
    """Put pieces beside each other in one SavedModel; returns it, and what is to be told about it.

    Args:
        folder: an empty one, for the assets and the checkpoint; it is to be there until the model is written.
        check_links: is given assets that lie outside of their models' folders, and raises where they may not be read.

    Raises:
        GraphError: two pieces have nodes of the same name.
        GraphmillError: a checkpoint or an asset cannot be read.
    """
    notes: list[str] = []
    draft: Draft | None = None
    for piece in pieces:
        meta = _loaded_by_rules_of_1x(piece.model.meta)
        meta = add_assets(replace(piece.model, meta_graphs=[meta], selected=0), folder, check_links)
        if draft is None:
            draft = Draft(meta)
            if piece.scope:
                RenameScope("", piece.scope).apply(draft)
        else:
            notes += [f"{piece.model.source}: {note}" for note in add_model(draft, meta, piece.scope)]
    assert draft is not None
    notes += draft.notes
    meta = draft.meta
    with ExitStack() as stack:
        items, saved = _values(pieces, meta, stack)
        checkpoint = ""
        if items:
            checkpoint = str(folder / CHECKPOINT)
            write_items(checkpoint, items)
    if saved:
        meta = replace(meta, saver=add_saver(meta.graph, saved))
    first = pieces[0].model
    made = Model(ModelKind.SAVED_MODEL, first.encoding, first.source, [meta], checkpoint=checkpoint)
    return replace(made, folder=folder if (folder / "assets").is_dir() else None), notes


def _loaded_by_rules_of_1x(meta: MetaGraph) -> MetaGraph:
    """The MetaGraph without saver and objects; a collection names the one operation that brings it to life."""
    inits = table_initialisers(meta)
    meta = without_objects(meta)
    signatures = {key: each for key, each in meta.signatures.items() if key != INIT_SIGNATURE}
    if meta.saver is not None:
        meta = shrink(replace(meta, saver=None), _without_saver(meta))[0]
    graph = meta.graph
    inits = [name for name in inits if name in graph]
    collections = {
        key: items
        for key, items in meta.collections.items()
        if key not in (GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.LEGACY_INIT_OP, GraphKeys.SAVERS)
    }
    if inits:
        name = inits[0]
        if len(inits) > 1:
            graph = graph.copy()
            name = graph.unique_name(_INIT)
            graph.add("NoOp", name, control_inputs=[graph.node(each) for each in inits])
        collections[GraphKeys.SAVED_MODEL_INIT_OP] = [name]
    return replace(meta, graph=graph, signatures=signatures, collections=collections, saver=None)


def _without_saver(meta: MetaGraph) -> Graph:
    """The graph without what only its saver needs."""
    assert meta.saver is not None
    saving = {parse_input(name).node for name in names_in_message(meta.saver)}
    plain = replace(meta, saver=None)
    roots = [*sinks(meta.graph), *(parse_input(name).node for name in named_tensors(plain))]
    for signature in meta.signatures.values():
        tensors = (*signature.input_tensors().values(), *signature.output_tensors().values())
        roots += [parse_input(name).node for name in tensors]
    targets = tuple(name for name in dict.fromkeys(roots) if name in meta.graph and name not in saving)
    return Prune(targets=targets).apply(meta.graph).graph if targets else meta.graph


def _values(pieces: Sequence[Piece], meta: MetaGraph, stack: ExitStack) -> tuple[list[Item], list[Saved]]:
    """What the checkpoint of the whole holds, and its variables."""
    items: dict[str, Item] = {}
    saved: list[Saved] = []
    for piece in pieces:
        if piece.checkpoint is None:
            continue
        source = stack.enter_context(open_tensors(piece.checkpoint))
        values = VariableValues(piece.model, source)
        for node in piece.model.graph:
            found = values.key(node) if node.op in VARIABLES else None
            variable = meta.graph.get(piece.now(node.name))
            if found is None or variable is None:
                continue
            values.check(node)
            key = piece.now(found[0])
            items.setdefault(key, copy_of(source, found[0], key))
            saved.append(Saved(variable, key, source.entry(found[0]).dims, found[1]))
    return list(items.values()), saved


def require_values(meta: MetaGraph) -> list[str]:
    """The variables that have no value when the model has been loaded, which no signature needs.

    Raises:
        UsageError: a signature needs one of them.
    """
    graph = meta.graph
    restore = [] if meta.saver is None else [parse_input(meta.saver.restore_op_name).node]
    roots = [graph.node(name) for name in (*restore, *table_initialisers(meta)) if name in graph]
    given = {node.inputs[0].node.name for node in ancestors(roots) if node.op in ("Assign", "AssignVariableOp")}
    lacking = [node.name for node in graph if node.op in VARIABLES and node.name not in given]
    for key, signature in meta.signatures.items() if lacking else ():
        outputs = [parse_input(name).node for name in signature.output_tensors().values()]
        needed = {node.name for node in ancestors([graph.node(name) for name in outputs if name in graph])}
        missing = [name for name in lacking if name in needed]
        if missing:
            raise UsageError(
                f"the signature '{key}' needs {plural(len(missing), 'variable')} that no checkpoint has a value for: "
                f"{some(missing)}; give one that does with --from-checkpoint GRAPH PREFIX"
            )
    return lacking


def join_signatures(meta: MetaGraph, scopes: Sequence[str]) -> tuple[MetaGraph, list[str]]:
    """The signatures of pieces that were connected: what an output needs of other pieces is an input of its signature,
    and the default is the one at the end. Returns what is to be told, too.

    Args:
        scopes: of the pieces.
    """
    graph = meta.graph
    labels = {name: label for each in meta.signatures.values() for label, name in each.input_tensors().items()}
    needs: dict[str, set[str]] = {}
    signatures: dict[str, Signature] = {}
    for key, signature in meta.signatures.items():
        outputs = [parse_input(name).node for name in signature.output_tensors().values()]
        needed = ancestors([graph.node(name) for name in outputs])
        needs[key] = {node.name for node in needed}
        inputs = dict(signature.inputs)
        known = set(signature.input_tensors().values())
        shapes = ShapeMap()
        for node in needed:
            if node.op in PLACEHOLDERS and node.op != "PlaceholderWithDefault" and f"{node.name}:0" not in known:
                output = node.output()
                label = unused_key(labels.get(output.name, node.name.rpartition("/")[2]), inputs)
                inputs[label] = TensorInfo(output.name, output.dtype.base, shapes[output])
        signatures[key] = replace(signature, inputs=inputs)
    names = {scope: f"{scope.replace('/', '_')}_{DEFAULT_KEY}" for scope in scopes}
    defaults = [key for key in signatures if key == DEFAULT_KEY or key in names.values()]
    ends = [key for key in defaults if not any(_follows(meta, other, key, needs) for other in defaults)]
    notes: list[str] = []
    if DEFAULT_KEY in signatures and len(ends) == 1 and ends[0] != DEFAULT_KEY:
        first = signatures.pop(DEFAULT_KEY)
        signatures[DEFAULT_KEY] = signatures.pop(ends[0])
        other = unused_key(names[scopes[0]], signatures)
        signatures[other] = first
        notes = [f"'{ends[0]}', at the end, is the signature '{DEFAULT_KEY}'; the one before is called '{other}'"]
    return replace(meta, signatures=signatures), notes


def _follows(meta: MetaGraph, later: str, earlier: str, needs: dict[str, set[str]]) -> bool:
    """Whether a signature's results are computed from what another one gives."""
    gives = {parse_input(name).node for name in meta.signatures[earlier].output_tensors().values()}
    return later != earlier and bool(gives & needs[later])


def some(names: Sequence[str]) -> str:
    """The first of some names."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
