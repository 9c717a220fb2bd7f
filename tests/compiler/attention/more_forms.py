"""Attention in the ways that custom code has it: masks, letters of einsum, fewer heads of keys, spelled-out softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.compiler.attention.forms import Form, Written, numbers


def where_padding(to: Written) -> Any:
    """What a key that is not there has instead of its score."""
    tf = to.tf
    there = tf.cast(to.fed(to.padding()), tf.bool)[:, None, None, :]
    return to.around(lambda scores: tf.where_v2(there, scores, tf.constant(np.float32(-1e9))))


def where_minimum(to: Written) -> Any:
    tf = to.tf
    there = tf.cast(to.fed(to.padding()), tf.bool)[:, None, None, :]
    lowest = tf.constant(np.finfo(np.float32).min)
    return to.around(lambda scores: tf.where_v2(tf.logical_not(there), lowest, scores))


def where_full(to: Written) -> Any:
    """As TensorFlow 1's `where` wants it: three tensors of one shape."""
    tf = to.tf
    shape = [to.batch, to.heads, to.rows, to.keys]
    there = tf.tile(tf.cast(to.fed(to.padding()), tf.bool)[:, None, None, :], [1, to.heads, to.rows, 1])
    return to.around(lambda scores: tf.where(there, scores, tf.fill(shape, np.float32(-1e9))))


def where_causal(to: Written) -> Any:
    tf = to.tf
    return to.around(lambda scores: tf.where_v2(to.seen() > 0, scores, np.float32(-1e9)))


def causal_and_padding(to: Written) -> Any:
    tf = to.tf
    there = tf.cast(to.fed(to.padding()), tf.float32)[:, None, None, :]
    return to.around(lambda scores: scores + (1.0 - to.seen() * there) * -1e9)


def causal_then_padding(to: Written) -> Any:
    tf = to.tf
    there = tf.cast(to.fed(to.padding()), tf.float32)[:, None, None, :]
    return to.around(lambda scores: (scores + (to.seen() - 1.0) * 1e9) + (there - 1.0) * 1e4)


def alibi(to: Written) -> Any:
    """A slope of each head by distance, and keys up to the query's own."""
    tf = to.tf
    slopes = np.float32(2) ** -np.arange(1, to.heads + 1, dtype=np.float32)
    far = tf.cast(tf.range(to.keys)[None] - tf.range(to.rows)[:, None], tf.float32)
    bias = slopes.reshape(-1, 1, 1) * far[None]
    return to.around(lambda scores: scores + bias + (1.0 - to.seen()) * -1e9)


def sliding(to: Written) -> Any:
    tf = to.tf
    band = tf.matrix_band_part(tf.ones([to.rows, to.keys]), 2, 0)
    return to.around(lambda scores: scores + (band - 1.0) * 1e9)


def temperature(to: Written) -> Any:
    return to.around(lambda scores: scores / np.float32(0.7), scale=1.0)


def twice_scaled(to: Written) -> Any:
    return to.around(lambda scores: (scores / np.float32(0.7)) * np.float32(0.5))


def fed_temperature(to: Written) -> Any:
    heat = to.fed(np.array(0.7, np.float32))
    return to.around(lambda scores: scores / heat)


def scaled_after_mask(to: Written) -> Any:
    bias = to.fed(numbers(to.rows, to.keys, seed=8))
    return to.around(lambda scores: (scores + bias) * np.float32(0.5), scale=1.0)


def capped(to: Written) -> Any:
    """Gemma 2 bounds scores; no kernel does."""
    return to.around(lambda scores: 3.0 * to.tf.tanh(scores / 3.0))


def dropout(to: Written) -> Any:
    tf = to.tf
    q, k, v = to.parts()
    shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * np.float32(to.size**-0.5))
    kept = to.fed((np.random.default_rng(4).random((to.batch, to.heads, to.rows, to.keys)) < 0.9).astype(np.float32))
    return to.joined(tf.matmul(shares * kept / 0.9, v))


def own_softmax(to: Written) -> Any:
    tf = to.tf
    q, k, v = to.parts()
    scores = tf.matmul(q, k, transpose_b=True) * np.float32(to.size**-0.5)
    e = tf.exp(scores - tf.stop_gradient(tf.reduce_max(scores, axis=-1, keepdims=True)))
    return to.joined(tf.matmul(e / tf.reduce_sum(e, axis=-1, keepdims=True), v))


def _grouped(to: Written, spread: Callable[[Any], Any]) -> Any:
    """Half as many heads of keys and values."""
    tf = to.tf
    x, other = to.states()
    groups = to.heads // 2
    q = tf.reshape(to.projected(x, to.heads * to.size, 3), [to.batch, to.rows, to.heads, to.size])
    k = tf.reshape(to.projected(other, groups * to.size, 4), [to.batch, to.keys, groups, to.size])
    v = tf.reshape(to.projected(other, groups * to.value_size, 5), [to.batch, to.keys, groups, to.value_size])
    q, k, v = (tf.transpose(each, [0, 2, 1, 3]) for each in (q, k, v))
    scores = tf.matmul(q, spread(k), transpose_b=True) * np.float32(to.size**-0.5)
    return to.joined(tf.matmul(tf.nn.softmax(scores), spread(v)))


def grouped_repeat(to: Written) -> Any:
    return _grouped(to, lambda y: to.tf.repeat(y, 2, axis=1))


