"""Mutation of .npy, .npz and .safetensors files: headers that lie, members that come twice."""

from __future__ import annotations

import io
import json
import random
import warnings
import zipfile
from typing import Any

from tests.fuzz import formats_bytes

_SHAPES = (
    "()",
    "(-1,)",
    "(0,)",
    "(1099511627776,)",
    "(4611686018427387904, 4)",
    "(0, 9223372036854775807)",
    "(1.5,)",
    "(9223372036854775808,)",
    "'x'",
    "(True,)",
    "(2, 2)",
    str((1,) * 65),
    "((1,),)",
    "None",
    "(3,",
    "(1e400,)",
)
_ANYTHING: list[Any] = [None, [], {}, "x"]
_DTYPES = (
    "'|O'",
    "'<f8'",
    "'|V8'",
    "'<f16'",
    "'|S0'",
    "'|S9999999999'",
    "'<U2147483647'",
    "'<M8[s]'",
    "[('a','<i4')]",
    "[('a','|O')]",
    "'<c16'",
    "'>f4'",
    "'|b1'",
    "None",
    "1",
    "'<f3'",
    "('<f4', (1000000, 1000000))",
    "'<i4,<i4'",
)


def npy(rng: random.Random, data: bytes) -> bytes:
    """The header of an .npy file: its shape, type, order, length."""
    if data[:6] != b"\x93NUMPY":
        raise ValueError("no .npy")
    size = int.from_bytes(data[8:10], "little")
    header, body = data[10 : 10 + size].decode("latin-1"), data[10 + size :]
    shape, dtype = rng.choice(_SHAPES), rng.choice(_DTYPES)
    fields = ["'descr': '<f4'", "'fortran_order': False", "'shape': (2,)"]
    match rng.randrange(5):
        case 0:
            header = header[: header.find("'shape'")] + f"'shape': {shape}, }}"
        case 1:
            header = header[: header.find("'descr'")] + f"'descr': {dtype}, " + header[header.find("'fortran") :]
        case 2:
            header = header.replace("False", rng.choice(("True", "2", "None", "__import__('os')")))
        case 3:
            rng.shuffle(fields)
            header = "{" + ", ".join(fields[: rng.randint(0, 3)]) + "}"
        case _:
            header = rng.choice(("(" * 500, "{" * 500, "9" * 5000, "-" * 20000, "{'a':" * 300, "\0", "[" + "1," * 9000))
    version = rng.choice((data[6:8], data[6:8], b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    text = header.encode("latin-1", "replace")
    width = 2 if version == b"\x01\x00" else 4
    claimed = len(text) if rng.random() < 0.8 else formats_bytes.border(rng, len(text))
    return data[:6] + version + (claimed & ((1 << 8 * width) - 1)).to_bytes(width, "little") + text + body


def mutate_npy(rng: random.Random, data: bytes) -> bytes:
    return formats_bytes.choose(rng, data, (npy,))


def members(rng: random.Random, data: bytes) -> bytes:
    """The arrays of an .npz: mutated, twice, renamed, compressed, gone."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = [(name, archive.read(name)) for name in archive.namelist()]
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(found))
        name, body = found[at]
        match rng.randrange(6):
            case 0 | 1:
                found[at] = (name, mutate_npy(rng, body))
            case 2:
                found.append((name, rng.choice((body, mutate_npy(rng, body)))))
            case 3:
                found[at] = (rng.choice(("", "/", "../x.npy", "a.npy", "\u202e.npy", name.removesuffix(".npy"))), body)
            case 4:
                notes = (
                    "{}",
                    "[]",
                    "1",
                    "{" * 5000,
                    '{"x":{"dtype":1}}',
                    json.dumps({name[:-4]: {"lengths": [2**62]}}),
                    json.dumps({name[:-4]: {"dtype": "bfloat16"}}),
                    json.dumps({name[:-4]: {"dtype": "string"}}),
                )
                found.append(("__graphmill__.json", rng.choice(notes).encode()))
            case _:
                del found[at]
                found = found or [("x.npy", b"")]
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # members that come twice are the point
        with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name, body in found:
                archive.writestr(zipfile.ZipInfo(name or "x", (1980, 1, 1, 0, 0, 0)), body)
    return out.getvalue()


def directory(rng: random.Random, data: bytes) -> bytes:
    """The central directory of the zip file: sizes, offsets, methods, flags."""
    start = data.rfind(b"PK\x01\x02") if rng.random() < 0.7 else data.rfind(b"PK\x05\x06")
    if start < 0:
        raise ValueError("no zip")
    at = start + rng.choice((8, 10, 16, 20, 24, 28, 30, 42))
    width = rng.choice((2, 4))
    value = formats_bytes.border(rng) & ((1 << 8 * width) - 1)
    return data[:at] + value.to_bytes(width, "little") + data[at + width :]


def mutate_npz(rng: random.Random, data: bytes) -> bytes:
    return formats_bytes.choose(rng, data, (members, members, directory))


def header(rng: random.Random, data: bytes) -> bytes:
    """The JSON header of a .safetensors file."""
    size = int.from_bytes(data[:8], "little")
    fields: dict[str, Any] = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    keys = [key for key in fields if key != "__metadata__"]
    item = fields[rng.choice(keys)]
    big = rng.choice((2**31, 2**40, 2**62, 2**63, 2**64, -1, 0, 1.5, "1", None, True, 10**400))
    match rng.randrange(9):
        case 0:
            shapes: list[Any] = [[big], [big, 0], [], [1] * 70, big, [[1]], {}, [-1, -4]]
            item["shape"] = rng.choice(shapes)
        case 1:
            item["data_offsets"] = rng.choice(([0, big], [big, big], [4, 0], [0], [0, 1, 2], big, []))
        case 2:
            item["dtype"] = rng.choice(("F32", "F4", "BOOL", "U8", "I64", "", 7, None, "F8_E8M0", []))
        case 3:
            item["data_offsets"] = list(fields[rng.choice(keys)]["data_offsets"])
        case 4:
            fields["__metadata__"] = rng.choice(
                (
                    1,
                    [],
                    {"a": 1},
                    {"graphmill.dtypes": "1"},
                    {"graphmill.strings": "[]"},
                    {"graphmill.strings": '{"s":{"dtype":"string","shape":[4611686018427387904],"base64":[]}}'},
                    {"graphmill.dtypes": "{" * 9999},
                    {"graphmill.dtypes": json.dumps(dict.fromkeys(keys, "int4"))},
                    {"graphmill.strings": '{"s":{"dtype":"float32","shape":[],"base64":["a"]}}'},
                )
            )
        case 5:
            fields[rng.choice(("", "\u202e", "a/b", "x" * 1000))] = item
        case 6:
            item[rng.choice(("dtype", "shape", "data_offsets", "more"))] = rng.choice(_ANYTHING)
        case 7:
            body = formats_bytes.mutate(rng, body)
        case _:
            del fields[rng.choice(keys)]
    text = json.dumps(fields)
    if rng.random() < 0.1:
        text = rng.choice(
            ("{" * 100000, "[" * 100000, text[:-1] + "," + text[1:], "9" * 5000, '{"a":' * 2000, "null", "[]")
        )
    packed = text.encode()
    length = len(packed) if rng.random() < 0.9 else formats_bytes.border(rng, len(packed)) & (2**64 - 1)
    return length.to_bytes(8, "little") + packed + body


def mutate_safetensors(rng: random.Random, data: bytes) -> bytes:
    return formats_bytes.choose(rng, data, (header, header, header))


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Whichever of the three the data are."""
    if data[:6] == b"\x93NUMPY":
        return mutate_npy(rng, data)
    return mutate_npz(rng, data) if data[:2] == b"PK" else mutate_safetensors(rng, data)
