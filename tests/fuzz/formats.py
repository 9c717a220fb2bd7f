"""Damaged files of every format, and the commands that read them."""

from __future__ import annotations

import io
import math
import random
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from schemas import config_pb2, graph_pb2, meta_graph_pb2, saved_model_pb2
from tests.fuzz import (
    command_lines,
    formats_archives,
    formats_chunks,
    formats_media,
    formats_proto,
    formats_records,
    formats_table,
    formats_text,
    graphs_mutate,
    hostile,
    messages,
)
from tests.fuzz.case import Case
from tests.fuzz.seeds import CLUSTER, Files

Mutator = Callable[[random.Random, bytes], bytes]
#: what is run of the models among the seeds: feeds, fetch
RUNS: dict[str, tuple[list[str], str]] = {
    "net": (["--feed", "x=images.npy"], "prob"),
    "loop": ([], "out"),
    "calls": (["--feed", "x=[[1.0, 2.0]]"], "y"),
    "meta": (["--feed", "x=[[1, 2, 3, 4]]", "--init"], "y"),
    "meta.text": (["--feed", "x=[[1, 2, 3, 4]]", "--init"], "y"),
    "meta.json": (["--feed", "x=[[1, 2, 3, 4]]", "--init"], "y"),
    "meta.split": (["--feed", "x=[[1, 2, 3, 4]]", "--init"], "y"),
    "net.split": (["--feed", "x=images.npy"], "prob"),
    "saved": (["--feed", "x=[[1, 2, 3, 4]]"], "y"),
    "saved.split": (["--feed", "x=[[1, 2, 3, 4]]"], "y"),
    "training": (["--feed", "x=digits.npy", "--feed", "y=[1, 2]", "--init"], "train,loss"),
    "partitions": (["--feed", "x=digits.npy", "--init"], "probabilities"),
}


def _npy(*shape: int) -> bytes:
    file = io.BytesIO()
    np.save(file, np.linspace(-1, 1, math.prod(shape), dtype=np.float32).reshape(shape))
    return file.getvalue()


#: what the runs are fed
FEEDS = {"images.npy": _npy(1, 8, 8, 3), "digits.npy": _npy(2, 8, 8, 1)}


def with_feeds(files: Files, feeds: list[str]) -> Files:
    """Files, and those that feeds name."""
    return files | {name: data for name, data in FEEDS.items() if any(name in feed for feed in feeds)}


def _message(cls: Any) -> Mutator:
    return lambda rng, data: messages.mutate_serialized(rng, data, cls)


#: the mutators of files by the end of their names, the first that fits
MUTATORS: tuple[tuple[str, tuple[Mutator, ...]], ...] = (
    ("saved_model.pb", (_message(saved_model_pb2.SavedModel), formats_proto.mutate)),
    ("parts/meta.pb", (_message(meta_graph_pb2.MetaGraphDef), formats_proto.mutate)),
    ("trace.pb", (_message(config_pb2.RunMetadata), formats_proto.mutate)),
    (".pb", (_message(graph_pb2.GraphDef), formats_proto.mutate)),
    (".pbtxt", (hostile.mutate_text, formats_text.mutate_plain)),
    (".json", (hostile.mutate_text, formats_text.mutate_plain)),
    (".yaml", (hostile.mutate_text, formats_text.mutate)),
    (".csv", (hostile.mutate_text, formats_text.mutate_plain)),
    ("/checkpoint", (hostile.mutate_text, formats_text.mutate)),
    (".index", (formats_table.mutate,)),
    (".npy", (formats_archives.mutate,)),
    (".npz", (formats_archives.mutate,)),
    (".safetensors", (formats_archives.mutate,)),
    (".cpb", (formats_chunks.records, formats_chunks.listing, formats_chunks.nested, hostile.mutate_bytes)),
    (".tfrecord", (formats_records.mutate,)),
    (".events", (formats_records.mutate,)),
    ("", (hostile.mutate_bytes,)),
)
_META = ("meta", "training", "checkpoint names")


def mutate_graph(rng: random.Random, data: bytes) -> bytes:
    """A GraphDef, changed node by node."""
    graph = graph_pb2.GraphDef.FromString(data)
    return graphs_mutate.mutate(rng, graph).SerializeToString()


def _mutate_meta_graph(rng: random.Random, data: bytes) -> bytes:
    meta = meta_graph_pb2.MetaGraphDef.FromString(data)
    graphs_mutate.mutate(rng, meta.graph_def)
    return meta.SerializeToString()


def mutators(seed: str, path: str) -> tuple[Mutator, ...]:
    """What damages a file of a seed."""
    if path == "data":
        return (formats_proto.mutate,) if seed.startswith("example") else (formats_media.mutate, hostile.mutate_bytes)
    if seed == "checkpoint v1":
        return (formats_table.mutate,)
    if path == "model.pb":
        if seed in _META:
            return (_message(meta_graph_pb2.MetaGraphDef), _mutate_meta_graph, _mutate_meta_graph)
        return (_message(graph_pb2.GraphDef), mutate_graph, mutate_graph)
    return next(found for end, found in MUTATORS if path.endswith(end))


