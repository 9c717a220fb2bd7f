"""What cuDNN's frontend is told of an attention, and what its definition in NumPy is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.frontend import Frontend
from toolkit.kernels.cuda.driver.base import Context, GpuSpan
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.cuda.libraries import cudnn_graphs, reference_attention
from toolkit.kernels.cuda.libraries.attention import (
    Attention,
    AttentionGradient,
    AttentionSizes,
    check_attention,
    library_takes,
    packed_strides,
    with_every_row,
)
from toolkit.kernels.cuda.libraries.base import LibraryError

SIZES = AttentionSizes(2, 3, 5, 7, 16, 8)


def _places(sizes: AttentionSizes) -> dict[str, Any]:
    """Tokens first, heads behind them, as projections have them."""
    found: dict[str, Any] = {}
    for part in ("q", "k", "v", "out"):
        _, heads, rows, columns = sizes.shape(part)
        found[part] = (rows * heads * columns, columns, heads * columns, 1)
    return found


ATTENTION = Attention(SIZES, "bfloat16", 0.25, **_places(SIZES), mask=(35, 0, 7, 1), statistics=True)


class _Tensor:
    """A tensor of a graph: whatever is set is kept."""

    def __init__(self, **known: Any):
        self.known = known

    def __getattr__(self, name: str) -> Any:
        def put(value: Any) -> _Tensor:
            self.known[name.removeprefix("set_")] = value
            return self

        return put


class _Graph:
    def __init__(self, of: _Cudnn):
        self._of = of

    def tensor(self, **known: Any) -> _Tensor:
        made = _Tensor(**known)
        self._of.tensors[known["uid"]] = made.known
        return made

    def sdpa(self, **known: Any) -> list[_Tensor | None]:
        self._of.asked.append(known)
        self._of.made = [_Tensor(), _Tensor()]
        return [self._of.made[0], self._of.made[1] if known["generate_stats"] else None]

    def sdpa_backward(self, **known: Any) -> list[_Tensor]:
        self._of.asked.append(known)
        self._of.made = [_Tensor() for _ in range(3)]
        return self._of.made

    def execute(self, addresses: dict[int, int], workspace: int, *, handle: Any) -> None:
        self._of.runs.append(addresses)

    def get_workspace_size(self) -> int:
        return 4096

    def build_plans(self) -> None:
        self._of.plans += 1
        if self._of.refuses:
            raise self._of.cudnnGraphNotSupportedError("no engine")

    def __getattr__(self, name: str) -> Any:
        def nothing(*_: Any) -> None: ...

        return nothing


class _Cudnn(Frontend):
    """The frontend, which keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: dict[int, dict[str, Any]] = {}
        self.asked: list[dict[str, Any]] = []
        self.made: list[_Tensor] = []
        self.runs: list[dict[int, int]] = []
        self.plans = 0

    def pygraph(self, **_: Any) -> _Graph:
        return _Graph(self)

    def create_handle(self) -> str:
        return "handle"

    def set_stream(self, **_: Any) -> None: ...


@pytest.fixture
def cudnn(monkeypatch: pytest.MonkeyPatch) -> tuple[_Cudnn, cudnn_graphs.Cudnn, Any]:
    library = _Cudnn()
    monkeypatch.setattr(cudnn_graphs, "load", lambda: library)
    context: Context = FakeDriver(1).open(0)
    return library, cudnn_graphs.Cudnn(context, lambda: None), context


def _spans(count: int, start: int) -> list[Any]:
    return [GpuSpan(start + (at << 20), 1 << 20) for at in range(count)]


def test_an_attention_is_planned_once_and_given_addresses(cudnn: tuple[_Cudnn, cudnn_graphs.Cudnn, Any]) -> None:
    library, dnn, context = cudnn
    for start in (1 << 24, 1 << 28):
        q, k, v, out, mask, statistics = _spans(6, start)
        dnn.attend(ATTENTION, q, k, v, out, context.stream(), mask=mask, statistics=statistics)
    assert library.plans == 1
    (asked,) = library.asked
    assert asked["attn_scale"] == 0.25 and asked["generate_stats"] and not asked["use_causal_mask"]
    assert library.tensors[1]["dim"] == [2, 3, 5, 16] and library.tensors[1]["stride"] == [240, 16, 48, 1]
    assert library.tensors[5] == {"dim": [2, 1, 5, 7], "stride": [35, 35, 7, 1], "data_type": "FLOAT", "uid": 5}
    out, statistics = (each.known for each in library.made)
    assert out["dim"] == [2, 3, 5, 8] and out["stride"] == [120, 8, 24, 1] and out["data_type"] == "BFLOAT16"
    assert statistics["dim"] == [2, 3, 5, 1] and statistics["data_type"] == "FLOAT"
    assert library.runs == [
        {uid: start + (at << 20) for at, uid in enumerate((1, 2, 3, 4, 5, 6))} for start in (1 << 24, 1 << 28)
    ]


def test_gradients_are_planned_with_the_statistics(cudnn: tuple[_Cudnn, cudnn_graphs.Cudnn, Any]) -> None:
    library, dnn, context = cudnn
    p = _places(SIZES)
    of = AttentionGradient(replace(ATTENTION, deterministic=True), p["out"], p["q"], p["k"], p["v"])
    q, k, v, out, d_out, statistics, dq, dk, dv, mask = _spans(10, 1 << 24)
    dnn.attend_back(of, q, k, v, out, d_out, statistics, [dq, dk, dv], context.stream(), mask=mask)
    (asked,) = library.asked
    assert asked["use_deterministic_algorithm"] and asked["stats"].known["uid"] == 6
    assert [each.known["dim"] for each in library.made] == [[2, 3, 5, 16], [2, 3, 7, 16], [2, 3, 7, 8]]
    assert sorted(library.runs[0]) == list(range(1, 11))


