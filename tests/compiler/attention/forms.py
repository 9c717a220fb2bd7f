"""Attention as published models write it, with TensorFlow 1's names, in TensorFlow's graph or in ours.

Code is our own; which ops follow each other, with which masks, is that of the models that are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


@dataclass
class Written:
    """What a form is written into.

    Attributes:
        tf: `tensorflow.compat.v1` or ours.
        batch, heads, rows, keys, size, value_size: as `AttentionSizes` has them.
        feeds: placeholders and what they are fed.
        by: what gradients are asked by.
    """

    tf: Any
    batch: int = 2
    heads: int = 2
    rows: int = 6
    keys: int = 6
    size: int = 16
    value_size: int = 16
    feeds: dict[Any, np.ndarray] = field(init=False, default_factory=dict[Any, np.ndarray])
    by: list[Any] = field(init=False, default_factory=list[Any])

    def given(self, *shape: int, seed: int) -> Any:
        """Floats that are fed, and differentiated by."""
        made = self.fed(numbers(*shape, seed=seed))
        self.by.append(made)
        return made

    def fed(self, values: np.ndarray) -> Any:
        made = self.tf.placeholder(values.dtype, values.shape)
        self.feeds[made] = values
        return made

    def weight(self, *shape: int, seed: int) -> Any:
        return self.tf.constant(numbers(*shape, seed=seed) / np.float32(shape[0] ** 0.5))

    def states(self) -> tuple[Any, Any]:
        """What queries and what keys are made of: one tensor where there are as many."""
        width = self.heads * self.size
        x = self.given(self.batch, self.rows, width, seed=1)
        return x, x if self.keys == self.rows else self.given(self.batch, self.keys, width, seed=2)

    def projected(self, x: Any, columns: int, seed: int) -> Any:
        """By a weight, over all tokens as one matrix."""
        tf, count, width = self.tf, x.shape[1], x.shape[2]
        flat = tf.reshape(x, [-1, int(width)])
        made = tf.matmul(flat, self.weight(int(width), columns, seed=seed)) + numbers(columns, seed=seed)
        return tf.reshape(made, [-1, int(count), columns])

    def parts(self, *, ahead: bool = True) -> tuple[Any, Any, Any]:
        """Queries, keys and values: heads before tokens, or behind them."""
        tf = self.tf
        x, other = self.states()

        def split(y: Any, size: int) -> Any:
            y = tf.reshape(y, [self.batch, int(y.shape[1]), self.heads, size])
            return tf.transpose(y, [0, 2, 1, 3]) if ahead else y

        return (
            split(self.projected(x, self.heads * self.size, 3), self.size),
            split(self.projected(other, self.heads * self.size, 4), self.size),
            split(self.projected(other, self.heads * self.value_size, 5), self.value_size),
        )

    def joined(self, y: Any) -> Any:
        return self.tf.reshape(
            self.tf.transpose(y, [0, 2, 1, 3]), [self.batch, self.rows, self.heads * self.value_size]
        )

    def around(self, change: Callable[[Any], Any], *, scale: float | None = None) -> Any:
        """Softmax of what a change makes of scaled scores, between the two products."""
        tf = self.tf
        q, k, v = self.parts()
        scores = tf.matmul(q, k, transpose_b=True) * np.float32(self.size**-0.5 if scale is None else scale)
        return self.joined(tf.matmul(tf.nn.softmax(change(scores)), v))

    def padding(self) -> np.ndarray:
        """1 where a key is there; each row has the first."""
        there = np.random.default_rng(7).random((self.batch, self.keys)) < 0.7
        there[:, 0] = True
        return there.astype(np.int32)

    def seen(self) -> Any:
        """1 where a key is not behind its query, out of ranges; the last row sees all."""
        tf = self.tf
        i, j = tf.range(self.rows)[:, None], tf.range(self.keys)
        return tf.cast(i >= j - self.keys + self.rows, tf.float32)


Form = Callable[[Written], Any]


def bert(to: Written) -> Any:
    tf = to.tf
    q, k, v = to.parts()
    scores = tf.multiply(tf.matmul(q, k, transpose_b=True), 1.0 / float(to.size) ** 0.5)
    ones = tf.ones([to.batch, to.rows, 1], tf.float32)
    mask = ones * tf.cast(tf.reshape(to.fed(to.padding()), [to.batch, 1, to.keys]), tf.float32)
    scores += (1.0 - tf.cast(tf.expand_dims(mask, axis=[1]), tf.float32)) * -10000.0
    y = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3])
    return tf.reshape(y, [to.batch * to.rows, to.heads * to.value_size])


def albert(to: Written) -> Any:
    tf = to.tf
    q, k, v = to.parts(ahead=False)
    scores = tf.einsum("BFNH,BTNH->BNFT", q, k) * np.float32(to.size**-0.5)
    mask = tf.cast(to.fed(to.padding()), tf.float32)[:, None, None, :]
    scores += (1.0 - mask) * -10000.0
    return tf.einsum("BNFT,BTNH->BFNH", tf.nn.softmax(scores, axis=-1), v)


def distilbert(to: Written) -> Any:
    tf = to.tf
    q, k, v = to.parts()
    scores = tf.matmul(q * np.float32(to.size**-0.5), k, transpose_b=True)
    mask = tf.cast(tf.reshape(to.fed(to.padding()), [to.batch, 1, 1, to.keys]), tf.float32)
    scores = scores - 1e30 * (1.0 - mask)
    return to.joined(tf.matmul(tf.nn.softmax(scores, axis=-1), v))


def _own_softmax(tf: Any, x: Any) -> Any:
    x = x - tf.reduce_max(x, axis=-1, keepdims=True)
    ex = tf.exp(x)
    return ex / tf.reduce_sum(ex, axis=-1, keepdims=True)


def gpt2(to: Written) -> Any:
    tf = to.tf
    width = to.heads * to.size
    x = to.given(to.batch, to.rows, width, seed=1)
    made = to.projected(x, 3 * width, 3)
    q, k, v = (
        tf.transpose(tf.reshape(each, [to.batch, to.rows, to.heads, to.size]), [0, 2, 1, 3])
        for each in tf.split(made, 3, axis=2)
    )
    w = tf.matmul(q, k, transpose_b=True)
    w = w * tf.rsqrt(tf.cast(to.size, tf.float32))
    b = tf.reshape(to.seen(), [1, 1, to.rows, to.keys])
    w = w * b - tf.cast(1e10, tf.float32) * (1 - b)
    return to.joined(tf.matmul(_own_softmax(tf, w), v))


def cached(to: Written) -> Any:
    """GPT-2 with what came before: one query, more keys."""
    tf = to.tf
    width, before = to.heads * to.size, to.keys - to.rows
    x = to.given(to.batch, to.rows, width, seed=1)
    q, k, v = (
        tf.transpose(tf.reshape(each, [to.batch, to.rows, to.heads, to.size]), [0, 2, 1, 3])
        for each in tf.split(to.projected(x, 3 * width, 3), 3, axis=2)
    )
    past = to.fed(numbers(to.batch, 2, to.heads, before, to.size, seed=9))
    past_k, past_v = tf.unstack(past, axis=1)
    k, v = tf.concat([past_k, k], axis=-2), tf.concat([past_v, v], axis=-2)
    w = tf.matmul(q, k, transpose_b=True) * tf.rsqrt(tf.cast(to.size, tf.float32))
    b = tf.reshape(to.seen(), [1, 1, to.rows, to.keys])
    w = w * b - tf.cast(1e10, tf.float32) * (1 - b)
    return to.joined(tf.matmul(_own_softmax(tf, w), v))


def _buckets(rows: int, keys: int) -> np.ndarray:
    far = np.arange(keys)[None] - np.arange(rows)[:, None]
    return np.clip(np.abs(far), 0, 3) + 4 * (far > 0)


def t5(to: Written, *, learned: bool = True) -> Any:
    """No scale; a bias by distance, which is learned; and a mask in a sum of its own."""
    tf = to.tf
    q, k, v = to.parts()
    scores = tf.matmul(q, k, transpose_b=True)
    table = to.given(8, to.heads, seed=8) if learned else to.fed(numbers(8, to.heads, seed=8))
    bias = tf.gather(table, _buckets(to.rows, to.keys).astype(np.int32))
    bias = tf.expand_dims(tf.transpose(bias, [2, 0, 1]), axis=0)
    mask = (1.0 - tf.cast(to.fed(to.padding()), tf.float32)[:, None, None, :]) * -1e9
    return to.joined(tf.matmul(tf.nn.softmax(scores + (bias + mask), axis=-1), v))


def t5_known(to: Written) -> Any:
    return t5(to, learned=False)


def two_sums(to: Written) -> Any:
    """A bias and a mask, each added to the scores."""
    tf = to.tf
    bias = to.fed(numbers(1, to.heads, to.rows, to.keys, seed=8))
    mask = (1.0 - tf.cast(to.fed(to.padding()), tf.float32)[:, None, None, :]) * -1e9
    return to.around(lambda scores: (scores + bias) + mask)


def vit(to: Written) -> Any:
    tf = to.tf
    width = to.heads * to.size
    x = to.given(to.batch, to.rows, width, seed=1)
    qkv = tf.reshape(to.projected(x, 3 * width, 3), [to.batch, to.rows, 3, to.heads, to.size])
    q, k, v = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4]), axis=0)
    scores = tf.matmul(q * np.float32(to.size**-0.5), tf.transpose(k, [0, 1, 3, 2]))
    return to.joined(tf.matmul(tf.nn.softmax(scores, axis=-1), v))


def vit_sliced(to: Written) -> Any:
    tf = to.tf
    width = to.heads * to.size
    x = to.given(to.batch, to.rows, width, seed=1)
    qkv = tf.reshape(to.projected(x, 3 * width, 3), [to.batch, to.rows, 3, to.heads, to.size])
    qkv = tf.transpose(qkv, [2, 0, 3, 1, 4])
    q, k, v = qkv[0], qkv[1], qkv[2]
    scores = tf.matmul(q, k, transpose_b=True) * np.float32(to.size**-0.5)
    return to.joined(tf.matmul(tf.nn.softmax(scores, axis=-1), v))


def swin(to: Written, *, shifted: bool = True) -> Any:
    """Windows as images; a bias of each head, and of shifted windows a mask of each, in a sum behind a reshape."""
    tf = to.tf
    windows = to.batch
    to.batch = 2 * windows
    q, k, v = to.parts()
    scores = tf.matmul(q * np.float32(to.size**-0.5), tf.transpose(k, [0, 1, 3, 2]))
    table = to.fed(numbers(8, to.heads, seed=8))
    bias = tf.gather(table, _buckets(to.rows, to.keys).reshape(-1).astype(np.int32))
    bias = tf.transpose(tf.reshape(bias, [to.rows, to.keys, -1]), [2, 0, 1])
    scores = scores + tf.expand_dims(bias, axis=0)
    if shifted:
        apart = np.random.default_rng(3).random((windows, to.rows, to.keys)) < 0.3
        apart &= ~np.eye(to.rows, to.keys, dtype=bool)
        mask = tf.constant(np.where(apart, -100.0, 0.0).astype(np.float32))
        mask = tf.expand_dims(tf.expand_dims(mask, axis=1), axis=0)
        scores = tf.reshape(scores, [2, windows, to.heads, to.rows, to.keys]) + mask
        scores = tf.reshape(scores, [-1, to.heads, to.rows, to.keys])
    return to.joined(tf.matmul(tf.nn.softmax(scores, axis=-1), v))


def swin_plain(to: Written) -> Any:
    return swin(to, shifted=False)


def transformer_xl(to: Written) -> Any:
    """Tokens first; scores by content and by distance, added, scaled, masked, and a softmax over the second axis."""
    tf = to.tf
    shape = (to.heads, to.size)
    q = to.given(to.rows, to.batch, *shape, seed=1)
    k, v = (to.given(to.keys, to.batch, *shape, seed=at) for at in (2, 3))
    r = to.fed(numbers(to.keys, *shape, seed=4))
    ac = tf.einsum("ibnd,jbnd->ijbn", q + numbers(*shape, seed=5), k)
    bd = tf.einsum("ibnd,jnd->ijbn", q + numbers(*shape, seed=6), r)
    size = [int(each) for each in bd.shape]
    bd = tf.pad(bd, [[0, 0], [1, 0], [0, 0], [0, 0]])
    bd = tf.reshape(bd, [size[1] + 1, size[0], size[2], size[3]])
    bd = tf.reshape(tf.slice(bd, [1, 0, 0, 0], [-1, -1, -1, -1]), size)
    scores = (ac + bd) * np.float32(to.size**-0.5)
    mask = (1 - to.seen())[:, :, None, None]
    scores = scores * (1 - mask) - 1e30 * mask
    return tf.einsum("ijbn,jbnd->ibnd", tf.nn.softmax(scores, axis=1), v)


def tensor2tensor(to: Written) -> Any:
    tf = to.tf
    q, k, v = to.parts()
    q = q * float(to.size) ** -0.5
    logits = tf.matmul(q, k, transpose_b=True)
    lower = tf.matrix_band_part(tf.ones([to.rows, to.keys]), -1, 0)
    bias = -1e9 * (1.0 - tf.reshape(lower, [1, 1, to.rows, to.keys]))
    return to.joined(tf.matmul(tf.nn.softmax(logits + bias), v))


def tensor2tensor_padding(to: Written) -> Any:
    tf = to.tf
    q, k, v = to.parts()
    logits = tf.matmul(q * float(to.size) ** -0.5, k, transpose_b=True)
    bias = tf.cast(tf.equal(to.fed(to.padding()), 0), tf.float32) * -1e9
    logits += tf.expand_dims(tf.expand_dims(bias, axis=1), axis=1)
    return to.joined(tf.matmul(tf.nn.softmax(logits), v))


def bart(to: Written) -> Any:
    """Heads and images one axis, but where the mask is added; Whisper is the same."""
    tf = to.tf
    q, k, v = to.parts()
    q = q * np.float32(to.size**-0.5)
    q, k, v = (
        tf.reshape(each, [to.batch * to.heads, -1, size])
        for each, size in ((q, to.size), (k, to.size), (v, to.value_size))
    )
    scores = tf.matmul(q, k, transpose_b=True)
    mask = (1.0 - tf.cast(to.fed(to.padding()), tf.float32)[:, None, None, :]) * -1e8
    scores = tf.reshape(scores, [to.batch, to.heads, to.rows, to.keys]) + mask
    scores = tf.reshape(scores, [to.batch * to.heads, to.rows, to.keys])
    y = tf.matmul(tf.nn.softmax(scores, axis=-1), v)
    return to.joined(tf.reshape(y, [to.batch, to.heads, to.rows, to.value_size]))


def bart_causal(to: Written) -> Any:
    tf = to.tf
    q, k, v = to.parts()
    q, k, v = (
        tf.reshape(each, [to.batch * to.heads, -1, size])
        for each, size in ((q, to.size), (k, to.size), (v, to.value_size))
    )
    scores = tf.matmul(q * np.float32(to.size**-0.5), k, transpose_b=True)
    mask = tf.tile(((1.0 - to.seen()) * -1e9)[None, None], [to.batch, 1, 1, 1])
    scores = tf.reshape(scores, [to.batch, to.heads, to.rows, to.keys]) + mask
    scores = tf.reshape(scores, [to.batch * to.heads, to.rows, to.keys])
    y = tf.matmul(tf.nn.softmax(scores, axis=-1), v)
    return to.joined(tf.reshape(y, [to.batch, to.heads, to.rows, to.value_size]))


MODELS: Sequence[Form] = (
    bert, albert, distilbert, gpt2, cached, t5, t5_known, two_sums, vit, vit_sliced, swin, swin_plain, transformer_xl,
    tensor2tensor, tensor2tensor_padding, bart, bart_causal,
)  # fmt: skip
