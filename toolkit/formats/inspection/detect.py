"""What a file is, from its content; names and suffixes do not count.

Binary graphs are recognised by walking the wire format of their first bytes against the message types: every tag
must have the wire type that the field has, strings must be text, and nested messages must fit in turn.
"""

from __future__ import annotations

import enum
import os
import re
import stat
import struct
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from schemas import graph_pb2, meta_graph_pb2, saved_model_pb2
from toolkit.errors import STDIN_NAME, FormatError, GraphmillError, UsageError, did_you_mean
from toolkit.formats import io
from toolkit.formats.folders import archive
from toolkit.formats.models import protoscan
from toolkit.formats.records import riegeli, traces


class ModelKind(enum.Enum):
    """The kinds of model files; the values are what `--as` takes."""

    GRAPH_DEF = "graphdef"
    META_GRAPH = "metagraph"
    SAVED_MODEL = "savedmodel"


class Encoding(enum.Enum):
    """How a message is written."""

    BINARY = "binary"
    TEXT = "text"
    JSON = "json"
    SPLIT = "split"


#: of the graph that a Saver writes beside a checkpoint
_GRAPH_SUFFIX = ".meta"


class FileKind(enum.Enum):
    """Everything that can be told apart."""

    GRAPH_DEF = "graphdef"
    META_GRAPH = "metagraph"
    SAVED_MODEL = "savedmodel"
    PARTITIONS = "partitions"
    CHECKPOINT = "checkpoint"
    CHECKPOINT_STATE = "checkpoint state"
    EVENTS = "events"
    TFRECORD = "tfrecord"
    OTHER = "other"

    @property
    def model(self) -> ModelKind | None:
        return _MODEL_KINDS.get(self)


_MODEL_KINDS = {
    FileKind.GRAPH_DEF: ModelKind.GRAPH_DEF,
    FileKind.META_GRAPH: ModelKind.META_GRAPH,
    FileKind.SAVED_MODEL: ModelKind.SAVED_MODEL,
}
MESSAGES: dict[ModelKind, type[Any]] = {
    ModelKind.GRAPH_DEF: graph_pb2.GraphDef,
    ModelKind.META_GRAPH: meta_graph_pb2.MetaGraphDef,
    ModelKind.SAVED_MODEL: saved_model_pb2.SavedModel,
}


@dataclass(frozen=True, slots=True)
class Detected:
    """What a file is.

    Attributes:
        kind: the kind of file.
        encoding: of a model, else None.
        path: the file to read: the message inside a SavedModel folder, the prefix of a checkpoint.
        folder: the SavedModel folder, when there is one, or what an archive was unpacked into.
        looks_like: for OTHER, what it looks like: "a zip archive", "random bytes", ...; for the rest "".
        hint: for OTHER, what to do about it.
        data: the content, when it had to be read whole (standard input).
        compression: of a TFRecord or event file: "", "GZIP" or "ZLIB".
    """

    kind: FileKind
    encoding: Encoding | None
    path: str
    folder: Path | None = None
    looks_like: str = ""
    hint: str = ""
    data: bytes | None = None
    compression: str = ""


#: first bytes that are enough to tell what a file is
_HEAD = 1 << 16
#: fields that must be right before a damaged file is taken for a message
_ENOUGH = 3
_TABLE_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
PARTITIONS_FILE = "partitions.yaml"
PARTITIONS_META_FILE = "meta.pb"
#: the collection of a MetaGraph that says that its graph is made of partitions
STREAM_KEY = "graphmill_partitions"
#: the message in a SavedModel folder
BINARY_NAME = "saved_model.pb"
TEXT_NAME = "saved_model.pbtxt"
SPLIT_NAME = "saved_model.cpb"

