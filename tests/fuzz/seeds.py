"""Good files of every format, small, made by the project itself: what mutation starts from."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

Files = dict[str, bytes]

SPEC = """
name: net
seed: 7
inputs:
  x: {dtype: float32, shape: [null, 8, 8, 1]}
  y: {dtype: int64, shape: [null]}
variables:
  extra: {shape: [3], initializer: zeros}
nodes:
  - {layer: conv2d, name: conv1, filters: 4, kernel: 3, activation: relu}
  - {layer: max_pool, name: pool1, size: 2}
  - scope: block
    nodes:
      - {layer: flatten}
      - {layer: dense, name: logits, units: 10}
  - {layer: softmax, name: probabilities}
  - {op: MatMul, name: product, inputs: [[[1.0, 2.0]], [[1.0], [2.0]]], attrs: {transpose_b: false}}
loss: {type: sparse_softmax_cross_entropy, labels: y, logits: block/logits}
metrics: {accuracy: {labels: y, predictions: block/logits}}
optimizer: {type: adam, name: train, learning_rate: 0.002, clip_norm: 1.0}
summaries: {scalar: [loss]}
saver: {max_to_keep: 5}
signatures:
  serving_default: {inputs: {x: x}, outputs: {probabilities: probabilities}}
"""
CLUSTER = """
jobs:
  ps:
    - {address: "localhost:2222", devices: {CPU: 1}}
  worker:
    - {address: "localhost:2223", devices: {CPU: 2}}
