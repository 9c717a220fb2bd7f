# NumPy's arrays may be of anything here, and Pillow is no dependency, so neither has types.
# pyright: basic
"""scipy.misc's functions for images, which SciPy dropped in 1.3, for while a program of that time runs.

They read, write and scale through Pillow, as they did then. Where SciPy is installed, `import scipy.misc` finds them
beside what the installed one has; where it is not, its own absence is all there is to say. Programs about graphs import
scipy.sparse.linalg.eigen.arpack, whose functions are in scipy.sparse.linalg since 1.8.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

#: Pillow's numbers of ways to resample
_RESAMPLING = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ModuleNotFoundError("scipy.misc's functions for images need Pillow: pip install pillow") from None
    return Image


def bytescale(data: Any, cmin: Any = None, cmax: Any = None, high: int = 255, low: int = 0) -> Any:
    """Numbers between `cmin` and `cmax`, the least and the largest by default, as bytes between `low` and `high`.

    Bytes stay as they are.

    Raises:
        ValueError: `low` and `high` are no bytes in that order.
    """
    import numpy as np

    data = np.asarray(data)
    if data.dtype == np.uint8:
        return data
    if not 0 <= low <= high <= 255:
        raise ValueError(f"low {low} and high {high}: expected 0 <= low <= high <= 255")
    least = data.min() if cmin is None else cmin
    most = data.max() if cmax is None else cmax
    scale = float(high - low) / ((most - least) or 1)
    return (((data - least) * scale + low).clip(low, high) + 0.5).astype(np.uint8)


def toimage(
    arr: Any, high: int = 255, low: int = 0, cmin: Any = None, cmax: Any = None, pal: Any = None, mode: Any = None,
    channel_axis: Any = None,
) -> Any:  # fmt: skip
    """A Pillow image of [height, width] or of [height, width, 3 or 4], the channels on any axis.

    Raises:
        ValueError: the array is no image.
    """
    import numpy as np

    image, data = _pillow(), np.asarray(arr)
    if data.ndim == 2:
        if mode == "F":
            return image.fromarray(data.astype(np.float32))
        if mode == "I":
            return image.fromarray(data.astype(np.int32))
        made = image.fromarray(bytescale(data, cmin, cmax, high, low))
        if pal is not None:
            made.putpalette(bytes(np.asarray(pal, np.uint8).tobytes()))
        return made.convert("1") if mode == "1" else made
    axes = [axis for size in (3, 4) for axis, length in enumerate(data.shape) if length == size]
    axis = channel_axis if channel_axis is not None else (axes or [None])[0]
    if data.ndim != 3 or axis is None or data.shape[axis] not in (3, 4):
        raise ValueError(f"an array {data.shape} is no image; expected [height, width] or three or four channels")
    pixels = np.ascontiguousarray(np.moveaxis(bytescale(data, cmin, cmax, high, low), axis, 2))
    made = image.fromarray(pixels)
    return made if mode is None or mode == made.mode else made.convert(mode)


def fromimage(im: Any, flatten: bool = False, mode: Any = None) -> Any:
    """The pixels of a Pillow image; `flatten` makes them shades of grey, as float32."""
    import numpy as np

    if mode is not None:
        im = im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    if flatten:
        im = im.convert("F")
    elif im.mode == "1":
        im = im.convert("L")
    return np.array(im)


def imread(name: Any, flatten: bool = False, mode: Any = None) -> Any:
    """The pixels of a file."""
    with _pillow().open(name) as opened:
        return fromimage(opened, flatten, mode)


def imsave(name: Any, arr: Any, format: Any = None) -> None:
    """Write an array as an image, scaled to bytes."""
    made = toimage(arr, channel_axis=2 if getattr(arr, "ndim", 2) == 3 else None)
    made.save(name) if format is None else made.save(name, format)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: Any = None) -> Any:
    """Another size: (height, width), a whole number of percents, or a fraction.

    Raises:
        ValueError: `interp` is no way to interpolate.
    """
    if interp not in _RESAMPLING:
        raise ValueError(f"interp {interp!r}: expected one of {', '.join(_RESAMPLING)}")
    made = toimage(arr, mode=mode)
    if isinstance(size, Sequence) or hasattr(size, "__len__"):
        wanted = int(size[1]), int(size[0])
    else:
        share = size / 100.0 if isinstance(size, int) else float(size)
        wanted = int(made.size[0] * share), int(made.size[1] * share)
    return fromimage(made.resize(wanted, resample=_RESAMPLING[interp]))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> Any:
    """Turned by degrees against the clock, in the same size."""
    return fromimage(toimage(arr).rotate(angle, resample=_RESAMPLING[interp]))


_EIGEN = "scipy.sparse.linalg.eigen"
#: a module to what is added to it; all but scipy.ndimage may have gone
_FUNCTIONS: dict[str, tuple[Callable[..., Any], ...]] = {
    "scipy.misc": (bytescale, toimage, fromimage, imread, imsave, imresize, imrotate),
    "scipy.ndimage": (imread,),
    _EIGEN: (),
    f"{_EIGEN}.arpack": (),
}


class _Adding(importlib.abc.Loader):
    """Loads a module as it is, if there is one, and adds what it has no more."""

    def __init__(self, name: str, spec: Any):
        self._name, self._spec = name, spec

    def create_module(self, spec: Any) -> ModuleType | None:
        return None if self._spec is None else self._spec.loader.create_module(self._spec)

    def exec_module(self, module: ModuleType) -> None:
        if self._spec is not None:
            self._spec.loader.exec_module(module)
        functions = _FUNCTIONS[self._name]
        if self._name.startswith(_EIGEN):
            from importlib import import_module

            home = import_module("scipy.sparse.linalg")
            functions = home.eigs, home.eigsh
        for function in functions:
            if function.__name__ not in vars(module):
                setattr(module, function.__name__, function)


class _Finder:
    def __init__(self) -> None:
        self._busy = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _FUNCTIONS or self._busy:
            return None
        self._busy = True
        try:
            found = importlib.util.find_spec(name) if name != f"{_EIGEN}.arpack" else None
        finally:
            self._busy = False
        if found is None and name == "scipy.ndimage":
            return None
        made = importlib.machinery.ModuleSpec(name, _Adding(name, found), origin=found.origin if found else None)
        made.submodule_search_locations = found.submodule_search_locations if found else None
        if name == _EIGEN and made.submodule_search_locations is None:
            made.submodule_search_locations = []  # a package, with arpack inside
        return made


@contextmanager
def restored() -> Generator[None]:
    """Within this `import scipy.misc` finds functions for images."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]  # a finder without the base class
    try:
        yield
    finally:
        sys.meta_path.remove(finder)  # type: ignore[arg-type]  # as above