#: (offset, bytes, what it is, what to do)
_MAGIC: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras weights or model)", "export a SavedModel with model.export()"),
    (0, b"PK\x03\x04", "a zip archive (perhaps a .keras, .npz or PyTorch file)", "unpack it or export a SavedModel"),
    (0, b"\x1f\x8b", "gzip-compressed data", "decompress it first (gunzip)"),
    (0, b"\xfd7zXZ\0", "xz-compressed data", "decompress it first (unxz)"),
    (0, b"BZh", "bzip2-compressed data", "decompress it first (bunzip2)"),
    (0, b"\x28\xb5\x2f\xfd", "zstd-compressed data", "decompress it first (unzstd)"),
    (4, b"TFL3", "a TensorFlow Lite model", "convert from the SavedModel it was made of"),
    (0, b"\x93NUMPY", "a NumPy array (.npy)", "feed it with --feed NAME=FILE.npy"),
    (0, b"\x7fELF", "an ELF program or library", ""),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image", ""),
    (0, b"\xff\xd8\xff", "a JPEG image", ""),
    (0, b"GIF8", "a GIF image", ""),
    (0, b"%PDF", "a PDF document", ""),
    (0, b"version https://git-lfs", "a Git LFS pointer, not the file itself", "fetch it with git lfs pull"),
)
# patterns are compiled when they are first asked for: a binary file needs none
_HTML = rb"\s*(<\?xml[^>]*>\s*)?<(!doctype html|html|head|body|!--)"
_TEXT_FIELD = r"^\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?::|\{|<)"
_TEXT_COMMENT = r"#[^\n]*"
_JSON_KEY = r'\s*\{\s*"([^"\\]*)"\s*:'
_TEXT_CONTROLS = {"\t", "\n", "\r", "\f", "\x0b"}


def detect(source: str | Path, data: bytes | None = None, *, unpacks: bool = True) -> Detected:
    """Say what a file, a folder, a checkpoint prefix or standard input ("-") is.

    A tar archive is unpacked, and what is told is what lies in its folder (`toolkit.formats.folders.archive`).

    Args:
        data: its content, where it has been read already: a pipe can be read only once.
        unpacks: whether archives are unpacked; else they are OTHER.

    Raises:
        GraphmillError: there is nothing of that name, or it cannot be read.
        FormatError: it is empty.
    """
    name = os.fspath(source)
    if name == io.STDIO:
        return _whole(io.stdin_stream() if data is None else data, STDIN_NAME, unpacks)
    if data is not None:
        return _whole(data, name, unpacks)
    if not name:
        raise UsageError("the name of the file is empty")
    path = Path(name)
    try:
        if path.is_dir():
            return _folder(path, name)
        if not path.exists() and Path(name + ".index").is_file():
            return Detected(FileKind.CHECKPOINT, None, name)
    except (OSError, ValueError):
        pass  # not a possible name: opening it says so
    with io.open_input(name) as file:
        try:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):  # a pipe or a device: it can be read only once
                return _whole(file, name, unpacks)
            head = file.read(_HEAD)
            if archive.is_archive(head) and unpacks:
                file.seek(0)
                return _unpacked(file, name)
            end = head[-8:]
            if status.st_size > len(head):
                file.seek(-8, os.SEEK_END)
                end = file.read(8)
        except OSError as error:
            raise GraphmillError(f"cannot be read: {error.strerror or error}", file=name) from None
    if head.startswith(riegeli.SIGNATURE):
        return _split(Path(name), name)
    return sniff(head, max(status.st_size, len(head)), end, name)


def _split(source: Path | bytes, name: str) -> Detected:
    from toolkit.formats.models import chunks  # few files are split

    data = source if isinstance(source, bytes) else None
    return Detected(FileKind(chunks.kind_of(source, MESSAGES, name).value), Encoding.SPLIT, name, data=data)


def _unpacked(stream: io.Readable, name: str) -> Detected:
    folder = archive.unpack(stream, name)
    found = _folder(folder, str(folder))
    if found.kind.model is None and found.kind is not FileKind.PARTITIONS:
        hint = "expected the files of a SavedModel's or of partitions' folder"
        return Detected(FileKind.OTHER, None, name, looks_like="a tar archive of other things", hint=hint)
    return replace(found, folder=folder)


def _whole(content: bytes | io.Readable, name: str, unpacks: bool) -> Detected:
    """Say what comes through a pipe, or has been read from it.

    An archive is unpacked as it comes; everything else is held in memory.
    """
    stream = BytesIO(content) if isinstance(content, bytes) else content
    head = io.read_some(stream, _HEAD, name)
    if archive.is_archive(head) and unpacks:
        return _unpacked(io.Joined(head, stream), name)
    data = content if isinstance(content, bytes) else io.read_stream(io.Joined(head, stream), name)
    if data.startswith(riegeli.SIGNATURE):
        return _split(data, name)
    return replace(sniff(data[:_HEAD], len(data), data[-8:], name), data=data)


