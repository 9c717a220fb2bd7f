"""Hash functions of strings, over many strings of one length at a time.

farmhash Fingerprint64 (Pike and Alakuijala), MurmurHash64A as TensorFlow's Hash64 seeds it, and SipHash-2-4
(Aumasson and Bernstein 2012). Values are uint64; arithmetic wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.kernels.types import Array

U = np.uint64
K0, K1, K2 = U(0xC3A5C85C97CB3127), U(0xB492B66FBE98F273), U(0x9AE16A3B2F90404F)
_MASK = (1 << 64) - 1


def hash_all(strings: Sequence[bytes], function: Callable[[Array], Array]) -> Array:
    """uint64 [n]: `function` of uint8 [m, length], called once for each length that occurs."""
    out = np.zeros(len(strings), np.uint64)
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    with np.errstate(over="ignore"):
        for length in np.unique(lengths).tolist():
            at = np.flatnonzero(lengths == length)
            joined = b"".join(strings[i] for i in at.tolist())
            out[at] = function(np.frombuffer(joined, np.uint8).reshape(len(at), length))
    return out


def _fetch64(data: Array, at: int) -> Array:
    return np.ascontiguousarray(data[:, at : at + 8]).view("<u8")[:, 0]


def _fetch32(data: Array, at: int) -> Array:
    return np.ascontiguousarray(data[:, at : at + 4]).view("<u4")[:, 0].astype(np.uint64)


def _rotate(x: Array, by: int) -> Array:
    """To the right."""
    return x >> U(by) | x << U(64 - by)


def _mix(x: Array) -> Array:
    return x ^ x >> U(47)


def _len16(u: Array, v: Array, mul: Any) -> Array:
    a = _mix((u ^ v) * mul)
    return _mix((v ^ a) * mul) * mul


def _weak32(data: Array, at: int, a: Array, b: Array) -> tuple[Array, Array]:
    w, x, y, z = (_fetch64(data, at + 8 * i) for i in range(4))
    a = a + w
    b = _rotate(b + a + z, 21)
    c = a
    a = a + x + y
    return a + z, b + _rotate(a, 44) + c


def fingerprint64(data: Array) -> Array:
    """farmhash's Fingerprint64 of each row of uint8 [m, length]."""
    count, length = data.shape
    mul = K2 + U(length) * U(2)
    if length == 0:
        return np.full(count, K2)
    if length < 4:
        y = data[:, 0].astype(np.uint64) + (data[:, length >> 1].astype(np.uint64) << U(8))
        z = U(length) + (data[:, length - 1].astype(np.uint64) << U(2))
        return _mix(y * K2 ^ z * K0) * K2
    if length < 8:
        return _len16(U(length) + (_fetch32(data, 0) << U(3)), _fetch32(data, length - 4), mul)
    if length <= 16:
        a, b = _fetch64(data, 0) + K2, _fetch64(data, length - 8)
        return _len16(_rotate(b, 37) * mul + a, (_rotate(a, 25) + b) * mul, mul)
    if length <= 64:
        first = K1 if length <= 32 else K2
        a, b = _fetch64(data, 0) * first, _fetch64(data, 8)
        c, d = _fetch64(data, length - 8) * mul, _fetch64(data, length - 16) * K2
        y = _rotate(a + b, 43) + _rotate(c, 30) + d
        z = _len16(y, a + _rotate(b + K2, 18) + c, mul)
        if length <= 32:
            return z
        e, f = _fetch64(data, 16) * mul, _fetch64(data, 24)
        g, h = (y + _fetch64(data, length - 32)) * mul, (z + _fetch64(data, length - 24)) * mul
        return _len16(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, mul)
    return _fingerprint_long(data)