default: /job:worker/task:0
"""
RULES = """
validate:
  fail-on: warning
  runs-on: CPU
  budgets: {params: 30e6, flops: 8e9}
  exclude: ["third_party/*"]
  rules:
    reproducibility: off
    numerics/*: {severity: warning, paths: ["models/*"]}
"""


def make() -> dict[str, Files]:
    """Every seed by name: files by path. Runs commands of the project; call it in a process that may end after it."""
    with tempfile.TemporaryDirectory(prefix="graphmill-seeds-") as scratch, _quiet(), contextlib.chdir(scratch):
        seeds = _models()
        seeds |= _checkpoints(seeds)
        seeds |= _arrays()
        seeds |= _records()
        seeds["spec"] = {"spec.yaml": SPEC.encode()}
        seeds["cluster"] = {"cluster.yaml": CLUSTER.encode(), "model.pb": seeds["net"]["model.pb"]}
        seeds["rules"] = {"graphmill.yaml": RULES.encode(), "model.pb": seeds["net"]["model.pb"]}
        seeds |= _partitions()
        seeds |= _traces(seeds)
        seeds |= _media()
        return seeds


def graphmill(*args: str, codes: tuple[int, ...] = (0,)) -> None:
    """Run a command, which must succeed."""
    from commands.main import run

    code = run([*args, "-q"])
    if code not in codes:
        raise RuntimeError(f"graphmill {' '.join(args)} ended with {code}")


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    output = sys.stdout
    sys.stdout = io.StringIO()
    os.environ["GRAPHMILL_SEGMENTS"] = "off"
    os.environ["GRAPHMILL_ONEDNN"] = "off"
    try:
        yield
    finally:
        sys.stdout = output
        del os.environ["GRAPHMILL_SEGMENTS"], os.environ["GRAPHMILL_ONEDNN"]


def _below(folder: str | Path, prefix: str = "") -> Files:
    root = Path(folder)
    return {
        f"{prefix}{path.relative_to(root)}": path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


def _models() -> dict[str, Files]:
    from google.protobuf import json_format, text_format

    from tests.passes import validate_graphs

    found: dict[str, Files] = {}
    for name in ("net", "loop", "calls"):
        found[name] = {"model.pb": getattr(validate_graphs, name)().SerializeToString()}
    found["meta"] = {"model.pb": validate_graphs.meta().SerializeToString()}
    Path("spec.yaml").write_text(SPEC)
    graphmill("build", "spec.yaml", "-o", "training.meta")
    found["training"] = {"model.pb": Path("training.meta").read_bytes()}
    saved = validate_graphs.saved()
    Path("saved/variables").mkdir(parents=True)
    Path("saved/saved_model.pb").write_bytes(saved.SerializeToString())
    validate_graphs.write_checkpoint(Path("saved/variables/variables"))
    found["saved"] = _below("saved", "saved/")
    for name, target, kind in (
        ("net", "net/model.cpb", "graphdef"), ("meta", "meta/model.cpb", "metagraph"), ("saved", "split", "savedmodel"),
    ):  # fmt: skip
        source = "saved" if name == "saved" else f"{name}.pb"
        if name != "saved":
            Path(name).mkdir()
            Path(source).write_bytes(found[name]["model.pb"])
        graphmill("convert", source, "-o", target, "--as", f"{kind}.split")
        found[f"{name}.split"] = _below("split", "saved/") if name == "saved" else _below(name)
    meta = validate_graphs.meta()
    found["meta.text"] = {"model.pbtxt": text_format.MessageToString(meta).encode()}
    found["meta.json"] = {"model.json": json_format.MessageToJson(meta).encode()}
    return found


def _checkpoints(seeds: dict[str, Files]) -> dict[str, Files]:
    from tests.formats.bundle_cases import small_checkpoint
    from tests.passes import validate_graphs
    from toolkit.formats.bundle.state import write_state

    Path("v2").mkdir()
    small_checkpoint(Path("v2/c"), 2)
    write_state("v2", "v2/c", ["v2/c"])
    Path("names").mkdir()
    validate_graphs.write_checkpoint(Path("names/c"))
    for target, more in (("v1/c", ["--v1"]), ("names.npz", []), ("names.safetensors", [])):
        Path(target).parent.mkdir(exist_ok=True)
        graphmill("checkpoint", "convert", "names/c", target, *more)
    Path("objects").mkdir()
    graphmill("checkpoint", "rename", "names/c", "--to-objects", "-o", "objects/c")
    return {
        "checkpoint": _below("v2", "ckpt/"),
        "checkpoint names": _below("names", "ckpt/") | seeds["meta"],
        "checkpoint v1": _below("v1", "ckpt/"),
        "checkpoint objects": _below("objects", "ckpt/"),
        "npz checkpoint": {"c.npz": Path("names.npz").read_bytes()},
        "safetensors": {"c.safetensors": Path("names.safetensors").read_bytes()},
    }


def _arrays() -> dict[str, Files]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 4)).astype(np.float32)
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, x)
    np.savez_compressed(npz, x=x, y=np.arange(3))
    return {
        "npy": {"x.npy": npy.getvalue()},
        "npz": {"x.npz": npz.getvalue()},
        "json": {"x.json": str(x.tolist()).encode()},
        "csv": {"x.csv": b"a,b,c,d\n1,2,3,4\n5,6,7,8e9\n"},
    }


def _records() -> dict[str, Files]:
    from schemas.example_pb2 import Example
    from toolkit.formats.records.events import EventWriter
    from toolkit.formats.records.tfrecord import write_records

    records: list[bytes] = []
    for at in range(3):
        example = Example()
        example.features.feature["x"].float_list.value.extend([1.0 * at, 2.0, 3.0, 4.0])
        example.features.feature["n"].int64_list.value.append(at)
        example.features.feature["s"].bytes_list.value.append(b"word")
        records.append(example.SerializeToString())
    found: dict[str, Files] = {}
    for compression, name in (("", "plain"), ("GZIP", "gzip"), ("ZLIB", "zlib")):
        write_records(f"{name}.tfrecord", records, compression)
        found[f"tfrecord {name}"] = {"x.tfrecord": Path(f"{name}.tfrecord").read_bytes()}
    with EventWriter("events") as writer:
        writer.add_scalar("loss", 1.0, 1)
    found["events"] = {"x.events": next(iter(_below("events").values()))}
    return found


def _partitions() -> dict[str, Files]:
    Path("cluster.yaml").write_text(CLUSTER)
    graphmill("place", "training.meta", "--cluster", "cluster.yaml", "--variables", "/job:ps", "-o", "placed.meta")
    graphmill("partition", "placed.meta", "-o", "parts")
    return {"partitions": _below("parts", "parts/")}


def _traces(seeds: dict[str, Files]) -> dict[str, Files]:
    Path("net.pb").write_bytes(seeds["net"]["model.pb"])
    np.save("images.npy", np.ones((1, 8, 8, 3), np.float32))
    found: dict[str, Files] = {}
    for suffix in ("pb", "json"):
        graphmill("run", "net.pb", "--feed", "x=images.npy", "--fetch", "prob", "--trace", f"trace.{suffix}")
        found[f"trace {suffix}"] = {f"trace.{suffix}": Path(f"trace.{suffix}").read_bytes(), **seeds["net"]}
    return found


def _media() -> dict[str, Files]:
    """Pictures and sounds, and the op that decodes each."""
    from PIL import Image

    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (9, 7, 3), dtype=np.uint8)
    found: dict[str, Files] = {}
    for kind in ("png", "jpeg", "gif", "bmp"):
        for mode in ("RGB", "L", "P"):
            file = io.BytesIO()
            Image.fromarray(pixels).convert(mode).convert(*(["L"] if kind == "jpeg" and mode == "P" else [])).save(
                file, kind, **({"interlace": 1} if kind == "png" else {})
            )
            found[f"{kind} {mode}"] = {"data": file.getvalue()}
    frames = [Image.fromarray(np.roll(pixels, turn, 0)) for turn in range(3)]
    file = io.BytesIO()
    frames[0].save(file, "gif", save_all=True, append_images=frames[1:])
    found["gif frames"] = {"data": file.getvalue()}
    samples = struct.pack("<20h", *range(-10, 10))
    wav = (
        b"RIFF"
        + struct.pack("<I", 36 + len(samples))
        + b"WAVEfmt "
        + struct.pack("<IHHIIHH", 16, 1, 2, 8000, 32000, 4, 16)
    )
    found["wav"] = {"data": wav + b"data" + struct.pack("<I", len(samples)) + samples}
    found["zlib bytes"] = {"data": zlib.compress(bytes(range(64)) * 4)}
    found["example bytes"] = {"data": _example()}
    return found


def _example() -> bytes:
    from schemas.example_pb2 import Example

    example = Example()
    example.features.feature["x"].float_list.value.extend([1.0, 2.0])
    return example.SerializeToString()


def load() -> dict[str, Files]:
    """`make` in a child, so that nothing of it (threads of libraries above all) is left in this process."""
    import pickle

    receive, send = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(receive)
        with os.fdopen(send, "wb") as pipe:
            pipe.write(pickle.dumps(make()))
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        data: Any = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError("the seeds could not be made; see the error above")
    return pickle.loads(data)
