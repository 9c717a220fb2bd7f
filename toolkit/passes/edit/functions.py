"""Edits of the library of functions; whoever calls a function follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from schemas.meta_graph_pb2 import MetaGraphDef
from toolkit.errors import GraphError
from toolkit.formats.inspection.report import plural
from toolkit.graph.attrs import AttrValue
from toolkit.passes.edit.base import FLAG, PATTERNS, TEXT, argument
from toolkit.passes.edit.draft import Draft
from toolkit.passes.pruning.prune import reachable_functions

#: attributes of functions that name others
_NAMING = ("forward_function_name", "backward_function_name")


@dataclass(frozen=True)
class RenameFunction:
    """Rename functions, in the library and wherever they are called."""

    name: ClassVar[str] = "rename_function"

    function: str = argument(TEXT, "a name, a glob, or re:EXPRESSION")
    to: str = argument(TEXT, "the new name; repeats the glob's stars or the expression's groups (\\1)")

    def apply(self, draft: Draft) -> str:
        from toolkit.formats.bundle.surgery.rename import apply_rules
        from toolkit.graph import opdefs

        known = list(draft.graph.library)
        table = {self.function: self.to}
        if self.function not in draft.graph.library:
            table = apply_rules(known, [(self.function, self.to)], None, "function")
        for old, new in table.items():
            if (new in draft.graph.library and new not in table) or opdefs.find(new) is not None:
                raise GraphError(f"the function '{old}' cannot be called '{new}': another function or op is")
        rename_functions(draft, table)
        return f"renamed {plural(len(table), 'function')}"


def rename_functions(draft: Draft, table: Mapping[str, str]) -> None:
    """Rename functions with all who name them: nodes, bodies, gradients, the object graph, aliases."""
    graph = draft.graph
    library = graph.library
    gradients = dict(library.gradients)
    for name in list(library):
        body = library.function(name)
        if _mentions(body, table):
            body = draft.body(name)
            for definition in body.node_def:
                definition.op = table.get(definition.op, definition.op)
                for value in definition.attr.values():
                    _rename_value(value, table)
            for key in _NAMING:
                if key in body.attr:
                    text = body.attr[key].s.decode(errors="replace")
                    body.attr[key].s = table.get(text, text).encode()
            body.signature.name = table.get(name, name)
    everything = [library.function(name) for name in list(library)]
    for name in list(library):
        library.remove(name)
    for body in everything:
        library.add(body)
    draft.bodies = {table.get(name, name) for name in draft.bodies}
    library.gradients = {table.get(a, a): table.get(b, b) for a, b in gradients.items()}
    for node in graph.nodes:
        if node.op in table:
            node.op = table[node.op]
        for key in list(node.attrs):
            value = node.attrs.proto(key)
            if _names_function(value, table):
                made = AttrValue()
                made.CopyFrom(value)
                _rename_value(made, table)
                node.attrs[key] = made
        node.invalidate_types()
    draft.meta = replace(draft.meta, shell=_renamed_shell(draft.meta.shell, table))


def _mentions(body: Any, table: Mapping[str, str]) -> bool:
    if body.signature.name in table:
        return True
    if any(body.attr[key].s.decode(errors="replace") in table for key in _NAMING if key in body.attr):
        return True
    return any(
        definition.op in table or any(_names_function(value, table) for value in definition.attr.values())
        for definition in body.node_def
    )


def _refs(value: Any) -> list[Any]:
    kind = value.WhichOneof("value")
    return [value.func] if kind == "func" else list(value.list.func) if kind == "list" else []


def _names_function(value: Any, table: Mapping[str, str]) -> bool:
    return any(
        ref.name in table or any(_names_function(inner, table) for inner in ref.attr.values()) for ref in _refs(value)
    )


def _rename_value(value: Any, table: Mapping[str, str]) -> None:
    for ref in _refs(value):
        ref.name = table.get(ref.name, ref.name)
        for inner in ref.attr.values():
            _rename_value(inner, table)


def _renamed_shell(shell: MetaGraphDef, table: Mapping[str, str]) -> MetaGraphDef:
    """The object graph and the aliases with other names of functions."""
    aliases = shell.meta_info_def.function_aliases
    if not shell.HasField("object_graph_def") and not any(name in table for name in aliases):
        return shell
    made = MetaGraphDef()
    made.CopyFrom(shell)
    for name in list(aliases):
        if name in table:
            made.meta_info_def.function_aliases[table[name]] = made.meta_info_def.function_aliases.pop(name)
    objects = made.object_graph_def
    for name in [name for name in objects.concrete_functions if name in table]:
        objects.concrete_functions[table[name]].CopyFrom(shell.object_graph_def.concrete_functions[name])
        if name not in table.values():
            del objects.concrete_functions[name]
    for node in objects.nodes:
        match node.WhichOneof("kind"):
            case "function":
                names = [table.get(name, name) for name in node.function.concrete_functions]
                del node.function.concrete_functions[:]
                node.function.concrete_functions.extend(names)
            case "bare_concrete_function":
                bare = node.bare_concrete_function
                bare.concrete_function_name = table.get(bare.concrete_function_name, bare.concrete_function_name)
            case "captured_tensor":
                captured = node.captured_tensor
                captured.concrete_function = table.get(captured.concrete_function, captured.concrete_function)
            case _:
                pass
    return made


@dataclass(frozen=True)
class RemoveFunction:
    """Remove functions that nothing calls."""

    name: ClassVar[str] = "remove_function"

    function: tuple[str, ...] = argument(PATTERNS, "names or patterns")
    unused: bool = argument(FLAG, "of those, remove the ones that nothing calls, and leave the others", False)

    def apply(self, draft: Draft) -> str:
        chosen = draft.choose_functions(self.function)
        used = reachable_functions(draft.graph) | _in_object_graph(draft.meta.shell)
        if self.unused:
            chosen = [name for name in chosen if name not in used]
        rest = [name for name in chosen if name in used]
        if rest:
            raise GraphError(f"the function '{rest[0]}' is called; 'unused' removes those alone that are not")
        for name in chosen:
            draft.graph.library.remove(name)
            draft.bodies.discard(name)
        return f"removed {plural(len(chosen), 'function')}"


def _in_object_graph(shell: MetaGraphDef) -> set[str]:
    if not shell.HasField("object_graph_def"):
        return set()
    found: set[str] = set(shell.object_graph_def.concrete_functions)
    for node in shell.object_graph_def.nodes:
        found.update(node.function.concrete_functions)
        found.add(node.bare_concrete_function.concrete_function_name)
    return found