def cases(seeds: dict[str, Files]) -> Callable[[random.Random], Case]:
    """A maker of damaged files."""
    names = sorted(seeds)
    #: models have the most code behind them
    weights = [4 if name in RUNS or name.startswith("checkpoint") else 1 for name in names]

    def make(rng: random.Random) -> Case:
        seed = rng.choices(names, weights)[0]
        files = dict(seeds[seed])
        media = list(files) == ["data"]
        path = rng.choice(sorted(files))
        if seed in ("cluster", "rules") or seed.startswith("trace"):
            path = next(name for name in files if name != "model.pb")
        mutate = rng.choice(mutators(seed, path))
        if rng.random() < 0.01:
            files[path] = hostile.name(rng).encode("utf-8", "replace")
        elif not (media and rng.random() < 0.1):
            try:
                files[path] = mutate(rng, files[path])
            except (
                RecursionError,
                ValueError,
                zipfile.BadZipFile,
                DecodeError,
            ):  # too damaged for it by now
                files[path] = hostile.mutate_bytes(rng, files[path])
        if media:
            return _decoding(rng, seed, files["data"])
        if seed in RUNS:
            files = with_feeds(files, RUNS[seed][0])
            files["seed.pb"] = seeds["net"]["model.pb"]
            files["cluster.yaml"] = CLUSTER.encode()
        return Case("formats", f"{seed}: {path}", files, _commands(rng, seed, files))

    return make


def _commands(rng: random.Random, seed: str, files: Files) -> list[list[str]]:
    if seed in RUNS:
        folders = {"saved": "saved", "saved.split": "saved", "partitions": "parts"}
        model = folders.get(seed) or next(name for name in files if name.startswith("model"))
        return rng.sample(command_lines.of_model(rng, model, *RUNS[seed]), 4)
    if seed.startswith("checkpoint"):
        return rng.sample(command_lines.of_checkpoint(rng, "ckpt/c", files), 5)
    name = next(name for name in files if name != "model.pb")
    if seed in ("npz checkpoint", "safetensors"):
        return rng.sample(command_lines.of_checkpoint(rng, name, files), 5)
    lines = command_lines.of_other(rng, seed, name)
    if any("feed.pb" in line for line in lines):
        files["feed.pb"] = _identity()
    return lines


def _identity() -> bytes:
    from tests.passes import validate_graphs as make

    graph = make.versions(graph_pb2.GraphDef())
    make.add(graph, "Placeholder", "x", dtype=make.F)
    make.add(graph, "Identity", "y", ["x"], T=make.F)
    return graph.SerializeToString()


_DECODERS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "png": (("DecodePng", {"channels": 0}), ("DecodePng", {"channels": 4}), ("DecodeImage", {})),
    "jpeg": (("DecodeJpeg", {}), ("DecodeJpeg", {"ratio": 2}), ("DecodeImage", {}), ("ExtractJpegShape", {})),
    "gif": (("DecodeGif", {}), ("DecodeImage", {"expand_animations": False}), ("DecodeImage", {})),
    "bmp": (("DecodeBmp", {"channels": 0}), ("DecodeImage", {})),
    "wav": (("DecodeWav", {}), ("DecodeWav", {"desired_samples": 7, "desired_channels": 3})),
    "zlib": (("DecodeCompressed", {"compression_type": b"ZLIB"}), ("DecodeRaw", {"out_type": 3})),
    "example": (("ParseSingle", {}),),
}


def _decoding(rng: random.Random, seed: str, data: bytes) -> Case:
    """A graph that decodes a constant."""
    from tests.passes import validate_graphs as make
    from toolkit.graph import dtypes

    graph = make.versions(graph_pb2.GraphDef())
    make.const(graph, "data", [data], [], make.S)
    op, attrs = rng.choice(_DECODERS[seed.split()[0]])
    if op == "ParseSingle":
        make.const(graph, "key", [b"x"], [], make.S)
        make.const(graph, "default", [0.0, 0.0], [2])
        node = make.add(graph, "ParseSingleExample", "y", ["data", "default"])
        _attr(node, "dense_keys").list.s.append(b"x")
        _attr(node, "Tdense").list.type.append(dtypes.float32.enum)
        _attr(node, "dense_shapes").list.shape.add().dim.add(size=2)
        for key in ("sparse_keys", "sparse_types"):
            _attr(node, key).list.SetInParent()
        node.attr["num_sparse"].i = 0
    else:
        node = make.add(graph, op, "y", ["data"])
        for key, value in attrs.items():
            if key == "out_type":
                node.attr[key].type = value
            elif isinstance(value, bytes):
                node.attr[key].s = value
            elif isinstance(value, bool):
                node.attr[key].b = value
            else:
                node.attr[key].i = value
    model = {"model.pb": graph.SerializeToString()}
    return Case(
        "formats", f"{seed} by {op}", model, [["run", "model.pb", "--fetch", "y"]], executors=True, tensorflow=True
    )


def _attr(node: Any, key: str) -> Any:
    return node.attr[key]
