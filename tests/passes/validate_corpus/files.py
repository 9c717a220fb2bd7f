"""Rows about files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.passes.validate_corpus.rows import ROWS, Row
from tests.passes.validate_graphs import (
    meta,
    net,
    saved,
)


def folder_without_asset(folder: Path) -> list[str]:
    model = saved()
    asset = model.meta_graphs[0].asset_file_def.add(filename="words.txt")
    asset.tensor_info.name = "x:0"
    (folder / "model").mkdir()
    (folder / "model" / "saved_model.pb").write_bytes(model.SerializeToString())
    return [str(folder / "model")]


ROWS.append(Row("a folder that lost an asset", "file/no-asset", "x", folder_without_asset))


def content(name: str, data: Callable[[], bytes], rule: str = "file/unreadable") -> None:
    def make(folder: Path) -> list[str]:
        path = folder / "model.pb"
        path.write_bytes(data())
        return [str(path)]

    ROWS.append(Row(name, rule, "", make))


content("an empty file", lambda: b"")
content("a truncated file", lambda: net().SerializeToString()[:-50])
content("a file that begins in the middle", lambda: net().SerializeToString()[1:])
content("random bytes", lambda: bytes(range(256)) * 9)
content("text that is no graph", lambda: b"Hello, world.\n")
content("text format with a typing error", lambda: b'node { name: "x" opp: "Relu" }\n')
content("text format cut short", lambda: b'node { name: "x" op: "Relu"\n')
content("JSON cut short", lambda: b'{"node": [{"name": "x", "op": "Re')
content("an HTML page", lambda: b"<!doctype html><html>404</html>")
content("a zip archive", lambda: b"PK\x03\x04" + bytes(50))
content("a pickle", lambda: b"\x80\x04]\x94.")


def no_graphs() -> bytes:
    model = saved()
    del model.meta_graphs[:]
    return model.SerializeToString()


def same_tags() -> bytes:
    model = saved()
    model.meta_graphs.add().CopyFrom(meta())
    return model.SerializeToString()


def empty_graph() -> bytes:
    model = saved()
    model.meta_graphs[0].graph_def.ClearField("node")
    model.meta_graphs[0].signature_def.clear()
    return model.SerializeToString()


def damaged_earlier(folder: Path) -> list[str]:
    """An earlier version that begins as a MetaGraphDef and is cut off later."""
    now, before = folder / "model.pb", folder / "before.meta"
    data = meta().SerializeToString()
    now.write_bytes(data)
    before.write_bytes(data[: len(data) * 2 // 3])
    return [str(now), "--compatible-with", str(before)]


ROWS.append(Row("a damaged earlier version", "signatures/earlier-version", "", damaged_earlier))
content("a SavedModel of no graphs", no_graphs, "file/no-graph")
content("a SavedModel with the same tags twice", same_tags, "file/same-tags")
content("a graph without nodes", empty_graph, "file/empty")