def grouped_broadcast(to: Written) -> Any:
    tf = to.tf

    def spread(y: Any) -> Any:
        shape = [int(each) for each in y.shape]
        y = tf.broadcast_to(y[:, :, None], [shape[0], shape[1], 2, *shape[2:]])
        return tf.reshape(y, [shape[0], 2 * shape[1], *shape[2:]])

    return _grouped(to, spread)


def grouped_tile(to: Written) -> Any:
    return _grouped(to, lambda y: to.tf.tile(y, [1, 2, 1, 1]))


def grouped_products(to: Written) -> Any:
    """Heads of a group as an axis that keys are broadcast along."""
    tf = to.tf
    x, other = to.states()
    groups = to.heads // 2
    q = tf.reshape(to.projected(x, to.heads * to.size, 3), [to.batch, to.rows, groups, 2, to.size])
    q = tf.transpose(q, [0, 2, 3, 1, 4])
    k = tf.reshape(to.projected(other, groups * to.size, 4), [to.batch, to.keys, groups, 1, to.size])
    v = tf.reshape(to.projected(other, groups * to.size, 5), [to.batch, to.keys, groups, 1, to.size])
    k, v = (tf.transpose(each, [0, 2, 3, 1, 4]) for each in (k, v))
    shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * np.float32(to.size**-0.5))
    return tf.matmul(shares, v)


def grouped_einsum(to: Written) -> Any:
    tf = to.tf
    groups = to.heads // 2
    q = to.given(to.batch, to.rows, groups, 2, to.size, seed=1)
    k, v = (to.given(to.batch, to.keys, groups, to.size, seed=at) for at in (2, 3))
    shares = tf.nn.softmax(tf.einsum("btgrd,bsgd->bgrts", q, k) * np.float32(to.size**-0.5))
    return tf.einsum("bgrts,bsgd->btgrd", shares, v)


def multi_query(to: Written) -> Any:
    tf = to.tf
    q = to.given(to.batch, to.rows, to.heads, to.size, seed=1)
    k, v = (to.given(to.batch, to.keys, to.size, seed=at) for at in (2, 3))
    shares = tf.nn.softmax(tf.einsum("bthd,bsd->bhts", q, k) * np.float32(to.size**-0.5))
    return tf.einsum("bhts,bsd->bthd", shares, v)


def chunks(to: Written) -> Any:
    """Blocks of tokens that see their own block and the one before: three axes before rows and keys."""
    tf = to.tf
    shape = (to.batch, to.heads, 3, to.rows, to.size)
    q, k, v = (to.given(*shape, seed=at) for at in (1, 2, 3))

    def wide(y: Any) -> Any:
        before = tf.pad(y[:, :, :-1], [[0, 0], [0, 0], [1, 0], [0, 0], [0, 0]])
        return tf.concat([before, y], axis=3)

    shares = tf.nn.softmax(tf.matmul(q, wide(k), transpose_b=True) * np.float32(to.size**-0.5))
    return tf.matmul(shares, wide(v))


def one_head(to: Written) -> Any:
    """Images and tokens alone, as in non-local blocks."""
    tf = to.tf
    q, k, v = (to.given(to.batch, to.rows, to.size, seed=at) for at in (1, 2, 3))
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)


def matrices(to: Written) -> Any:
    tf = to.tf
    q, k, v = (to.given(to.rows, to.size, seed=at) for at in (1, 2, 3))
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / np.float32(to.size**0.5)), v)


def _lettered(first: str, second: str) -> Form:
    def form(to: Written) -> Any:
        tf = to.tf
        sizes = {"b": to.batch, "h": to.heads, "t": to.rows, "s": to.keys, "d": to.size, "e": to.value_size}
        (one, other), _ = first.split("->")[0].split(","), None
        third = next(each for each in second.split("->")[0].split(",") if "e" in each)
        tensors = [
            to.given(*(sizes[letter] for letter in term), seed=at) for at, term in enumerate((one, other, third))
        ]
        shares = tf.nn.softmax(tf.einsum(first, *tensors[:2]) * np.float32(to.size**-0.5))
        pair = [shares, tensors[2]] if second.split(",")[0] != third else [tensors[2], shares]
        return tf.einsum(second, *pair)

    form.__name__ = f"einsum_{first}_{second}".replace(",", "_").replace("->", "_")
    return form


EINSUMS = [
    _lettered(*each)
    for each in (
        ("bhtd,bhsd->bhts", "bhts,bhse->bhte"), ("bthd,bshd->bhts", "bhts,bshe->bthe"),
        ("bshd,bthd->bhts", "bshe,bhts->bthe"), ("bthd,bhds->bhts", "bhts,bhse->bthe"),
        ("tbhd,sbhd->bhts", "bhts,sbhe->tbhe"), ("bhdt,bhds->bhts", "bhts,bhes->bhet"),
        ("hbtd,hbsd->hbts", "hbts,hbse->bthe"), ("btd,bsd->bts", "bts,bse->bte"),
        ("bthd,bshd->hbts", "hbts,bshe->bthe"), ("dbht,dbhs->bhts", "bhts,ebhs->bhte"),
    )
]  # fmt: skip

MORE: Sequence[Form] = (
    where_padding, where_minimum, where_full, where_causal, causal_and_padding, causal_then_padding, alibi, sliding,
    temperature, twice_scaled, fed_temperature, scaled_after_mask, capped, dropout, own_softmax, grouped_repeat,
    grouped_broadcast, grouped_tile, grouped_products, grouped_einsum, multi_query, chunks, one_head, matrices,
    *EINSUMS,
)  # fmt: skip
