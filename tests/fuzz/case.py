"""Cases, what is found wrong with them, and the files that keep both."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Case:
    """Files, and what is done with them.

    Attributes:
        kind: the source that made it.
        label: what is special about it, in a few words.
        files: content by path relative to the case's folder.
        commands: command lines; names in them are relative to that folder, outputs go below "out/".
        executors: whether `run` command lines are run in every executor and their results compared.
        exact: whether values are compared beside kinds of numbers; off where they are random or badly conditioned.
        tensorflow: whether TensorFlow is asked too.
        prompt: whether its runs must end at once: nothing in it is work that could be done.
    """

    kind: str
    label: str
    files: dict[str, bytes]
    commands: list[list[str]]
    executors: bool = False
    exact: bool = True
    tensorflow: bool = False
    prompt: bool = False


@dataclass(frozen=True)
class Finding:
    """Something that must not be.

    Attributes:
        key: the class of it, the same for the same mistake: "traceback:KeyError:graph/infer.py:infer".
        command: the command line.
        detail: the end of the traceback, the line of output, the numbers.
    """

    key: str
    command: tuple[str, ...] = ()
    detail: str = ""


@dataclass
class Kept:
    """A case of the corpus, with what it once did."""

    case: Case
    once: list[str] = field(default_factory=list[str])


def _text(data: bytes) -> dict[str, str]:
    """Bytes as JSON: text where they are, compressed where that is shorter."""
    packed = zlib.compress(data, 9)
    if len(packed) < len(data) // 2:
        return {"zlib": base64.b64encode(packed).decode()}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    return {"text": text}


def _bytes(entry: dict[str, str]) -> bytes:
    if "zlib" in entry:
        return zlib.decompress(base64.b64decode(entry["zlib"]))
    return entry["text"].encode() if "text" in entry else base64.b64decode(entry["base64"])


def save(case: Case, once: list[str], path: Path) -> None:
    """Keep a case as a JSON file."""
    entry: dict[str, Any] = {
        "once": once, "kind": case.kind, "label": case.label, "commands": case.commands,
        "executors": case.executors, "exact": case.exact, "tensorflow": case.tensorflow, "prompt": case.prompt,
        "files": {name: _text(data) for name, data in sorted(case.files.items())},
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entry, indent=1) + "\n")


def load(path: Path) -> Kept:
    """A case that `save` kept."""
    entry = json.loads(path.read_text())
    files = {name: _bytes(data) for name, data in entry["files"].items()}
    case = Case(
        entry["kind"], entry["label"], files, entry["commands"], entry["executors"], entry["exact"],
        entry["tensorflow"], entry.get("prompt", False),
    )  # fmt: skip
    return Kept(case, entry["once"])


def corpus(folder: Path = CORPUS) -> list[Path]:
    """Every kept case."""
    return sorted(folder.glob("*.json"))
