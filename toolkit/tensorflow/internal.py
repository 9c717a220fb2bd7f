"""TensorFlow 1.15's internal modules: what they call what is public, and which there are at all.

`tensorflow.python.ops.init_ops.Constant` and its like. The facts are exported by `schemas/export_tf1_internal`: a line
of the one file is a module, a name in it and the public name, a line of the other the name of a module.
"""

from __future__ import annotations

import functools
import lzma

from toolkit.tensorflow import api

FILE = api.FILE.with_name("tf1_internal.txt.xz")
ALL_MODULES_FILE = api.FILE.with_name("tf1_modules.txt.xz")
#: a module that is not here, to what does its work
_INSTEAD = {
    "python.debug": "`graphmill python --check-numerics` stops at the first NaN, --trace and --profile show every node",
    "contrib.cluster_resolver": "write the addresses in a tf.train.ClusterSpec",
    "contrib.tpu": "no TPU is driven here",
    "python.tpu": "no TPU is driven here",
    "contrib.nccl": "there are no GPUs to exchange sums here; tf.add_n adds them up",
    "contrib.tensorrt": "`graphmill optimize` makes a graph for inference",
}


@functools.cache
def facts() -> dict[str, dict[str, str]]:
    """Module to its names with their public ones."""
    found: dict[str, dict[str, str]] = {}
    for line in lzma.decompress(FILE.read_bytes()).decode().splitlines():
        module, name, public = line.split("\t")
        found.setdefault(module, {})[name] = public
    return found


@functools.cache
def all_modules() -> frozenset[str]:
    """Every module of 1.15 that a program could import, but Keras and TensorFlow Lite."""
    return frozenset(lzma.decompress(ALL_MODULES_FILE.read_bytes()).decode().split())


def public_name(name: str) -> str | None:
    """The public name of "python.ops.init_ops.Constant"; None where it has none."""
    module, _, short = name.rpartition(".")
    return facts().get(module, {}).get(short)


def home(module: str) -> str | None:
    """The public module whose names one inside of tf.contrib has: contrib.rnn.python.ops.rnn is part of contrib.rnn."""
    public, inside, _ = module.partition(".python")
    return public if inside and public.startswith("contrib.") else None


def instead(name: str) -> str:
    """What to do without a module of 1.15, or what is in one; "" where there is nothing to say."""
    return next((told for module, told in _INSTEAD.items() if name == module or name.startswith(module + ".")), "")