def _fingerprint_long(data: Array) -> Array:
    count, length = data.shape
    seed = U(81)
    x = np.full(count, seed * K2) + _fetch64(data, 0)
    y = np.full(count, seed * K1 + U(113))
    z = _mix(y * K2 + U(113)) * K2
    v0, v1, w0, w1 = (np.zeros(count, np.uint64) for _ in range(4))

    def rounds(at: int, x: Array, y: Array, z: Array, mul: Any, nine: Any) -> Any:
        x = _rotate(x + y + v0 + _fetch64(data, at + 8), 37) * mul
        y = _rotate(y + v1 + _fetch64(data, at + 48), 42) * mul
        x = x ^ w1 * nine
        y = y + v0 * nine + _fetch64(data, at + 40)
        z = _rotate(z + w0, 33) * mul
        v = _weak32(data, at, v1 * mul, x + w0)
        w = _weak32(data, at + 32, z + w1, y + _fetch64(data, at + 16))
        return z, y, x, v, w  # x and z change places

    whole = (length - 1) // 64 * 64
    for at in range(0, whole, 64):
        x, y, z, (v0, v1), (w0, w1) = rounds(at, x, y, z, K1, U(1))
    mul = K1 + ((z & U(0xFF)) << U(1))
    w0 = w0 + U((length - 1) & 63)
    v0 = v0 + w0
    w0 = w0 + v0
    x, y, z, (v0, v1), (w0, w1) = rounds(length - 64, x, y, z, mul, U(9))
    return _len16(_len16(v0, w0, mul) + _mix(y) * K0 + z, _len16(v1, w1, mul) + x, mul)


_MURMUR, _MURMUR_SEED = U(0xC6A4A7935BD1E995), U(0xDECAFCAFFE)


def hash64(data: Array) -> Array:
    """TensorFlow's Hash64 (MurmurHash64A with a fixed seed)."""
    count, length = data.shape
    h = np.full(count, _MURMUR_SEED ^ U(length) * _MURMUR)
    for at in range(0, length // 8 * 8, 8):
        k = _mix(_fetch64(data, at) * _MURMUR) * _MURMUR
        h = (h ^ k) * _MURMUR
    rest = length % 8
    if rest:
        tail = np.zeros((count, 8), np.uint8)
        tail[:, :rest] = data[:, length - rest :]
        h = (h ^ _fetch64(tail, 0)) * _MURMUR
    h = _mix(h) * _MURMUR
    return _mix(h)


def concatenated64(first: Array, second: Array) -> Array:
    """One fingerprint of two (TensorFlow's FingerprintCat64)."""
    result = (first ^ _MURMUR ^ _mix(second * _MURMUR) * _MURMUR) * _MURMUR
    return _mix(_mix(result) * _MURMUR)


def siphash24(key: tuple[int, int]) -> Callable[[Array], Array]:
    """SipHash-2-4 with a 128-bit key."""
    k0, k1 = U(key[0] & _MASK), U(key[1] & _MASK)
    start = (
        k0 ^ U(0x736F6D6570736575), k1 ^ U(0x646F72616E646F6D), k0 ^ U(0x6C7967656E657261), k1 ^ U(0x7465646279746573),
    )  # fmt: skip

    def compress(v: list[Array]) -> None:
        for _ in range(2):
            _sip_round(v)

    def function(data: Array) -> Array:
        count, length = data.shape
        v = [np.full(count, s) for s in start]
        padded = np.zeros((count, length // 8 * 8 + 8), np.uint8)
        padded[:, :length] = data
        padded[:, -1] = length & 0xFF
        for at in range(0, padded.shape[1], 8):
            word = _fetch64(padded, at)
            v[3] = v[3] ^ word
            compress(v)
            v[0] = v[0] ^ word
        v[2] = v[2] ^ U(0xFF)
        compress(v)
        compress(v)
        return v[0] ^ v[1] ^ v[2] ^ v[3]

    return function


def _left(x: Array, by: int) -> Array:
    return x << U(by) | x >> U(64 - by)


def _sip_round(v: list[Array]) -> None:
    v[0] = v[0] + v[1]
    v[1] = _left(v[1], 13) ^ v[0]
    v[0] = _left(v[0], 32)
    v[2] = v[2] + v[3]
    v[3] = _left(v[3], 16) ^ v[2]
    v[0] = v[0] + v[3]
    v[3] = _left(v[3], 21) ^ v[0]
    v[2] = v[2] + v[1]
    v[1] = _left(v[1], 17) ^ v[2]
    v[2] = _left(v[2], 32)
