"""How a checkpoint stores tensors of strings and variants.

Strings: the lengths as varints, a masked CRC of the lengths, then the bytes of all. Variants: for each, its length
as a varint, its serialized VariantTensorDataProto and a masked CRC. The formats are those of WriteStringTensor and
WriteVariantTensor in tensorflow/core/util/tensor_bundle/tensor_bundle.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.errors import FormatError
from toolkit.formats.bundle.wire import get_varint, put_varint
from toolkit.formats.records import crc

_UINT32_MAX = 0xFFFFFFFF
_CRC_SIZE = 4


def _length_word(length: int) -> bytes:
    """A length as the CRC covers it: 32 bits, or 64 where it does not fit."""
    return length.to_bytes(4 if length <= _UINT32_MAX else 8, "little")


def encode_strings(elements: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The stored form of the elements.

    Returns:
        The pieces of it, and their masked CRC.
    """
    lengths = bytearray()
    for element in elements:
        put_varint(lengths, len(element))
    covered = b"".join([_length_word(len(element)) for element in elements])
    sum_ = crc.value(covered)
    word = crc.mask(sum_).to_bytes(_CRC_SIZE, "little")
    body = b"".join(elements)
    return [bytes(lengths) + word, body], crc.mask(crc.extend(crc.extend(sum_, word), body))


def decode_strings(data: bytes, count: int) -> tuple[list[bytes], int]:
    """The elements of a stored string tensor.

    Returns:
        The elements and the masked CRC that their entry should have.

    Raises:
        FormatError: the lengths do not fit the bytes, or their CRC is wrong.
    """
    lengths: list[int] = []
    at = 0
    for _ in range(count):
        length, at = get_varint(data, at)
        lengths.append(length)
    sum_ = crc.value(b"".join([_length_word(length) for length in lengths]))
    word = data[at : at + _CRC_SIZE]
    at += _CRC_SIZE
    if word != crc.mask(sum_).to_bytes(_CRC_SIZE, "little"):
        raise FormatError("the CRC of the string lengths is wrong")
    if at + sum(lengths) != len(data):
        raise FormatError(f"the string lengths add up to {at + sum(lengths)} bytes, the entry has {len(data)}")
    total = crc.mask(crc.extend(crc.extend(sum_, word), data[at:]))
    elements: list[bytes] = []
    for length in lengths:
        elements.append(data[at : at + length])
        at += length
    return elements, total


def encode_variants(elements: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The stored form of serialized VariantTensorDataProtos; see `encode_strings`."""
    pieces: list[bytes] = []
    sum_ = 0
    for element in elements:
        length = bytearray()
        put_varint(length, len(element))
        sum_ = crc.extend(crc.extend(sum_, len(element).to_bytes(8, "little")), element)
        word = crc.mask(sum_).to_bytes(_CRC_SIZE, "little")
        sum_ = crc.extend(sum_, word)
        pieces += (bytes(length), element, word)
    return pieces, crc.mask(sum_)


def decode_variants(data: bytes, count: int) -> tuple[list[bytes], int]:
    """The serialized VariantTensorDataProtos of a stored variant tensor; see `decode_strings`."""
    elements: list[bytes] = []
    sum_ = at = 0
    for _ in range(count):
        length, at = get_varint(data, at)
        element = data[at : at + length]
        at += length
        sum_ = crc.extend(crc.extend(sum_, (length & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")), element)
        word = data[at : at + _CRC_SIZE]
        at += _CRC_SIZE
        if len(element) != length or word != crc.mask(sum_).to_bytes(_CRC_SIZE, "little"):
            raise FormatError("the CRC of a variant is wrong")
        sum_ = crc.extend(sum_, word)
        elements.append(element)
    if at != len(data):
        raise FormatError(f"the variants take {at} bytes, the entry has {len(data)}")
    return elements, crc.mask(sum_)
