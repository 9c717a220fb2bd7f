"""Models of text and of things with names: encoders, recommenders, parsers, generators."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.runtime.networks.gallery import example

RANDOM = np.random.default_rng(51)
SENTENCES = np.array(
    [b"The quick brown fox, jumps!", b"over the lazy dog", b"", "Größe zählt – nicht".encode()], object
)


def _normal(*shape: int, scale: float = 1.0) -> Any:
    return (scale * RANDOM.standard_normal(shape)).astype(np.float32)


@example(
    {"left": SENTENCES, "right": SENTENCES[::-1].copy()}, {"embedding": _normal(64, 8), "projection": _normal(8, 6)}
)
def sentence_encoder(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Words hashed into an embedding, averaged, normalised; cosine similarity of all pairs."""

    def encode(text: Any) -> Any:
        clean = tf.strings.regex_replace(tf.strings.lower(text, encoding="utf-8"), r"[[:punct:]]", "")
        words = tf.strings.split(clean)
        ids = tf.strings.to_hash_bucket_fast(words.flat_values, 64)
        summed = tf.math.unsorted_segment_sum(tf.gather(w.embedding, ids), words.value_rowids(), words.nrows())
        mean = summed / tf.cast(tf.maximum(words.row_lengths(), 1), tf.float32)[:, None]
        return tf.math.l2_normalize(tf.tanh(mean @ w.projection), axis=1)

    left, right = encode(x.left), encode(x.right)
    return {"embedding": left, "similarity": tf.matmul(left, right, transpose_b=True)}


