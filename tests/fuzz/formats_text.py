"""Mutation of YAML, JSON, CSV and protobuf text: words swapped, deep nesting, long numbers, aliases of aliases."""

from __future__ import annotations

import random
import re

from tests.fuzz import formats_bytes

_TOKEN = re.compile(rb"[A-Za-z_][\w./:-]*|-?\d[\d.]*|\"[^\"\n]*\"|[\[\]{}:,\n<>-]|[ ]+")
_WORDS = (
    b"9" * 5000, b"-1", b"1e999", b"nan", b"inf", b"-0", b"0x7fffffffffffffff", b"18446744073709551616", b"true",
    b"null", b"~", b"''", b'"\\ud800"', b'"\\u0000"', b"\"\\377\"", b"2020-99-99", b"0b", b"0o9", b"1:99:99", b".",
    b"!!int x", b"!!timestamp x", b"!!binary x", b"!!bool x", b"!!float x", b"!!set {a, b}",
    b"!!python/name:os.system",
    b"&a", b"*a", b"<<", b"? ", b"|", b">-", b"%YAML 9.9", b"---", b"...", b"\t", b"\xef\xbb\xbf", b"\xff", b"\0",
    b"\x85",
    b"1000000000", b"[]", b"{}", b"[1, [2], {a: 3}]", b"{a: {b: c}}", b"\xe2\x80\xae", b"1_000", b"=", b"key: value: x",
)  # fmt: skip
_NESTS = (b"[", b"{", b"{a: ", b'{"a": ', b"- ", b"node {", b"a:\n ", b"<", b"attr { key: 'a' value { list {", b"((")


def words(rng: random.Random, data: bytes) -> bytes:
    """Put a word, or another part of the text, in the place of one."""
    found = list(_TOKEN.finditer(data))
    for _ in range(rng.choice((1, 1, 2))):
        one, other = rng.choice(found), rng.choice(found)
        new = rng.choice(_WORDS) if rng.random() < 0.6 else other[0]
        data = data[: one.start()] + new + data[one.end() :]
        found = list(_TOKEN.finditer(data))
    return data


def lines(rng: random.Random, data: bytes) -> bytes:
    rows = data.split(b"\n")
    at, other = rng.randrange(len(rows)), rng.randrange(len(rows))
    match rng.randrange(5):
        case 0:
            del rows[at]
        case 1:
            rows.insert(at, rows[other])
        case 2:
            rows[at], rows[other] = rows[other], rows[at]
        case 3:
            rows[at] = rng.choice((b"  ", b"    ", b"- ")) + rows[at]
        case _:
            rows[at] = rows[at].strip()
    return b"\n".join(rows)


def nest(rng: random.Random, data: bytes) -> bytes:
    at = rng.choice([0, len(data), rng.randrange(len(data) + 1)])
    return data[:at] + rng.choice(_NESTS) * rng.choice((50, 1000, 100000)) + data[at:]


def aliases(rng: random.Random, data: bytes) -> bytes:
    """Each line of a list stands for ten of the line before."""
    count = rng.choice((3, 10, 30))
    rows = ["x0: &x0 [a, b]"]
    merge = rng.random() < 0.3
    for level in range(1, count):
        many = ", ".join([f"*x{level - 1}"] * 10)
        rows.append(f"x{level}: &x{level} {{<<: [{many}], k{level}: 1}}" if merge else f"x{level}: &x{level} [{many}]")
    if merge:
        rows[0] = "x0: &x0 {a: 1}"
    text = "\n".join(rows).encode() + b"\n"
    return rng.choice((text + data, data + b"\n" + text, b"&a [*a]", b"a: &a\n  b: *a\n" + data))


def mutate(rng: random.Random, data: bytes) -> bytes:
    """YAML, and text of any kind."""
    return formats_bytes.choose(rng, data, (words, words, words, lines, nest, aliases), 0.2)


def mutate_plain(rng: random.Random, data: bytes) -> bytes:
    """Text without aliases: JSON, CSV, protobuf text."""
    return formats_bytes.choose(rng, data, (words, words, words, lines, nest), 0.2)
