# TensorFlow, which this script reads the registry from, has no types.
# pyright: basic
"""Export the op registry of an installed TensorFlow to schemas/.

    python -m schemas.export_ops

Writes two data files:

ops.pb.xz     a graphmill.OpList with the definition of every registered op,
              without its descriptions, in order of name.
op_facts.json.xz
              what else TensorFlow tells about each op. JSON: "tensorflow" and
              "graph_def_version" say where it comes from, "ops" maps each name
              to an object with
              "gradient"  "function" where a gradient function is registered,
                          "none" where the op is declared to have no gradient;
                          absent where nothing is registered.
              "kernels"   device type to kernels. A kernel takes a node when
                          each attribute in "where" has one of the values
                          given (no "where": any node). "host_memory" names
                          the arguments and results that stay in host memory,
                          "priority" is given where it is not 0. Kernels that
                          differ in one attribute are joined. Kernels with a
                          label, which only nodes with a _kernel attribute
                          get, are left out, and so are the XLA_ and TPU
                          devices.

Needs the `tensorflow` distribution: `tensorflow-cpu` lacks the GPU kernels.
"""

import json
import lzma
import os
import sys
from pathlib import Path
from typing import cast

from schemas import op_def_pb2, types_pb2

FOLDER = Path(__file__).resolve().parent
OPS = FOLDER / "ops.pb.xz"
FACTS = FOLDER / "op_facts.json.xz"
DEVICES = ("CPU", "GPU", "DEFAULT")


def op_list() -> op_def_pb2.OpList:
    """Return TensorFlow's op definitions without descriptions, in order of name."""
    from tensorflow.python.client import pywrap_tf_session

    ops = op_def_pb2.OpList()
    data = pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    ops.ParseFromString(cast(bytes, data))
    for op in ops.op:
        op.ClearField("summary")
        op.ClearField("description")
        for part in (*op.input_arg, *op.output_arg, *op.attr):
            part.ClearField("description")
    ops.op.sort(key=lambda op: op.name)
    return ops


def op_facts(names: list[str]) -> dict:
    """Return TensorFlow's gradients and kernels of the named ops."""
    import tensorflow as tf
    from tensorflow.python.framework import kernels, ops

    facts = {}
    for name in names:
        fact = {}
        if name in ops.gradient_registry.list():
            fact["gradient"] = "function" if ops.gradient_registry.lookup(name) else "none"
        by_device = {}
        registered = kernels.get_registered_kernels_for_op(name).kernel
        for device in DEVICES:
            rows = [_row(kernel) for kernel in registered if kernel.device_type == device and not kernel.label]
            if rows:
                by_device[device] = [_as_json(row) for row in _join(rows)]
        if by_device:
            fact["kernels"] = by_device
        facts[name] = fact
    return {"tensorflow": tf.version.VERSION, "graph_def_version": tf.version.GRAPH_DEF_VERSION, "ops": facts}


def _row(kernel) -> tuple:
    """Return a kernel as (priority, host memory arguments, {attribute: allowed values})."""
    where = {}
    for constraint in kernel.constraint:
        values = constraint.allowed_values.list
        allowed = {types_pb2.DataType.Name(number) for number in values.type}
        allowed |= {text.decode() for text in values.s} | set(values.i) | {bool(value) for value in values.b}
        where[constraint.name] = where.get(constraint.name, allowed) & allowed
    return kernel.priority, tuple(sorted(kernel.host_memory_arg)), where


def _join(rows: list[tuple]) -> list[tuple]:
    """Join rows that differ in the values of one attribute, until none do."""
    while True:
        count = len(rows)
        # "" is no attribute: it joins rows that are equal.
        for attr in sorted({"", *(attr for _, _, where in rows for attr in where)}):
            groups = {}
            for priority, host, where in rows:
                rest = tuple(sorted((key, _order(values)) for key, values in where.items() if key != attr))
                group = groups.setdefault((-priority, host, rest, attr in where), (priority, host, dict(where)))
                if attr in where:
                    group[2][attr] = group[2][attr] | where[attr]
            rows = [groups[key] for key in sorted(groups, key=repr)]
        if len(rows) == count:
            return sorted(rows, key=lambda row: json.dumps(_as_json(row)))


def _order(values: set) -> tuple:
    """Sort allowed values: types by their number, all else by itself."""
    numbers = types_pb2.DataType.DESCRIPTOR.values_by_name
    return tuple(sorted(values, key=lambda value: (numbers[value].number if value in numbers else -1, str(value))))


def _as_json(row: tuple) -> dict:
    priority, host, where = row
    kernel = {}
    if where:
        kernel["where"] = {attr: list(_order(values)) for attr, values in sorted(where.items())}
    if host:
        kernel["host_memory"] = list(host)
    if priority:
        kernel["priority"] = priority
    return kernel


def compress(raw: bytes) -> bytes:
    return lzma.compress(raw, preset=9 | lzma.PRESET_EXTREME)


def main() -> int:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow as tf
    except ImportError:
        print("export_ops: TensorFlow is needed; run: pip install tensorflow", file=sys.stderr)
        return 2
    if not tf.test.is_built_with_cuda():
        print("export_ops: this TensorFlow has no GPU kernels; run: pip install tensorflow", file=sys.stderr)
        return 2
    ops = op_list()
    facts = op_facts([op.name for op in ops.op])
    OPS.write_bytes(compress(ops.SerializeToString(deterministic=True)))
    FACTS.write_bytes(compress(json.dumps(facts, separators=(",", ":")).encode()))
    print(f"wrote {len(ops.op)} ops: {OPS.name} {OPS.stat().st_size} bytes, {FACTS.name} {FACTS.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