@example({"text": SENTENCES[:3]}, {"embedding": _normal(128, 6), "query": _normal(6), "kernel": _normal(6, 3)})
def character_grams(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Character trigrams, attention over them, a softmax; empty text has none."""
    padded = tf.strings.join(["<", x.text, ">>"])
    letters = tf.strings.unicode_split(padded, "UTF-8")
    grams = tf.strings.ngrams(letters, 3, separator="")
    ids = tf.strings.to_hash_bucket_strong(grams.to_tensor(""), 128, [17, 29])
    present = tf.sequence_mask(grams.row_lengths())
    vectors = tf.nn.embedding_lookup(w.embedding, ids)
    attention = tf.where(present, tf.einsum("bte,e->bt", vectors, w.query), -1e9)
    pooled = tf.einsum("bt,bte->be", tf.nn.softmax(attention), vectors)
    return {
        "probabilities": tf.nn.softmax(pooled @ w.kernel),
        "grams": tf.strings.reduce_join(grams, axis=1, separator="|"),
    }


@example(
    {
        "user": np.array([b"ann", b"bob"], object),
        "history": np.array([[b"a", b"b", b""], [b"c", b"", b""]], object),
        "age": np.float32([23, 61]),
        "hour": np.int32([3, 22]),
    },
    {"users": _normal(20, 5), "items": _normal(30, 5), "ages": _normal(5, 5), "catalogue": _normal(40, 5)},
)
def two_towers(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """A recommender: hashed users and items, bucketed numbers, a crossed feature, the best of a catalogue."""
    user = tf.gather(w.users, tf.strings.to_hash_bucket_fast(x.user, 20))
    ids = tf.strings.to_hash_bucket_fast(x.history, 30)
    known = tf.cast(tf.not_equal(x.history, ""), tf.float32)[..., None]
    history = tf.reduce_sum(tf.gather(w.items, ids) * known, 1) / tf.maximum(tf.reduce_sum(known, 1), 1.0)
    age = tf.gather(w.ages, tf.raw_ops.Bucketize(input=x.age, boundaries=[18.0, 30.0, 45.0, 65.0]))
    crossed = tf.strings.join([x.user, tf.strings.as_string(x.hour // 6)], separator="_X_")
    bias = tf.cast(tf.strings.to_hash_bucket_fast(crossed, 100), tf.float32)[:, None] / 100.0
    tower = tf.nn.relu(user + history + age + bias)
    scores, best = tf.math.top_k(tf.matmul(tower, w.catalogue, transpose_b=True), k=7)
    names = tf.strings.join(["item-", tf.strings.as_string(best, width=3, fill="0")])
    return {"scores": scores, "names": names, "crossed": crossed}


@example(
    {"rows": np.array([b"3,0.5,red,2024-01-31", b"7,,blue,1999-12-01", b'1,2e3,"a,b",2000-02-29'], object)},
    {"kernel": _normal(7, 2)},
)
def table_of_text(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Lines of CSV with defaults, quotes and dates into features."""
    count, value, colour, date = tf.io.decode_csv(x.rows, [[0], [1.5], [""], [""]])
    year, month, day = [
        tf.strings.to_number(tf.strings.substr(date, a, b), tf.float32) for a, b in ((0, 4), (5, 2), (8, 2))
    ]
    is_red = tf.cast(tf.strings.regex_full_match(colour, "r.d"), tf.float32)
    length = tf.cast(tf.strings.length(colour), tf.float32)
    features = tf.stack(
        [tf.cast(count, tf.float32), tf.math.log1p(value), is_red, length, year - 2000.0, month, day], 1
    )
    report = tf.strings.format("{} has {}", (count, colour))
    return {"y": features @ w.kernel, "report": report, "shown": tf.strings.as_string(value, precision=2)}


@example(
    {"prompt": np.int32([[1, 5, 9], [2, 2, 7]]), "seed": np.int32([3, 4])},
    {"embedding": _normal(20, 8), "query": _normal(8, 8), "key": _normal(8, 8), "value": _normal(8, 8)},
)
def sampler(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """A decoder that keeps its keys and values and draws each next token from the five likeliest."""
    batch = tf.shape(x.prompt)[0]
    # gathered from inside the loops, a variable would be frozen into a graph that TensorFlow itself refuses
    embedding = tf.convert_to_tensor(w.embedding)

    def attend(tokens: Any, keys: Any, values: Any) -> tuple[Any, Any, Any]:
        hidden = tf.gather(embedding, tokens)
        keys = tf.concat([keys, (hidden @ w.key)[:, None]], 1)
        values = tf.concat([values, (hidden @ w.value)[:, None]], 1)
        weights = tf.nn.softmax(tf.einsum("bd,btd->bt", hidden @ w.query, keys) / np.sqrt(8.0).astype(np.float32))
        return tf.tanh(hidden + tf.einsum("bt,btd->bd", weights, values)), keys, values

    def read(time: Any, hidden: Any, keys: Any, values: Any) -> Any:
        return time + 1, *attend(x.prompt[:, time], keys, values)

    def write(time: Any, hidden: Any, keys: Any, values: Any, tokens: Any) -> Any:
        logits = tf.matmul(hidden, embedding, transpose_b=True)
        least = tf.math.top_k(logits, 5).values[:, -1:]
        logits = tf.where(logits < least, -1e9, logits)
        drawn = tf.random.stateless_categorical(logits, 1, x.seed + time, dtype=tf.int32)[:, 0]
        hidden, keys, values = attend(drawn, keys, values)
        return time + 1, hidden, keys, values, tf.concat([tokens, drawn[:, None]], 1)

    none, open_shape = tf.zeros([batch, 0, 8]), tf.TensorShape([None, None, 8])
    flat = tf.TensorShape([None, 8])
    state = tf.while_loop(
        lambda time, *_: time < tf.shape(x.prompt)[1],
        read,
        [0, tf.zeros([batch, 8]), none, none],
        shape_invariants=[tf.TensorShape([]), flat, open_shape, open_shape],
    )
    result = tf.while_loop(
        lambda time, *_: time < 6,
        write,
        [0, *state[1:], x.prompt],
        shape_invariants=[tf.TensorShape([]), flat, open_shape, open_shape, tf.TensorShape([None, None])],
    )
    return {"tokens": result[-1], "hidden": result[1]}


@example({"text": np.array([b"unaffable running", b"the runner ran", b""], object)})
def greedy_pieces(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Subword pieces cut off word by word with regular expressions in a loop."""
    words = tf.strings.split(x.text).flat_values
    prefix = r"^(un|run|aff|able|ing|er|ran|the|n|.)"

    def cut(rest: Any, pieces: Any, count: Any) -> Any:
        after = tf.strings.regex_replace(rest, prefix, "", replace_global=False)
        size = tf.strings.length(rest) - tf.strings.length(after)
        piece = tf.strings.substr(rest, tf.zeros_like(size), size)
        pieces = tf.where(tf.equal(piece, ""), pieces, tf.strings.join([pieces, piece], separator=" ##"))
        return [after, pieces, count + tf.cast(tf.not_equal(piece, ""), tf.int32)]

    start = [words, tf.fill(tf.shape(words), ""), tf.zeros_like(words, tf.int32)]
    shapes = [tf.TensorShape([None])] * 3
    _, pieces, count = tf.while_loop(
        lambda rest, *_: tf.reduce_any(tf.not_equal(rest, "")),
        cut,
        start,
        shape_invariants=shapes,
        maximum_iterations=40,
    )
    distance = tf.edit_distance(_sparse(tf, words), _sparse(tf, tf.reverse(words, [0])), normalize=False)
    return {"pieces": pieces, "count": count, "distance": distance}


def _sparse(tf: Any, words: Any) -> Any:
    return tf.strings.bytes_split(words).to_sparse()


@example(
    {"tokens": np.int32([[4, 8, 2, 0, 0], [3, 9, 9, 1, 6]]), "tags": np.int32([[1, 0, 2, 0, 0], [2, 2, 1, 0, 1]])},
    {"emission": _normal(12, 3), "transition": _normal(3, 3), "start": _normal(3)},
)
def tagger(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """A conditional random field: the best path by Viterbi, the likelihood by the forward algorithm."""
    scores = tf.gather(w.emission, x.tokens)
    mask = tf.not_equal(x.tokens, 0)
    by_time, kept = tf.transpose(scores, [1, 0, 2]), tf.transpose(mask)

    def viterbi(state: Any, step: Any) -> Any:
        best, _ = state
        score, present = step
        options = best[:, :, None] + w.transition[None]
        after = tf.reduce_max(options, 1) + score
        back = tf.argmax(options, 1, tf.int32)
        identity = tf.broadcast_to(tf.range(3)[None], tf.shape(back))
        return tf.where(present[:, None], after, best), tf.where(present[:, None], back, identity)

    first = (by_time[0] + w.start, tf.zeros_like(by_time[0], tf.int32))
    best, back = tf.scan(viterbi, (by_time[1:], kept[1:]), first)
    last = tf.argmax(best[-1], -1, tf.int32)
    path = tf.scan(lambda tag, links: tf.gather(links, tag, batch_dims=1), back, last, reverse=True)
    forward = tf.foldl(
        lambda a, step: tf.where(
            step[1][:, None], tf.reduce_logsumexp(a[:, :, None] + w.transition[None], 1) + step[0], a
        ),
        (by_time[1:], kept[1:]),
        by_time[0] + w.start,
    )
    right = tf.reduce_sum(tf.one_hot(x.tags, 3) * scores * tf.cast(mask, tf.float32)[..., None], [1, 2])
    return {
        "path": tf.transpose(tf.concat([path, last[None]], 0)),
        "partition": tf.reduce_logsumexp(forward, 1) - right,
    }
