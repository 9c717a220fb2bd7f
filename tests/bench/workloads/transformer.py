"""A transformer encoder as BERT's base model has it: 12 layers of width 768, 12 heads, 128 tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Target, Workload
from tests.models import builder
from tests.network_models import _freeze

LAYERS, WIDTH, HEADS, INNER, TOKENS, WORDS = 12, 768, 12, 3072, 128, 2000


@builder(_freeze)
def encoder(folder: Path) -> dict[str, Any]:
    """Frozen, written in the ops of BERT's own code: input "tokens" int32[batch, 128], output "hidden"."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(21)

    def weight(*shape: int, scale: float | None = None) -> Any:
        scale = shape[0] ** -0.5 if scale is None else scale
        return tf.constant(random.standard_normal(shape, np.float32) * np.float32(scale))

    def dense(x: Any, width: int) -> Any:
        return tf.nn.bias_add(x @ weight(x.shape[-1], width), weight(width, scale=0.1))

    def norm(x: Any) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        gamma, beta = 1 + weight(WIDTH, scale=0.1), weight(WIDTH, scale=0.1)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)

    def gelu(x: Any) -> Any:
        return x * (0.5 * (1.0 + tf.math.erf(x * 2**-0.5)))

    def attention(x: Any, batch: Any) -> Any:
        def heads() -> Any:
            split = tf.reshape(dense(x, WIDTH), [batch, TOKENS, HEADS, WIDTH // HEADS])
            return tf.transpose(split, [0, 2, 1, 3])

        query, key, value = heads(), heads(), heads()
        scores = tf.matmul(query, key, transpose_b=True) * (WIDTH // HEADS) ** -0.5
        joined = tf.transpose(tf.nn.softmax(scores) @ value, [0, 2, 1, 3])
        return dense(tf.reshape(joined, [-1, WIDTH]), WIDTH)

    def encode(tokens: Any) -> dict[str, Any]:
        batch = tf.shape(tokens)[0]
        x = tf.gather(weight(WORDS, WIDTH, scale=1.0), tokens) + weight(TOKENS, WIDTH, scale=0.3)
        x = norm(tf.reshape(x, [-1, WIDTH]))
        for _ in range(LAYERS):
            x = norm(x + attention(x, batch))
            x = norm(x + dense(gelu(dense(x, INNER)), WIDTH))
        return {"hidden": tf.reshape(x, [batch, TOKENS, WIDTH])}

    spec = tf.TensorSpec([None, TOKENS], tf.int32, name="tokens")
    tokens = random.integers(0, WORDS, (2, TOKENS)).astype(np.int32)
    return _freeze(folder, encode, [spec], {"tokens": tokens}, False)


def _feeds(random: Any) -> dict[str, Any]:
    return {"tokens": random.integers(0, WORDS, (1, TOKENS)).astype("int32")}


def workloads() -> list[Workload]:
    """The encoder for one sentence, in float32 and bfloat16."""
    both = ("onnxruntime", "openvino")
    shapes = {"tokens": (1, TOKENS)}
    name = f"transformer encoder {LAYERS} x {WIDTH}, {TOKENS} tokens"
    weights = 4 * WIDTH * WIDTH + 2 * WIDTH * INNER
    operations = LAYERS * (2.0 * TOKENS * weights + 4.0 * TOKENS * TOKENS * WIDTH)  # scores and mixing besides
    work = (operations, 4.0 * (LAYERS * weights + 2 * TOKENS * WIDTH))
    f32 = (Target(both, 1.05), Target(("tensorflow",), 0.70))
    return [
        Workload(name, "transformer", encoder, _feeds, f32, onnx_shapes=shapes, work=work),
        Workload(
            f"{name} bf16", "transformer", encoder, _feeds, (Target(("openvino",), 1.05),), "bf16", onnx_shapes=shapes,
            # a vector's size averages roundings: of both factors and the result of 8 products a layer, in two engines,
            # these come to sqrt(2 * 3 * 8 * 12) / 256 = 0.09; half as much again for what functions between them add
            rtol=0.15,
            work=work,
        ),
    ]  # fmt: skip