def _folder(path: Path, name: str) -> Detected:
    file = saved_model_file(path)
    if file is not None:
        inner = detect(file)
        if inner.kind.model is None:
            raise explain(inner, str(file))
        return replace(inner, folder=path) if inner.kind is FileKind.SAVED_MODEL else inner
    if (path / PARTITIONS_FILE).is_file():
        return Detected(FileKind.PARTITIONS, None, name)
    if (path / "checkpoint").is_file():
        return detect(path / "checkpoint")
    try:
        entries = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        raise GraphmillError(f"cannot be read: {error.strerror or error}", file=name) from None
    if not entries:
        raise FormatError("is an empty folder", file=name)
    if any(map(is_event_file, entries)):
        return Detected(FileKind.EVENTS, None, name)
    prefixes = [entry.removesuffix(".index") for entry in entries if entry.endswith(".index")]
    if len(prefixes) == 1:
        return Detected(FileKind.CHECKPOINT, None, str(path / prefixes[0]))
    if "variables" in entries or "fingerprint.pb" in entries:
        what, hint = "a SavedModel folder whose saved_model.pb is missing", "copy or export the folder again"
    else:
        what = "a folder without saved_model.pb, partitions.yaml or checkpoint"
        inside = prefixes or [entry for entry in entries if _is_model_name(path / entry)]
        hint = f"give what is in it, such as '{path / inside[0]}'" if inside else "nothing in it is called like a model"
    return Detected(FileKind.OTHER, None, name, looks_like=what, hint=hint)


def _is_model_name(path: Path) -> bool:
    """Whether something in a folder could be what was meant."""
    return path.suffix in (".pb", ".pbtxt", ".meta", ".graphdef") or (path / BINARY_NAME).is_file()


def saved_model_file(folder: Path) -> Path | None:
    """The file of the SavedModel message in a folder, or None."""
    return next((folder / name for name in (BINARY_NAME, TEXT_NAME, SPLIT_NAME) if (folder / name).is_file()), None)


def sniff(head: bytes, size: int, tail: bytes, name: str) -> Detected:
    """Say what bytes are.

    Args:
        head: the first bytes of the file, all of them if it is short.
        size: of the whole file.
        tail: the last 8 bytes.
        name: of the file, for errors and for `path`.

    Raises:
        FormatError: it is empty.
    """
    if size == 0:
        raise FormatError("the file is empty", file=name)
    if tail == _TABLE_MAGIC:
        return Detected(FileKind.CHECKPOINT, None, name.removesuffix(".index"))
    if len(head) >= archive.END_SIZE and not any(head):
        raise FormatError("begins with zeros alone, as a tar archive without members does", file=name)
    compressed = _compressed_records(head, name)
    if compressed is not None:
        return compressed
    found = _sniff_content(head, size, name)
    if found.kind is FileKind.OTHER and traces.is_trace(head):
        return replace(found, looks_like="the trace of a run", hint="draw it with: graphmill visualize")
    return found


def _sniff_content(head: bytes, size: int, name: str) -> Detected:
    if archive.is_archive(head):
        hint = "give it by its own name, or unpack it"
        return Detected(FileKind.OTHER, None, name, looks_like="a tar archive", hint=hint)
    for offset, magic, what, hint in _MAGIC:
        if head.startswith(magic, offset):
            return Detected(FileKind.OTHER, None, name, looks_like=what, hint=hint)
    if head.lstrip().startswith(b"<") and re.match(_HTML, head, re.IGNORECASE):
        hint = "the download probably failed; fetch the file again"
        return Detected(FileKind.OTHER, None, name, looks_like="an HTML or XML page", hint=hint)
    if _is_tfrecord(head):
        return Detected(FileKind.EVENTS if b"brain.Event:" in head[:64] else FileKind.TFRECORD, None, name)
    text = _as_text(head, size)
    if text is not None:
        return _sniff_text(text, name)
    return _sniff_binary(head, size, name)


def _is_tfrecord(head: bytes) -> bool:
    if len(head) < 12 or head[6:8] != b"\0\0":  # no record is near 2**48 bytes
        return False
    from toolkit.formats.records import crc

    return crc.masked(head[:8]) == int.from_bytes(head[8:12], "little")


