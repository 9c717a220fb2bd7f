"""Signatures as `tf.saved_model.load` finds them: functions below the object graph's signature map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from schemas.meta_graph_pb2 import MetaGraphDef
from schemas.struct_pb2 import StructuredValue
from toolkit.passes.edit.draft import Draft

if TYPE_CHECKING:
    from schemas.saved_object_graph_pb2 import SavedObject

_MAP = "signature_map"


def has_map(draft: Draft) -> bool:
    """Whether TensorFlow would look for signatures in the object graph."""
    return next(_maps(draft.meta.shell), None) is not None


def rename_loaded(draft: Draft, names: Mapping[str, str | None]) -> None:
    """Give signatures other keys; None takes one away."""
    if not any(child.local_name in names for entry in _maps(draft.meta.shell) for child in entry.children):
        return
    shell = _copy(draft)
    for entry in _maps(shell):
        for references in (entry.children, entry.dependencies):
            kept: list[Any] = []
            for reference in references:
                new = names.get(reference.local_name, reference.local_name)
                if new is not None:
                    made = type(reference)(node_id=reference.node_id, local_name=new)
                    kept.append(made)
            del references[:]
            references.extend(kept)
    draft.meta = replace(draft.meta, shell=shell)


def rename_loaded_key(draft: Draft, signature: str, key: str, new: str, *, is_input: bool) -> bool:
    """Give an argument or a result of a signature's function another name; False where that would change its order,
    which is that of the names."""
    shell = _copy(draft)
    for entry in _maps(shell):
        for child in entry.children:
            if child.local_name != signature:
                continue
            bare = cast("SavedObject", shell.object_graph_def.nodes[child.node_id]).bare_concrete_function
            function = shell.object_graph_def.concrete_functions[bare.concrete_function_name]
            structure = function.canonicalized_input_signature if is_input else function.output_signature
            if not all(_rename_field(fields, key, new) for fields in _dictionaries(structure)):
                return False
            if is_input:
                words: list[str] = [new if word == key else word for word in bare.argument_keywords]
                del bare.argument_keywords[:]
                bare.argument_keywords.extend(words)
    draft.meta = replace(draft.meta, shell=shell)
    return True


def _maps(shell: MetaGraphDef) -> Iterator[Any]:
    for node in cast("Iterable[SavedObject]", shell.object_graph_def.nodes):
        if node.user_object.identifier == _MAP:
            yield node


def _copy(draft: Draft) -> MetaGraphDef:
    made = MetaGraphDef()
    made.CopyFrom(draft.meta.shell)
    return made


def _dictionaries(value: StructuredValue) -> Iterator[Any]:
    match value.WhichOneof("kind"):
        case "dict_value":
            yield value.dict_value.fields
        case "tuple_value" | "list_value" as kind:
            for each in getattr(value, kind).values:
                yield from _dictionaries(each)
        case _:
            pass


def _rename_field(fields: Any, key: str, new: str) -> bool:
    if key not in fields:
        return True
    rename: Callable[[str], str] = lambda name: new if name == key else name  # noqa: E731
    if [rename(name) for name in sorted(fields)] != sorted(map(rename, fields)):
        return False
    fields[new].CopyFrom(fields[key])
    del fields[key]
    if fields[new].tensor_spec_value.name == key:
        fields[new].tensor_spec_value.name = new
    return True
