"""Values that break things: numbers at edges, names that do something to terminals, paths and parsers."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable

INTS = (
    0, 1, -1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 65535, 2**20, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, 2**32,
    2**40, 2**53, 2**62, 2**63 - 1, -(2**63),
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), float("-inf"), 1e308, 3.4e38, 1e-45, 5e-324, 0.1)
NAMES = (
    '', 'x', '^x', 'x:0', 'x:1', 'x:-1', 'x:99999999999', ':0', '^', 'a/b', '/', '//', 'a//b', '_', '../../x', '..',
    '/etc/passwd', '\x1b[31mred\x1b[0m', '\x1b]0;title\x07', 'a\rb', 'a\nb', 'a\x00b', '\u202eabc', '\u2066x',
    '\x9b31m', 'con', '\x85', '$(touch pwned)', '`id`', '%s%n%d', '{0}', '{x!r:>1000}', '<script>alert(1)</script>',
    ']]>', '-->', '"', "'", '\\', 'a b', '\xe9', '\u540d', '\U0001f600', '\ufeffx', "x" * 300, "a/" * 200, '--help',
    '-o', '*', '[', '(a+)+$', '#', '&x', '!!python/object', '~', 'null', 'nan', '1e999', '0x', '.', '\u2028',
)  # fmt: skip
#: numbers of types: the usual, those with gaps, references, none
TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 29, 30, 31, 100, 101,
         103, 107, 120, 122, 999, -1)  # fmt: skip


def integer(rng: random.Random) -> int:
    """An integer of at most 64 bits."""
    return rng.choice(INTS) if rng.random() < 0.8 else rng.randrange(-(2**63), 2**63)


def number(rng: random.Random) -> float:
    return rng.choice(FLOATS) if rng.random() < 0.8 else rng.uniform(-10, 10)


def name(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return "".join(
            chr(rng.choice((rng.randrange(32), rng.randrange(128), rng.randrange(0xD800)))) for _ in range(8)
        )
    return rng.choice(NAMES)


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Damage that knows nothing of the format: bits, truncation, pieces removed, repeated, moved and put in."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(out) + 1)
        length = min(len(out) - at, rng.choice((1, 1, 2, 4, 8, 64, 1000)))
        match rng.randrange(8):
            case 0 if out:
                out[at % len(out)] ^= 1 << rng.randrange(8)
            case 1 if out:
                out[at % len(out)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 2:
                del out[at : None if rng.random() < 0.3 else at + length]
            case 3:
                out[at:at] = rng.randbytes(length or 4)
            case 4:
                out[at:at] = bytes(out[at : at + length]) * rng.choice((1, 2, 50))
            case 5:
                value = integer(rng) % 2**64
                size = rng.choice((1, 2, 4, 8))
                out[at : at + size] = (value % 256**size).to_bytes(size, rng.choice(("little", "big")))
            case 6:
                other = rng.randrange(len(out) + 1)
                out[at : at + length] = out[other : other + length]
            case _:
                out[at : at + length] = varint(integer(rng))
    return bytes(out)


def varint(value: int) -> bytes:
    """An integer as protobuf writes it."""
    value %= 2**64
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def mutate_text(rng: random.Random, data: bytes) -> bytes:
    """Damage to text: numbers, quoted words, lines, brackets; other damage at times."""
    if rng.random() < 0.2:
        return mutate_bytes(rng, data)
    text = data.decode("utf-8", "replace")
    for _ in range(rng.choice((1, 1, 2, 3))):
        match rng.randrange(7):
            case 0:
                text = _replace(rng, text, r"-?\d+(\.\d+)?", functools.partial(_number, rng))
            case 1:
                text = _replace(rng, text, r'"[^"\n]*"', functools.partial(_quoted, rng))
            case 2:
                text = _replace(rng, text, r"\w+", functools.partial(_word, rng, text))
            case 3:
                lines = text.split("\n")
                at = rng.randrange(len(lines))
                lines[at : at + 1] = rng.choice(([], [lines[at]] * 2, [lines[at]] * 200, [rng.choice(lines)]))
                text = "\n".join(lines)
            case 4:
                bracket = rng.choice(("{", "}", "[", "]", "<", ">", ":", ",", '"', "'", "\\", "&a ", "*a ", "|", "- "))
                at = rng.randrange(len(text) + 1)
                text = text[:at] + bracket * rng.choice((1, 1, 2, 100, 3000)) + text[at:]
            case 5:
                at, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
                text = rng.choice((text[:at], text[at:], text[:at] + text[end:], text + text[at:end]))
            case _:
                at = rng.randrange(len(text) + 1)
                text = text[:at] + name(rng) + text[at:]
    return text.encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "replace")


def _replace(rng: random.Random, text: str, pattern: str, by: Callable[[], str]) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + by() + text[one.end() :]


def _word(rng: random.Random, text: str) -> str:
    return rng.choice((name(rng), rng.choice(re.findall(r"\w+", text) or ["x"])))


def _number(rng: random.Random) -> str:
    return str(rng.choice((integer(rng), number(rng))))


def _quoted(rng: random.Random) -> str:
    return f'"{name(rng)}"'
