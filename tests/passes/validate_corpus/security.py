"""Rows about what reaches outside, runs code or is shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.passes.validate_corpus.rows import both, inside, row
from tests.passes.validate_graphs import (
    F,
    I,
    S,
    add,
    calls,
    const,
    function,
    net,
    saved,
)
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.shape import Shape


def unsafe(name: str, inputs: int = 1, **attrs: Any) -> Callable[[Any], None]:
    def defect(g: Any) -> None:
        const(g, "text", [b"/etc/passwd"], [], S)
        add(g, name, "unsafe", ["text"] * inputs, **attrs)

    return defect


def unsafe_inside(name: str, inputs: int = 1, **attrs: Any) -> Callable[[Any], object]:
    def defect(f: Any) -> None:
        const(f, "text", [b"/etc/passwd"], [], S)
        add(f, name, "unsafe", ["text:output:0"] * inputs, **attrs)

    return inside("negative", defect)


for name, inputs, rule in (
    ("ReadFile", 1, "file-read"), ("MatchingFiles", 1, "file-read"), ("WriteFile", 2, "file-write"),
):  # fmt: skip
    row(f"{name}", f"security/{rule}", net, unsafe(name, inputs), "unsafe")
    row(f"{name} in a function", f"security/{rule}", calls, unsafe_inside(name, inputs), "unsafe")


def generic_inside(g: Any) -> None:
    """An op in a function that is generic and called only by another function, and by none at all."""
    for name in ("inner", "orphan"):
        generic = function(g, name, {}, {})
        generic.signature.attr.add(name="T", type="type")
        const(generic, "path", [b"/etc/passwd"], [], S)
        add(generic, "ReadFile", f"read_{name}", ["path:output:0"])
    outer = next(f for f in g.library.function if f.signature.name == "four")
    add(outer, "PartitionedCall", "generic", [], Tin=[], Tout=[], f=FuncRef("inner", {"T": F}))


row("a generic function that a function calls", "security/file-read", calls, generic_inside, "read_inner")
row("a generic function that nothing calls", "security/file-read", calls, generic_inside, "read_orphan")
row("a reader", "security/file-read", net, lambda g: add(g, "TextLineReaderV2", "unsafe"), "unsafe")
row(
    "a mapped file",
    "security/file-read",
    net,
    lambda g: add(g, "ImmutableConst", "unsafe", dtype=F, shape=Shape([1]), memory_region_name=b"/etc/passwd"),
    "unsafe",
)
for name in ("PyFunc", "PyFuncStateless"):
    row(
        name,
        "security/python",
        net,
        lambda g, name=name: add(g, name, "unsafe", ["x"], token=b"t", Tin=[F], Tout=[F]),
        "unsafe",
    )
row(
    "EagerPyFunc in a function",
    "security/python",
    calls,
    inside("negative", lambda f: add(f, "EagerPyFunc", "unsafe", ["a"], token=b"t", Tin=[F], Tout=[F])),
    "unsafe",
)
row("a table from a file", "security/file-read", net,
    both(lambda g: add(g, "HashTableV2", "table", key_dtype=S, value_dtype=dtypes.int64),
         lambda g: const(g, "text", [b"/etc/passwd"], [], S),
         lambda g: add(g, "InitializeTableFromTextFileV2", "unsafe", ["table", "text"], key_index=-2, value_index=-1)),
    "unsafe")  # fmt: skip
row("RpcClient", "security/network", net,
    both(lambda g: const(g, "text", [b"host:80"], [], S),
         lambda g: add(g, "RpcClient", "unsafe", ["text", "later"], shared_name=b""),
         lambda g: const(g, "later", [1], [], I)), "unsafe")  # fmt: skip
row("saving without a saver", "security/checkpoint-io", net,
    both(lambda g: const(g, "text", [b"/tmp/a"], [], S), lambda g: const(g, "names", [b"x"], [1], S),
         lambda g: const(g, "slices", [b""], [1], S),
         lambda g: add(g, "SaveV2", "unsafe", ["text", "names", "slices", "x"], dtypes=[F])), "unsafe")  # fmt: skip
row("saving where its user says", "security/own-files", net,
    both(lambda g: const(g, "text", [b"model"], [], S), lambda g: const(g, "names", [b"x"], [1], S),
         lambda g: const(g, "slices", [b""], [1], S),
         lambda g: add(g, "SaveV2", "unsafe", ["text", "names", "slices", "x"], dtypes=[F])), "unsafe")  # fmt: skip


def named_by_saver(g: Any) -> None:
    """As TensorFlow's savers of 2017 to 2019 made it: the name that is fed stands in a constant."""
    for name, text in (("default", b"model"), ("part", b"_temp_0a/part")):
        const(g, name, [text], [], S)
    for name, text in (("names", b"x"), ("slices", b"")):
        const(g, name, [text], [1], S)
    add(g, "StringJoin", "joined", ["default", "part"], N=2)
    add(g, "SaveV2", "unsafe", ["joined", "names", "slices", "x"], dtypes=[F])


