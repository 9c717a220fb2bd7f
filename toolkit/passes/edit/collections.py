"""Edits of collections: named lists that belong to a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from toolkit.errors import UsageError, did_you_mean
from toolkit.formats.inspection.report import plural
from toolkit.passes.edit.base import PATTERNS, TEXT, VALUES, argument
from toolkit.passes.edit.draft import Draft, matching
from toolkit.passes.models.references import item_message, names_in_message


def _replace(draft: Draft, collections: dict[str, list[Any]]) -> None:
    draft.meta = replace(draft.meta, collections=collections)


@dataclass(frozen=True)
class AddToCollection:
    """Add items to a collection."""

    name: ClassVar[str] = "add_to_collection"

    collection: str = argument(TEXT, "its name")
    items: tuple[Any, ...] = argument(VALUES, "names of nodes or tensors, or numbers")

    def apply(self, draft: Draft) -> str:
        collections = dict(draft.meta.collections)
        before = collections.get(self.collection, [])
        held = {type(item).__name__ for item in before}
        if len(held | {type(item).__name__ for item in self.items}) > 1 or not held <= {"str", "int", "float"}:
            found = ", ".join(sorted(held)) or "nothing yet"
            raise UsageError(
                f"a collection holds names, whole numbers or numbers, of one kind; in '{self.collection}' is {found}"
            )
        for item in self.items:
            if isinstance(item, str):
                draft.graph.output(item) if ":" in item else draft.graph.node(item.removeprefix("^"))
        collections[self.collection] = [*before, *self.items]
        _replace(draft, collections)
        return f"added {plural(len(self.items), 'item')} to the collection '{self.collection}'"


@dataclass(frozen=True)
class RemoveFromCollection:
    """Remove items from collections."""

    name: ClassVar[str] = "remove_from_collection"

    collection: tuple[str, ...] = argument(PATTERNS, "its name, or a pattern of names")
    items: tuple[str, ...] = argument(
        PATTERNS, "items, or what those that are messages name first, such as a variable (default: all)", ("*",)
    )

    def apply(self, draft: Draft) -> str:
        collections = dict(draft.meta.collections)
        chosen: list[str] = []
        for pattern in self.collection:
            found = [pattern] if pattern in collections else matching(pattern, collections)
            if not found:
                raise UsageError(f"there is no collection '{pattern}'{did_you_mean(pattern, collections)}")
            chosen += found
        removed = 0
        names: set[str] = set()
        for key in dict.fromkeys(chosen):
            labels = [_labels(key, item) for item in collections[key]]
            names.update(label for group in labels for label in group)
            wanted = {
                name
                for pattern in self.items
                for name in ([pattern] if pattern in names else matching(pattern, [x for g in labels for x in g]))
            }
            kept = [item for item, group in zip(collections[key], labels, strict=True) if not wanted & set(group)]
            if self.items == ("*",):
                kept = []
            removed += len(collections[key]) - len(kept)
            collections[key] = kept
            if not kept:
                del collections[key]
        if not removed and self.items != ("*",):
            what = " or ".join(f"'{item}'" for item in self.items)
            raise UsageError(f"nothing in it is {what}{did_you_mean(self.items[0], names)}")
        _replace(draft, collections)
        return f"removed {plural(removed, 'item')} of {plural(len(set(chosen)), 'collection')}"


def _labels(collection: str, item: Any) -> list[str]:
    """What an item may be called: as it is, and without the index of a tensor."""
    if not isinstance(item, str):
        message = item_message(collection, item)
        if message is None:
            return [str(item)] if isinstance(item, int | float) else []
        names = names_in_message(message)
        if not names:
            return []
        item = names[0]
    return [item, item.removesuffix(":0")]