def _compressed_records(head: bytes, name: str) -> Detected | None:
    """TFRecord files may be compressed as a whole."""
    compression = "GZIP" if head.startswith(b"\x1f\x8b") else "ZLIB" if head[:1] == b"\x78" else ""
    if not compression:
        return None
    import zlib

    try:
        start = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(head, 64)
    except zlib.error:
        return None
    if not _is_tfrecord(start):
        return None
    kind = FileKind.EVENTS if b"brain.Event:" in start else FileKind.TFRECORD
    return Detected(kind, None, name, compression=compression)


def is_event_file(name: str) -> bool:
    """Whether a file is called as TensorFlow calls event files."""
    return ".tfevents." in name


def _as_text(head: bytes, size: int) -> str | None:
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(head) == size or error.start < len(head) - 3:
            return None
        text = head[: error.start].decode("utf-8-sig")
    if any(ch < " " and ch not in _TEXT_CONTROLS for ch in text):
        return None
    return text


def _sniff_text(text: str, name: str) -> Detected:
    stripped = re.sub(_TEXT_COMMENT, "", text).strip() if text.lstrip().startswith("#") else text.strip()
    if not stripped:
        raise FormatError("the file holds nothing but white space", file=name)
    if stripped[0] in "{[":
        return _sniff_json(stripped, name)
    match = re.match(_TEXT_FIELD, stripped, re.MULTILINE)
    field = match[1] if match else ""
    kind = _kind_of_field(field)
    if kind is not None and match is not None and not _is_yaml(stripped, match):
        return Detected(FileKind(kind.value), Encoding.TEXT, name)
    if field in ("model_checkpoint_path", "all_model_checkpoint_paths"):
        return Detected(FileKind.CHECKPOINT_STATE, Encoding.TEXT, name)
    if match is not None and stripped[match.end() - 1] == ":":
        return Detected(
            FileKind.OTHER, None, name, looks_like=f"a text file that begins with '{field}:'",
            hint="a YAML spec is made into a graph by: graphmill build",
        )  # fmt: skip
    if re.match(r"(import|from|def|class|\"\"\"|with) ?", stripped):
        return Detected(FileKind.OTHER, None, name, looks_like="Python source", hint="try: graphmill build")
    start = " ".join(stripped[:40].split())
    near = did_you_mean(field, _FIELD_KINDS) if field else ""
    return Detected(FileKind.OTHER, None, name, looks_like=f"text that begins with '{start}'{near}")


def _is_yaml(text: str, match: re.Match[str]) -> bool:
    """`version:` and the like may begin a YAML file too; in text format a value or a brace follows on the line."""
    line = text[match.end() - 1 : text.find("\n", match.end() - 1) % (len(text) + 1)].strip()
    return line == ":"


def _sniff_json(text: str, name: str) -> Detected:
    match = re.match(_JSON_KEY, text)
    kind = _kind_of_field(re.sub(r"(?<!^)([A-Z])", r"_\1", match[1]).lower()) if match else None
    if kind is not None:
        return Detected(FileKind(kind.value), Encoding.JSON, name)
    what = f"JSON that begins with the key '{match[1]}'" if match else "JSON"
    hint = 'a graph\'s JSON begins with one of its fields, such as "node" or "versions"'
    return Detected(FileKind.OTHER, None, name, looks_like=what, hint=hint)


#: the fields of the three messages; no two of them share one
_FIELD_KINDS: dict[str, ModelKind] = {
    field: kind for kind, message in MESSAGES.items() for field in message.DESCRIPTOR.fields_by_name
}


def _kind_of_field(field: str) -> ModelKind | None:
    return _FIELD_KINDS.get(field)


def _sniff_binary(head: bytes, size: int, name: str) -> Detected:
    if _is_fingerprint(head, size):
        return Detected(
            FileKind.OTHER, None, name, looks_like="the fingerprint of a SavedModel, which holds hashes only",
            hint="give the folder that it is in",
        )  # fmt: skip
    if _is_onnx(head, size):
        return Detected(
            FileKind.OTHER, None, name, looks_like="an ONNX model", hint="graphmill reads TensorFlow's formats"
        )
    kind = _best_fit(head, size)
    if kind is not None:
        return Detected(FileKind(kind.value), Encoding.BINARY, name)
    if _is_pickle(head):
        return Detected(
            FileKind.OTHER, None, name, looks_like="a Python pickle (perhaps a PyTorch file)",
            hint="pickles are never loaded",
        )  # fmt: skip
    data_shard = re.fullmatch(r"(.*)\.data-\d{5}-of-\d{5}", name)
    if data_shard:
        return Detected(
            FileKind.OTHER, None, name, looks_like="a data file of a checkpoint",
            hint=f"give the checkpoint's prefix: '{data_shard[1]}'",
        )  # fmt: skip
    return Detected(FileKind.OTHER, None, name, looks_like="binary data of a kind that is not known")