def test_without_an_engine_there_is_no_plan(cudnn: tuple[_Cudnn, cudnn_graphs.Cudnn, Any]) -> None:
    library, dnn, context = cudnn
    library.refuses = True
    assert not dnn.attends(ATTENTION) and not dnn.attends(ATTENTION)
    assert library.plans == 1  # that there is none is known, too
    q, k, v, out, mask, statistics = _spans(6, 1 << 24)
    with pytest.raises(LibraryError, match="no engine for Attention"):
        dnn.attend(ATTENTION, q, k, v, out, context.stream(), mask=mask, statistics=statistics)


def test_what_an_attention_needs_is_given() -> None:
    with pytest.raises(LibraryError, match="needs mask"):
        check_attention(ATTENTION, None, "statistics")
    with pytest.raises(LibraryError, match="takes no statistics"):
        check_attention(replace(ATTENTION, statistics=False), "mask", "statistics")


@pytest.mark.parametrize(
    ("changes", "taken"),
    [
        ({}, True), ({"dtype": "float16"}, True), ({"dtype": "float32"}, False), ({"made": "float32"}, False),
        ({"sizes": SIZES._replace(size=12)}, False), ({"sizes": SIZES._replace(value_size=136)}, False),
        ({"mask": (7, 0, 0, 1)}, False), ({"q": (240, 80, 1, 5)}, False),
    ],
)  # fmt: skip
def test_what_the_library_takes(changes: dict[str, Any], taken: bool) -> None:
    assert library_takes(replace(ATTENTION, **changes)) == taken


def test_a_mask_has_a_row_for_each_query() -> None:
    assert with_every_row(replace(ATTENTION, mask=(7, 0, 0, 1))).mask == (35, 0, 7, 1)
    assert with_every_row(replace(ATTENTION, mask=(0, 7, 0, 1))).mask == (0, 35, 7, 1)
    assert with_every_row(replace(ATTENTION, mask=None)).mask is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_definition(causal: bool, dtype: str) -> None:
    """Beside float64: each share is rounded once and so is each result; gradients take rounded shares and results."""
    kind: Any = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    rng = np.random.default_rng(4)
    made: dict[str, Any] = {part: rng.normal(size=SIZES.shape(part)).astype(kind) for part in ("q", "k", "v", "out")}
    q, k, v, d_out = (made[part].astype(np.float64) for part in ("q", "k", "v", "out"))
    mask = rng.normal(size=(2, 1, 5, 7)).astype(np.float32)
    places: dict[str, Any] = {part: packed_strides(SIZES.shape(part)) for part in ("q", "k", "v", "out")}
    of = Attention(SIZES, dtype, 0.25, **places, mask=(35, 0, 7, 1), causal=causal, statistics=True)
    out, statistics = np.zeros(SIZES.shape("out"), kind), np.zeros((2, 3, 5, 1), np.float32)
    reference_attention.attention(of, made["q"], made["k"], made["v"], out, mask, statistics)
    scores = 0.25 * q @ np.swapaxes(k, 2, 3) + mask
    scores = np.where(np.tri(5, 7, dtype=bool), scores, -np.inf) if causal else scores
    total = np.exp(scores).sum(-1, keepdims=True)
    shares = np.exp(scores) / total
    u = tolerance.unit(kind)
    size = shares @ np.abs(v)  # what sums come to without signs; float32's own roundings are thousands of times less
    assert np.all(np.abs(out.astype(np.float64) - shares @ v) <= 3 * u * size + u)
    np.testing.assert_allclose(statistics, np.log(total), atol=64 * tolerance.unit(np.float32))
    dq, dk, dv = (np.zeros(SIZES.shape(part), kind) for part in ("q", "k", "v"))
    gradient = AttentionGradient(of, places["out"], places["q"], places["k"], places["v"])
    q_, k_, v_, d_ = (made[part] for part in ("q", "k", "v", "out"))
    reference_attention.gradient(gradient, q_, k_, v_, out, d_, statistics, dq, dk, dv, mask)
    d_shares = d_out @ np.swapaxes(v, 2, 3)
    d_scores = shares * (d_shares - (d_shares * shares).sum(-1, keepdims=True))
    off = u * shares * (np.abs(d_out) @ np.swapaxes(np.abs(v), 2, 3) + (np.abs(d_out) * size).sum(-1, keepdims=True))
    wanted = (0.25 * d_scores @ k, 0.25 * np.swapaxes(d_scores, 2, 3) @ q, np.swapaxes(shares, 2, 3) @ d_out)
    # results and the gradients by scores are rounded, once each; 4 for both, the sums and what is rounded in them
    near = (off @ np.abs(k), np.swapaxes(off, 2, 3) @ np.abs(q), u * np.swapaxes(shares, 2, 3) @ np.abs(d_out))
    for one, other, apart in zip((dq, dk, dv), wanted, near, strict=True):
        assert np.all(np.abs(one.astype(np.float64) - other) <= 4 * (apart + u * np.abs(other)) + u)
