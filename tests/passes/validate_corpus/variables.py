"""Rows about variables and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from schemas.variable_pb2 import VariableDef
from tests.passes.validate_corpus.rows import ROWS, Row, main, row, wire
from tests.passes.validate_graphs import (
    F,
    add,
    meta,
    net,
    node,
    saved,
    write_checkpoint,
)
from toolkit.graph.shape import Shape

# -- variables -------------------------------------------------------------------------------------------


def no_assign(m: Any) -> None:
    for name in ("w/assign", "save/assign_w"):
        node(m.graph_def, name).input[0] = "b"
        node(m.graph_def, name).input[1] = "b/init"


row("a variable that is never assigned", "variables/uninitialized", meta, no_assign, "w")
row("a further variable", "variables/uninitialized", meta,
    main(lambda g: add(g, "VariableV2", "v", dtype=F, shape=Shape([2]))), "v")  # fmt: skip
row("a resource that is never assigned", "variables/uninitialized", net,
    lambda g: add(g, "VarHandleOp", "v", dtype=F, shape=Shape([2]), shared_name=b"v"), "v")  # fmt: skip


def unsaved(m: Any) -> None:
    g = m.graph_def
    wire("save/save", "save/file", "save/names", "save/slices", "b", "b")(g)


row("a variable that is not saved", "variables/unsaved", meta, unsaved, "w")


def entry(m: Any, **fields: str) -> None:
    values = {"variable_name": "w:0", "initializer_name": "w/assign", "snapshot_name": "w/read:0"} | fields
    m.collection_def["variables"].bytes_list.value.append(VariableDef(**values).SerializeToString())


row("a variable that is gone", "variables/collection", meta, lambda m: entry(m, variable_name="v:0"))
row("an initialiser that is gone", "variables/collection", meta, lambda m: entry(m, initializer_name="w/Assign"))
row("a snapshot that is gone", "variables/collection", meta, lambda m: entry(m, snapshot_name="w/value:0"))
row("an entry of garbage", "variables/collection", meta,
    lambda m: m.collection_def["variables"].bytes_list.value.append(b"\xff\xff"))  # fmt: skip
row("no file name of the saver", "variables/saver", meta,
    lambda m: setattr(m.saver_def, "filename_tensor_name", "save/Const:0"))  # fmt: skip
row("no saving of the saver", "variables/saver", meta, lambda m: setattr(m.saver_def, "save_tensor_name", "gone:0"))
row("no restoring of the saver", "variables/saver", meta, lambda m: setattr(m.saver_def, "restore_op_name", "restore"))


def sharing(g: Any) -> None:
    for name, shape in (("v1", [2]), ("v2", [3])):
        add(g, "VarHandleOp", name, dtype=F, shape=Shape(shape), shared_name=b"v")


row("one name for two variables", "variables/shared", net, sharing, "v2")

# -- checkpoints -----------------------------------------------------------------------------------------


def with_checkpoint(**changes: Any) -> Callable[[Path], list[str]]:
    return lambda folder: ["--checkpoint", str(write_checkpoint(folder / "ckpt", **changes))]


def intact(message: Any) -> None:
    """The file itself is good."""


row("a tensor missing", "checkpoint/missing", meta, intact, args=with_checkpoint(w=None))
row(
    "a tensor renamed",
    "checkpoint/missing",
    meta,
    intact,
    args=with_checkpoint(w=None, weight=np.zeros((4, 2), np.float32)),
)
row("a tensor of another type", "checkpoint/dtype", meta, intact, args=with_checkpoint(b=np.zeros(2, np.float64)))
row("a tensor of another shape", "checkpoint/shape", meta, intact, args=with_checkpoint(w=np.zeros((2, 4), np.float32)))
row("a tensor of another rank", "checkpoint/shape", meta, intact, args=with_checkpoint(b=np.zeros((1, 2), np.float32)))
row("a tensor more", "checkpoint/extra", meta, intact, args=with_checkpoint(z=np.zeros(1, np.float32)))


def damaged(folder: Path) -> list[str]:
    prefix = write_checkpoint(folder / "ckpt")
    index = prefix.with_name("ckpt.index")
    index.write_bytes(index.read_bytes()[:40])
    return ["--checkpoint", str(prefix)]


row("a damaged checkpoint", "checkpoint/unreadable", meta, intact, args=damaged)


def without_data(folder: Path) -> list[str]:
    prefix = write_checkpoint(folder / "ckpt")
    prefix.with_name("ckpt.data-00000-of-00001").unlink()
    return ["--checkpoint", str(prefix)]


def cut_data(folder: Path) -> list[str]:
    prefix = write_checkpoint(folder / "ckpt")
    data = prefix.with_name("ckpt.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:-1])
    return ["--checkpoint", str(prefix)]


row("a checkpoint without its data", "checkpoint/unreadable", meta, intact, args=without_data)
row("a checkpoint whose data end early", "checkpoint/unreadable", meta, intact, args=cut_data)


def folder_with_other_variables(folder: Path) -> list[str]:
    (folder / "model" / "variables").mkdir(parents=True)
    (folder / "model" / "saved_model.pb").write_bytes(saved().SerializeToString())
    write_checkpoint(folder / "model" / "variables" / "variables", w=np.zeros((3, 2), np.float32))
    return [str(folder / "model")]


ROWS.append(Row("a SavedModel with other variables", "checkpoint/shape", "", folder_with_other_variables))
