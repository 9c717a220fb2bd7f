"""Convolutions over any number of spatial axes, channels-last, as matrix products over patches.

Shapes below: x (N, in..., C), filter (kernel..., C / groups, F), y (N, out..., F).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from toolkit.kernels.cpu.nn.window import Windows
from toolkit.kernels.types import Array

#: a patch matrix larger than this is made and multiplied piece by piece along the batch and the first spatial axis
_PATCH_BYTES = 64 << 20


def forward(x: Array, w: Array, windows: Windows) -> Array:
    """y of a convolution (cross-correlation, as all of them are called)."""
    channels, filters = w.shape[-2:]
    y = np.empty((x.shape[0], *windows.out, filters), x.dtype)
    if y.size == 0:
        return y
    if w.size == 0:
        y[...] = 0
        return y
    groups = x.shape[-1] // channels
    if groups == 1 and windows.is_pointwise:
        np.matmul(x.reshape(-1, channels), w.reshape(channels, filters), out=y.reshape(-1, filters))
        return y
    view = windows.view(windows.pad(x))
    for where in _pieces(windows, x):
        patches = view[where]
        target = y[where]
        if groups == 1:
            np.matmul(patches.reshape(-1, w.size // filters), w.reshape(-1, filters), out=target.reshape(-1, filters))
        else:
            rows = _by_group(patches, groups)
            product = rows.reshape(groups, -1, w.size // filters) @ _filter_by_group(w, groups)
            target[...] = np.moveaxis(product, 0, 1).reshape(target.shape)
    return y


def backward_input(w: Array, dy: Array, x_shape: tuple[int, ...], windows: Windows) -> Array:
    """The gradient by x: each window's products, added back where the window lay."""
    channels, filters = w.shape[-2:]
    batch, depth = x_shape[0], x_shape[-1]
    if dy.size == 0 or w.size == 0:
        return np.zeros(x_shape, dy.dtype)
    groups = depth // channels
    if groups == 1 and windows.is_pointwise:
        return (dy.reshape(-1, filters) @ w.reshape(channels, filters).T).reshape(x_shape)
    dx = np.zeros(windows.padded_shape(batch, depth), dy.dtype)
    rows = dy.reshape(-1, filters)
    grouped = np.moveaxis(rows.reshape(-1, groups, filters // groups), 1, 0)
    for tap, where in windows.taps():
        piece = w[tap]  # (C / groups, F)
        if groups == 1:
            product = rows @ piece.T
        else:
            by_group = np.moveaxis(piece.reshape(channels, groups, -1), 1, 0)
            product = np.moveaxis(grouped @ np.swapaxes(by_group, 1, 2), 0, 1)
        dx[where] += product.reshape(batch, *windows.out, depth)
    return np.ascontiguousarray(dx[windows.interior])


def backward_filter(x: Array, dy: Array, w_shape: tuple[int, ...], windows: Windows) -> Array:
    """The gradient by the filter: patches transposed times dy."""
    channels, filters = w_shape[-2:]
    dw = np.zeros(w_shape, x.dtype)
    if dy.size == 0 or dw.size == 0:
        return dw
    groups = x.shape[-1] // channels
    if groups == 1 and windows.is_pointwise:
        return (x.reshape(-1, channels).T @ dy.reshape(-1, filters)).reshape(w_shape)
    view = windows.view(windows.pad(x))
    for where in _pieces(windows, x):
        if groups == 1:
            dw += (view[where].reshape(-1, dw.size // filters).T @ dy[where].reshape(-1, filters)).reshape(w_shape)
        else:
            rows = _by_group(view[where], groups).reshape(groups, -1, dw.size // filters)
            columns = np.moveaxis(dy[where].reshape(-1, groups, filters // groups), 1, 0)
            product = np.swapaxes(rows, 1, 2) @ columns  # (G, kernel x C/G, F/G)
            dw += np.moveaxis(product, 0, 1).reshape(w_shape)
    return dw


def _by_group(patches: Array, groups: int) -> Array:
    """(N, out..., kernel..., C) as (G, N, out..., kernel..., C / G)."""
    return np.moveaxis(patches.reshape(*patches.shape[:-1], groups, -1), -2, 0)


def _filter_by_group(w: Array, groups: int) -> Array:
    """(kernel..., C / G, F) as (G, kernel x C / G, F / G)."""
    filters = w.shape[-1]
    return np.moveaxis(w.reshape(-1, groups, filters // groups), 1, 0)


def _pieces(windows: Windows, x: Array) -> Iterator[tuple[slice, slice]]:
    """Parts of (N, out0) whose patch matrices stay small."""
    batch, first = x.shape[0], windows.out[0]
    row_bytes = math.prod(windows.out[1:]) * math.prod(windows.kernel) * x.shape[-1] * x.itemsize
    if batch * first * row_bytes <= _PATCH_BYTES:
        yield slice(0, batch), slice(0, first)
        return
    step = max(1, _PATCH_BYTES // row_bytes)
    for n in range(batch):
        for start in range(0, first, step):
            yield slice(n, n + 1), slice(start, min(start + step, first))


def depthwise_forward(x: Array, w: Array, windows: Windows) -> Array:
    """y (N, out..., C x M) with w (kernel..., C, M): every channel has its own M filters."""
    channels, multiplier = w.shape[-2:]
    shape = (x.shape[0], *windows.out, channels, multiplier)
    y = np.zeros(shape, x.dtype)
    padded = windows.pad(x)
    scratch = np.empty(shape, x.dtype)
    for tap, where in windows.taps():
        np.multiply(padded[where][..., None], w[tap], out=scratch)
        y += scratch
    return y.reshape(*shape[:-2], channels * multiplier)


def depthwise_backward_input(w: Array, dy: Array, x_shape: tuple[int, ...], windows: Windows) -> Array:
    """The gradient by x of `depthwise_forward`."""
    channels, multiplier = w.shape[-2:]
    dx = np.zeros(windows.padded_shape(x_shape[0], x_shape[-1]), dy.dtype)
    spread = dy.reshape(*dy.shape[:-1], channels, multiplier)
    for tap, where in windows.taps():
        dx[where] += np.einsum("...cm,cm->...c", spread, w[tap])
    return np.ascontiguousarray(dx[windows.interior])


def depthwise_backward_filter(x: Array, dy: Array, w_shape: tuple[int, ...], windows: Windows) -> Array:
    """The gradient by the filter of `depthwise_forward`."""
    channels, multiplier = w_shape[-2:]
    dw = np.empty(w_shape, x.dtype)
    padded = windows.pad(x)
    spread = dy.reshape(-1, channels, multiplier)
    for tap, where in windows.taps():
        dw[tap] = np.einsum("nc,ncm->cm", padded[where].reshape(-1, channels), spread)
    return dw
