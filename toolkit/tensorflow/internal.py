"""What TensorFlow 1.15's internal modules call what is public: `tensorflow.python.ops.init_ops.Constant` and its like.

The facts are exported by `schemas/export_tf1_internal`; a line is a module, a name in it and the public name.
"""

from __future__ import annotations

import functools
import lzma

from toolkit.tensorflow import api

FILE = api.FILE.with_name("tf1_internal.txt.xz")


@functools.cache
def facts() -> dict[str, dict[str, str]]:
    """Module to its names with their public ones."""
    found: dict[str, dict[str, str]] = {}
    for line in lzma.decompress(FILE.read_bytes()).decode().splitlines():
        module, name, public = line.split("\t")
        found.setdefault(module, {})[name] = public
    return found


def public_name(name: str) -> str | None:
    """The public name of "python.ops.init_ops.Constant"; None where it has none."""
    module, _, short = name.rpartition(".")
    return facts().get(module, {}).get(short)
