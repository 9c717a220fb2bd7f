"""Running a SavedModel folder by TensorFlow, by `graphmill run` and by a session, and comparing the answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from commands.main import run
from tests.runtime.networks.network_case import check_outputs, far_of_signature
from toolkit.formats.models.model import read_model
from toolkit.runtime.saving.saved_model import load_saved_model
from toolkit.runtime.session import Session

DEFAULT = "serving_default"


def check_saved_model(
    tf: ModuleType,
    folder: Path,
    inputs: Mapping[str, Any],
    key: str = DEFAULT,
    *,
    tags: Sequence[str] | None = None,
    by_v1: bool = False,
) -> dict[str, Any]:
    """Hold our answers, by the command line and by a session, against TensorFlow's own; they are returned.

    Args:
        inputs: the signature's input names to values; text as `bytes`, `str` or arrays of them.
        by_v1: ask TensorFlow 1's loader, where that of TensorFlow 2 refuses.
    """
    oracle = answer_of_v1 if by_v1 else answer_of_v2
    wanted = oracle(tf, folder, inputs, key, tags)
    ours = [answer_of_command(folder, inputs, key, tags), answer_of_session(folder, inputs, key, tags)]
    check_outputs(ours, wanted, far_of_signature(read_model(folder, tags=tags), inputs, key, small=True))
    return wanted


def answer_of_v2(
    tf: ModuleType, folder: Path, inputs: Mapping[str, Any], key: str = DEFAULT, tags: Sequence[str] | None = None
) -> dict[str, Any]:
    """What tf.saved_model.load makes of it."""
    function = tf.saved_model.load(str(folder), tags=tags).signatures[key]
    specs = function.structured_input_signature[1]
    fed = {name: tf.constant(value, specs[name].dtype) for name, value in inputs.items()}
    answers: dict[str, Any] = {}
    for label, value in function(**fed).items():
        answers |= {label + part: np.asarray(tensor.numpy()) for part, tensor in _parts(value).items()}
    return answers


def _parts(value: Any) -> dict[str, Any]:
    """A tensor, or the tensors of a sparse or ragged one, as they are named on the command line."""
    if hasattr(value, "dense_shape"):
        return {".indices": value.indices, ".values": value.values, ".dense_shape": value.dense_shape}
    if hasattr(value, "nested_row_splits"):
        splits = value.nested_row_splits
        names = [".row_splits", *(f".row_splits_{level}" for level in range(1, len(splits)))]
        return {".values": value.flat_values, **dict(zip(names, splits, strict=True))}
    return {"": value}


def answer_of_v1(
    tf: ModuleType, folder: Path, inputs: Mapping[str, Any], key: str = DEFAULT, tags: Sequence[str] | None = None
) -> dict[str, Any]:
    """What the loader of TensorFlow 1 makes of it."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, list(tags or ["serve"]), str(folder)).signature_def[key]
        fetches = {label: info.name for label, info in signature.outputs.items()}
        return session.run(fetches, {signature.inputs[name].name: value for name, value in inputs.items()})


def answer_of_command(
    folder: Path, inputs: Mapping[str, Any], key: str = DEFAULT, tags: Sequence[str] | None = None
) -> dict[str, Any]:
    """The arrays that `graphmill run --signature KEY` writes."""
    out = folder.parent / "outputs.npz"
    command = ["run", str(folder), "--signature", key, *command_feeds(folder.parent, inputs), "--out", str(out)]
    if tags:
        command += ["--tags", ",".join(tags)]
    assert run(command) == 0
    return read_outputs(out)


def command_feeds(scratch: Path, inputs: Mapping[str, Any]) -> list[str]:
    """Options that feed these values: numbers from a .npz, text from a .json, which may hold any bytes."""
    fed, archive = scratch / "inputs.json", scratch / "inputs.npz"
    texts = {name: value for name, value in inputs.items() if np.asarray(value).dtype.kind in "SUO"}
    np.savez(archive, **{name: value for name, value in inputs.items() if name not in texts})
    fed.write_text(json.dumps({name: _plain(value) for name, value in texts.items()}))
    options = ["--feeds", str(archive)]
    for name in texts:
        options += ["--feed", f"{name}={fed}:{name}"]
    return options


def read_outputs(path: Path) -> dict[str, Any]:
    """What `--out` wrote, text as objects."""
    with np.load(path) as outputs:
        return {label: _objects(value) for label, value in outputs.items()}


def answer_of_session(
    folder: Path, inputs: Mapping[str, Any], key: str = DEFAULT, tags: Sequence[str] | None = None, **session: Any
) -> dict[str, Any]:
    """What a session of the library answers."""
    model = read_model(folder, tags=tags)
    signature = model.meta.signatures[key]
    with Session(model, **session) as running:
        load_saved_model(running, model)
        tensors = signature.input_tensors()
        return running.run(signature.output_tensors(), {tensors[name]: value for name, value in inputs.items()})


def _plain(value: Any) -> Any:
    """Text as `--feed FILE.json` takes it."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value if isinstance(value, str) else [_plain(item) for item in value]


def _objects(array: Any) -> Any:
    return array.astype(object) if array.dtype.kind == "S" else array
