# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The folders of exported models, and files that are copied into them."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any


def timestamped(base: str) -> str:
    """A new folder in another one, named by the seconds since 1970."""
    stamp = int(time.time())
    while True:
        target = os.path.join(base, str(stamp))
        if not os.path.exists(target):
            return target
        stamp += 1


def copy_extra(folder: str, assets_extra: Any) -> None:
    """Copy files into an export, each under a name."""
    for name, source in (assets_extra or {}).items():
        place = os.path.join(folder, "assets.extra", name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copyfile(source, place)