def computed(*parts: bytes) -> Callable[[Any], None]:
    """A checkpoint whose name is put together of texts and of what is fed (an empty part)."""

    def defect(m: Any) -> None:
        meta = m.meta_graphs[0]
        meta.saver_def.filename_tensor_name, meta.saver_def.save_tensor_name = "fed:0", "joined:0"
        meta.saver_def.restore_op_name = "unsafe"
        g = meta.graph_def
        const(g, "names", [b"x"], [1], S)
        const(g, "slices", [b""], [1], S)
        add(g, "Placeholder", "fed", dtype=S, shape=Shape([]))
        for at, part in enumerate(parts):
            const(g, f"part{at}", [part], [], S)
        inputs = [f"part{at}" if part else "fed" for at, part in enumerate(parts)]
        add(g, "StringJoin", "joined", inputs, N=len(inputs))
        add(g, "SaveV2", "unsafe", ["joined", "names", "slices", "x"], dtypes=[F])

    return defect


row("saving where only constants say", "security/checkpoint-io", saved, computed(b"a", b"b"), "unsafe")
row("saving where a saver says", "security/own-files", net, named_by_saver, "unsafe")
row("saving where a constant says", "security/checkpoint-io", saved, computed(b"/tmp/", b""), "unsafe")
row("saving above what its user says", "security/checkpoint-io", saved, computed(b"", b"/../a"), "unsafe")


def cached_computed(g: Any) -> None:
    const(g, "texts", [b"/tmp"], [], S)
    add(g, "Placeholder", "n", dtype=dtypes.int64, shape=Shape([]))
    add(g, "StringJoin", "joined", ["texts", "texts"], N=2)
    kinds: dict[str, Any] = {"output_types": [dtypes.int64], "output_shapes": [Shape([])]}
    add(g, "RangeDataset", "range", ["n", "n", "n"], **kinds)
    add(g, "CacheDataset", "unsafe", ["range", "joined"], **kinds)


row("a dataset that is cached in a file of a computed name", "security/file-write", net, cached_computed, "unsafe")


def two_handles(g: Any) -> None:
    """One variable by two handles: through one it is given a harmless path, through the other one that is not."""
    for at, text in enumerate((b"own", b"/etc/passwd")):
        const(g, f"text{at}", [text], [], S)
        add(g, "VarHandleOp", f"path{at}", dtype=S, shape=Shape([]), shared_name=b"path", container=b"")
        add(g, "AssignVariableOp", f"set{at}", [f"path{at}", f"text{at}"], dtype=S)
    add(g, "ReadVariableOp", "get", ["path0"], dtype=S)
    add(g, "ReadFile", "unsafe", ["get"])


row("a path from a variable with two handles", "security/file-read", net, two_handles, "unsafe")
row("reading a file above its own", "security/file-read", net,
    both(lambda g: const(g, "text", [b"a/../../b"], [], S), lambda g: add(g, "ReadFile", "unsafe", ["text"])),
    "unsafe")  # fmt: skip
row("an op that ends the process", "security/process", net,
    lambda g: add(g, "Abort", "unsafe", exit_without_error=True), "unsafe")  # fmt: skip


def foreign_asset(m: Any) -> None:
    asset = m.meta_graphs[0].asset_file_def.add(filename="../../secret")
    asset.tensor_info.name = "x:0"


row("an asset above the model", "security/asset", saved, foreign_asset, "x")
row("printing into a file", "security/output-file", net,
    unsafe("PrintV2", 1, output_stream=b"file:///tmp/log"), "unsafe")  # fmt: skip
row("debugging over the network", "security/debug-url", net,
    lambda g: add(g, "DebugIdentity", "unsafe", ["x"], T=F, debug_urls=[b"grpc://elsewhere:1"]), "unsafe")  # fmt: skip
