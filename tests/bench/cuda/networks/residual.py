"""ResNet-50 (He et al., arXiv 1512.03385), version 1.5: the stride is in the 3x3 convolutions, as PyTorch has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.cuda.networks.base import Made, Tensors, Work, cross_entropy, normal

_EPSILON, _KEPT = 1e-5, 0.9


@dataclass(frozen=True)
class _Layer:
    """A convolution and its normalization."""

    name: str
    side: int
    inputs: int
    outputs: int
    stride: int
    out: int  # height and width of what it gives


@dataclass(frozen=True)
class Residual:
    """Bottleneck blocks in `blocks`, from images [batch, side, side, 3] to logits, or to the mean cross entropy."""

    batch: int = 1
    side: int = 224
    width: int = 64
    blocks: tuple[int, ...] = (3, 4, 6, 3)
    classes: int = 1000

    @property
    def depth(self) -> int:
        return 3 * sum(self.blocks) + 2

    def _layers(self) -> Iterator[_Layer]:
        side = (self.side + 1) // 2
        yield _Layer("stem", 7, 3, self.width, 2, side)
        side, given = (side + 1) // 2, self.width
        for stage, count in enumerate(self.blocks):
            narrow = self.width << stage
            for index in range(count):
                stride = 2 if stage and not index else 1
                before, side = side, (side + stride - 1) // stride
                name = f"s{stage}b{index}"
                yield _Layer(f"{name}c0", 1, given, narrow, 1, before)
                yield _Layer(f"{name}c1", 3, narrow, narrow, stride, side)
                yield _Layer(f"{name}c2", 1, narrow, 4 * narrow, 1, side)
                if not index:
                    yield _Layer(f"{name}skip", 1, given, 4 * narrow, stride, side)
                given = 4 * narrow

    @property
    def _features(self) -> int:
        return 4 * self.width << (len(self.blocks) - 1)

    def weights(self) -> dict[str, Any]:
        random, found = np.random.default_rng(5), dict[str, Any]()
        for layer in self._layers():
            fan = layer.side**2 * layer.inputs
            shape = (layer.side, layer.side, layer.inputs, layer.outputs)
            found[f"{layer.name}.w"] = normal(random, *shape, scale=(2 / fan) ** 0.5)
            # the last of a branch adds little, so that what 16 blocks add up stays small
            size = 0.3 if layer.name.endswith("c2") else 1.0
            found[f"{layer.name}.gamma"] = random.uniform(0.8 * size, 1.2 * size, layer.outputs).astype(np.float32)
            found[f"{layer.name}.beta"] = normal(random, layer.outputs, scale=0.1)
        found["last.w"] = normal(random, self._features, self.classes, scale=self._features**-0.5)
        found["last.b"] = normal(random, self.classes, scale=0.1)
        return found

    def state(self) -> dict[str, Any]:
        random, found = np.random.default_rng(6), dict[str, Any]()
        for layer in self._layers():
            found[f"{layer.name}.mean"] = normal(random, layer.outputs, scale=0.1)
            found[f"{layer.name}.variance"] = random.uniform(0.8, 1.2, layer.outputs).astype(np.float32)
        return found

    def data(self) -> dict[str, Any]:
        random = np.random.default_rng(7)
        return {
            "x": normal(random, self.batch, self.side, self.side, 3),
            "labels": random.integers(0, self.classes, self.batch),
        }

    def ours(self, gm: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        state: dict[str, Any] = {}

        def unit(x: Any, layer: _Layer) -> Any:
            # even windows at a stride are padded as PyTorch does, by the same on both sides
            pad = layer.side // 2
            pads = [0, 0, pad, pad, pad, pad, 0, 0] if pad else []
            strides = [1, layer.stride, layer.stride, 1]
            x = gm.ops.conv2d(
                x, w[f"{layer.name}.w"], strides=strides, padding="EXPLICIT" if pad else "VALID", explicit_paddings=pads
            )
            names = [f"{layer.name}.{part}" for part in ("gamma", "beta", "mean", "variance")]
            gamma, beta, mean, variance = w[names[0]], w[names[1]], s[names[2]], s[names[3]]
            nothing = gm.constant(np.zeros(0, np.float32))
            means = (nothing, nothing) if training else (mean, variance)
            y, *batch = gm.ops.fused_batch_norm_v3(x, gamma, beta, *means, epsilon=_EPSILON, is_training=training)
            if training:
                for name, old, new in zip(names[2:], (mean, variance), batch, strict=False):
                    state[name] = old * _KEPT + new * (1 - _KEPT)
            return y

        x = d["x"]
        layers = self._layers()
        x = gm.relu(unit(x, next(layers)))
        x = gm.ops.max_pool(
            x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0]
        )
        for group in _blocks(layers):
            y = gm.relu(unit(x, group[0]))
            y = unit(gm.relu(unit(y, group[1])), group[2])
            x = gm.relu(y + (unit(x, group[3]) if len(group) > 3 else x))
        features = gm.reduce_mean(x, [1, 2])
        logits = gm.bias_add(gm.matmul(features, w["last.w"]), w["last.b"])
        if not training:
            return Made(logits)
        losses = gm.sparse_softmax_cross_entropy_with_logits(labels=d["labels"], logits=logits)
        return Made(gm.reduce_mean(losses), state)

    def torch(self, torch: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        functions = torch.nn.functional

        def unit(x: Any, layer: _Layer) -> Any:
            x = functions.conv2d(x, w[f"{layer.name}.w"], None, layer.stride, layer.side // 2)
            gamma, beta = w[f"{layer.name}.gamma"], w[f"{layer.name}.beta"]
            mean, variance = s[f"{layer.name}.mean"], s[f"{layer.name}.variance"]  # changed in place
            return functions.batch_norm(x, mean, variance, gamma, beta, training, 1 - _KEPT, _EPSILON)

        layers = self._layers()
        x = functions.max_pool2d(torch.relu(unit(d["x"], next(layers))), 3, 2, 1)
        for group in _blocks(layers):
            y = torch.relu(unit(x, group[0]))
            y = unit(torch.relu(unit(y, group[1])), group[2])
            x = torch.relu(y + (unit(x, group[3]) if len(group) > 3 else x))
        logits = torch.addmm(w["last.b"], x.mean((2, 3)), w["last.w"])
        return Made(functions.cross_entropy(logits.float(), d["labels"]) if training else logits)

    def jax(self, jax: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        jnp, state = jax.numpy, dict[str, Any]()

        def unit(x: Any, layer: _Layer) -> Any:
            pad = layer.side // 2
            x = jax.lax.conv_general_dilated(
                x, w[f"{layer.name}.w"], (layer.stride, layer.stride), [(pad, pad), (pad, pad)],
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )  # fmt: skip
            mean, variance = s[f"{layer.name}.mean"], s[f"{layer.name}.variance"]
            if training:
                wide = x.astype(jnp.float32)
                old, count = (mean, variance), x.size / x.shape[-1]
                mean, variance = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
                state[f"{layer.name}.mean"] = old[0] * _KEPT + mean * (1 - _KEPT)
                unbiased = variance * (count / max(count - 1, 1))
                state[f"{layer.name}.variance"] = old[1] * _KEPT + unbiased * (1 - _KEPT)
            scale = w[f"{layer.name}.gamma"] * jax.lax.rsqrt(variance + _EPSILON)
            return (x * scale + (w[f"{layer.name}.beta"] - mean * scale)).astype(x.dtype)

        layers = self._layers()
        x = jax.nn.relu(unit(d["x"], next(layers)))
        pads = [(0, 0), (1, 1), (1, 1), (0, 0)]
        x = jax.lax.reduce_window(x, np.array(-np.inf, x.dtype), jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), pads)
        for group in _blocks(layers):
            y = jax.nn.relu(unit(x, group[0]))
            y = unit(jax.nn.relu(unit(y, group[1])), group[2])
            x = jax.nn.relu(y + (unit(x, group[3]) if len(group) > 3 else x))
        logits = x.mean((1, 2)) @ w["last.w"] + w["last.b"]
        return Made(cross_entropy(jax, logits, d["labels"]) if training else logits, state)

    def work(self, training: bool) -> Work:
        layers = list(self._layers())
        filters = sum(each.side**2 * each.inputs * each.outputs for each in layers)
        products = sum(each.side**2 * each.inputs * each.outputs * each.out**2 for each in layers)
        last = self._features * self.classes
        flops = 2.0 * self.batch * (products + last)
        weights, images = filters + last, self.batch * self.side**2 * 3
        return Work(flops * (3 if training else 1), 4.0 * (weights * (5 if training else 1) + images))


def _blocks(layers: Iterator[_Layer]) -> Iterator[list[_Layer]]:
    """The layers of each block: three, and that of the shortcut where it has one."""
    group: list[_Layer] = []
    for layer in layers:
        if layer.name.endswith("c0") and group:
            yield group
            group = []
        group.append(layer)
    yield group
