"""The encodings below checkpoints: ordered codes, tables, Snappy, strings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import DataLossError, FormatError, InvalidArgumentError
from toolkit.formats.bundle import ordered_code, slices, snappy, strings, table, wire
from toolkit.formats.bundle.slices import TensorSlice
from toolkit.formats.records import crc

bounded = settings(max_examples=60, deadline=None, print_blob=True)
int64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("number", "code"),
    [(0, "80"), (-1, "7f"), (4, "84"), (63, "bf"), (64, "c040"), (150, "c096"), (8191, "dfff"), (10000, "e02710")],
)
def test_known_numbers(number: int, code: str) -> None:
    assert ordered_code.encode_int(number).hex() == code


@bounded
@given(st.lists(int64, min_size=2))
def test_numbers_sort_as_their_codes(numbers: list[int]) -> None:
    codes = [ordered_code.encode_int(number) for number in sorted(numbers)]
    assert codes == sorted(codes)
    for number, code in zip(sorted(numbers), codes, strict=True):
        assert ordered_code.decode_int(code + b"more", 0) == (number, len(code))


@bounded
@given(st.lists(st.binary(), min_size=2), st.integers(0, 2**64 - 1))
def test_strings_sort_as_their_codes(texts: list[bytes], number: int) -> None:
    codes = [ordered_code.encode_string(text) for text in sorted(texts)]
    assert codes == sorted(codes)
    for text, code in zip(sorted(texts), codes, strict=True):
        assert ordered_code.decode_string(code + b"x", 0) == (text, len(code))
    code = ordered_code.encode_uint(number)
    assert ordered_code.decode_uint(code, 0) == (number, len(code))


def test_slice_keys() -> None:
    part = slices.parse_slice("4,3:0,4")
    key = slices.encode_key("part", part)
    assert key == b"\0part\0\1\1\2\x84\x83\x80\x84"
    assert slices.decode_key(key) == ("part", part)
    assert slices.encode_key("a\0b\xff", slices.full(1))[:8] == b"\0a\0\xffb\xc3\xbf\0"


@bounded
@given(st.binary(max_size=40))
def test_damaged_keys_raise(data: bytes) -> None:
    for decode in (slices.decode_key, wire.decode_entry, wire.decode_header):
        with contextlib.suppress(FormatError, InvalidArgumentError):
            decode(data)  # type: ignore[operator]


def build(entries: dict[bytes, bytes]) -> bytes:
    out = bytearray()
    writer = table.TableWriter(out.extend)
    for key in sorted(entries):
        writer.add(key, entries[key])
    assert writer.finish() == len(out)
    return bytes(out)


def open_table(data: bytes) -> table.TableReader:
    return table.TableReader(lambda offset, size: data[offset : offset + size], len(data), "file")


@bounded
@given(st.dictionaries(st.binary(max_size=30), st.binary(max_size=100), max_size=60), st.integers(60, 400))
def test_tables(entries: dict[bytes, bytes], block_size: int) -> None:
    whole = table.BLOCK_SIZE
    table.BLOCK_SIZE = block_size
    try:
        data = build(entries)
    finally:
        table.BLOCK_SIZE = whole
    reader = open_table(data)
    assert dict(reader.entries()) == entries
    assert [key for key, _ in reader.entries()] == sorted(entries)
    for key, value in entries.items():
        assert reader.get(key) == value
    assert reader.get(b"none" * 10) is None


def test_table_keys_must_grow() -> None:
    writer = table.TableWriter(lambda data: None)
    writer.add(b"b", b"")
    for key in (b"b", b"a"):
        with pytest.raises(ValueError, match="must grow"):
            writer.add(key, b"")


def recompressed(data: bytes, compress: Callable[[bytes], bytes]) -> bytes:
    """The table with its only data block compressed with Snappy."""
    reader = open_table(data)
    (_, (offset, size)), = reader.blocks  # fmt: skip
    block = compress(data[offset : offset + size])
    out = bytearray(block + b"\1")
    out += crc.masked(bytes(out)).to_bytes(4, "little")
    handles = []
    for handle in (reader.meta_index, None):
        body = data[handle[0] : handle[0] + handle[1]] if handle else index_block(len(block))
        handles.append((len(out), len(body)))
        out += body + b"\0"
        out += crc.masked(body + b"\0").to_bytes(4, "little")
    return bytes(out) + table.encode_footer(handles[0], handles[1])


def index_block(size: int) -> bytes:
    value = bytearray()
    wire.put_varint(value, 0)
    wire.put_varint(value, size)
    return bytes([0, 1, len(value)]) + b"\xff" + bytes(value) + bytes(4) + b"\1\0\0\0"


def literal(data: bytes) -> bytes:
    """Snappy without any copies."""
    out = bytearray()
    wire.put_varint(out, len(data))
    for at in range(0, len(data), 60):
        piece = data[at : at + 60]
        out.append(len(piece) - 1 << 2)
        out += piece
    return bytes(out)


def test_snappy_blocks() -> None:
    entries = {b"": b"header", b"tensor": b"x" * 100}
    assert dict(open_table(recompressed(build(entries), literal)).entries()) == entries
    with pytest.raises(DataLossError, match="the block at offset 0: a Snappy"):
        open_table(recompressed(build(entries), lambda data: literal(data)[:-1])).get(b"tensor")


@pytest.mark.parametrize(
    ("compressed", "plain"),
    [
        ("00", b""),
        ("0a00612201 00".replace(" ", ""), b"a" * 10),  # a copy that overlaps itself
        ("0c0c616263641e0400".replace(" ", ""), b"abcdabcdabcd"),
        ("080c616263640104", b"abcdabcd"),  # one-byte offset
        ("080c616263640f04000000", b"abcdabcd"),  # four-byte offset
        ("41f040" + "62" * 65, b"b" * 65),  # long literal
    ],
)
def test_snappy(compressed: str, plain: bytes) -> None:
    assert snappy.decompress(bytes.fromhex(compressed)) == plain


@bounded
@given(st.binary(max_size=60))
def test_damaged_snappy_raises(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        snappy.decompress(data)


@bounded
@given(st.lists(st.binary(max_size=300), max_size=20))
def test_stored_strings(elements: list[bytes]) -> None:
    for encode, decode in (
        (strings.encode_strings, strings.decode_strings),
        (strings.encode_variants, strings.decode_variants),
    ):
        pieces, sum_ = encode(elements)
        assert decode(b"".join(pieces), len(elements)) == (elements, sum_)


@bounded
@given(st.integers(0, 2**32 - 1))
def test_crc_masks(number: int) -> None:
    assert crc.unmask(crc.mask(number)) == number


def test_crc_values() -> None:
    # RFC 3720, appendix B.4: 32 bytes of zeros.
    assert crc.value(bytes(32)) == 0x8A9136AA
    assert crc.value(bytearray(32)) == crc.value(memoryview(bytes(32))) == crc.value(bytes(32))
    assert crc.masked(b"") == 0xA282EAD8


def test_slice_texts() -> None:
    assert slices.parse_spec("") is None
    assert slices.parse_spec("8 4 4,4:0,4") == ((8, 4), TensorSlice(((4, 4), (0, 4))))
    assert str(slices.parse_slice("-:0,4")) == "-:0,4"
    assert slices.full(2).shape((3, 4)) == (3, 4)