def _is_pickle(head: bytes) -> bool:
    """Whether it begins with the opcode PROTO and a version that there is."""
    return head[:1] == b"\x80" and b"\x02" <= head[1:2] <= b"\x05"


def _best_fit(head: bytes, size: int) -> ModelKind | None:
    """The message that bytes are, if any; one that begins well and is damaged later counts when nothing else does."""
    whole: list[tuple[int, ModelKind]] = []
    begun: list[tuple[int, ModelKind]] = []
    for kind, message in MESSAGES.items():
        fit = protoscan.fit(head, message.DESCRIPTOR, size)
        if not fit.broken and fit.known > 2 * fit.unknown:
            whole.append((fit.known - 4 * fit.unknown, kind))
        elif fit.known >= _ENOUGH and not fit.unknown:
            begun.append((fit.known, kind))
    fits = whole or begun
    return max(fits, key=lambda entry: entry[0])[1] if fits else None


def _is_fingerprint(head: bytes, size: int) -> bool:
    """FingerprintDef: five hashes (1 to 5, numbers), its version (6, message) and an identifier (7, digits)."""
    try:
        found = list(protoscan.fields(head, 0, len(head))) if size == len(head) else []
    except protoscan.WireError:
        return False
    forms = {field.number: field.wire_type for field in found}
    numbers = {number for number, form in forms.items() if form == protoscan.VARINT}
    identifier = b"".join(head[field.value : field.end] for field in found if field.number == 7)
    return {1, 2} <= numbers <= {1, 2, 3, 4, 5} and forms.keys() <= set(range(1, 8)) and identifier.isdigit()


def _is_onnx(head: bytes, size: int) -> bool:
    """ModelProto: ir_version (1, number), producer_name (2), graph (7, message), opset_import (8, message)."""
    seen: dict[int, int] = {}
    try:
        for field in protoscan.fields(head, 0, len(head), size):
            seen[field.number] = field.wire_type
    except protoscan.WireError:
        pass
    graph_like = seen.get(7) == protoscan.LENGTH or seen.get(8) == protoscan.LENGTH
    return seen.get(1) == protoscan.VARINT and graph_like


def _graph_beside(place: Path) -> str:
    """The graph that a Saver has written with a checkpoint, in a phrase: that file, or the newest of a folder."""
    try:
        files = list(place.glob(f"*{_GRAPH_SUFFIX}")) if place.is_dir() else [place] if place.is_file() else []
        newest = max(files, key=lambda file: (file.stat().st_mtime, file.name), default=None)
    except OSError:
        return ""
    return "" if newest is None else f"; its graph is {newest}"


def explain(found: Detected, name: str) -> FormatError:
    """The error for a file that should be a graph and is something else."""
    match found.kind:
        case FileKind.CHECKPOINT:
            message = f"this is a checkpoint, not a graph{_graph_beside(Path(str(found.path) + _GRAPH_SUFFIX))}; "
            message += f"try: graphmill checkpoint inspect {found.path}"
        case FileKind.CHECKPOINT_STATE:
            folder = Path(found.path) if Path(found.path).is_dir() else Path(found.path).parent
            message = f"this is the list of checkpoints in a folder, not a graph{_graph_beside(folder)}; "
            message += "try: graphmill checkpoint inspect with one of the prefixes in it"
        case FileKind.EVENTS:
            message = f"this is an event file, not a graph; try: graphmill inspect {name}"
        case FileKind.TFRECORD:
            message = f"this is a TFRecord file, not a graph; try: graphmill inspect {name}"
        case FileKind.PARTITIONS:
            message = "this is a folder of partitions, not one graph; graphmill run takes it, or give one of its files"
        case _:
            hint = f"; {found.hint}" if found.hint else ""
            message = f"not a GraphDef, MetaGraphDef or SavedModel: it looks like {found.looks_like}{hint}"
    return FormatError(message, file=name)
