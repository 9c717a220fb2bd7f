# TensorFlow, which this script reads the names from, has no types.
# pyright: basic
"""Export the names of TensorFlow 1.15 that later releases no longer have to schemas/tf1_dropped.txt.xz.

    python3.7 schemas/export_tf1_dropped.py
    python3.7 schemas/export_tf1_dropped.py --older     under TensorFlow 1.13: adds modules that 1.15 had lost

It runs under the interpreter that has TensorFlow 1.15, which is Python 3.7 at the latest, so it is written for that
one and imports nothing of this project. The file is laid out as `schemas.export_tf1_api` says; functions are not taken
apart into ops. A name of `tf.contrib` that is a public name elsewhere, too, has that one as its canonical name.
"""

import collections
import enum
import importlib
import inspect
import json
import lzma
import os
import sys
import types
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FILE = FOLDER / "tf1_dropped.txt.xz"
KEPT = FOLDER / "tf1_api.txt.xz"
LEFT_OUT = frozenset(["keras", "lite", "tpu", "distribute", "raw_ops", "compat"])
#: modules of tf.contrib that published programs use; what two of them have is called by its name in the first
CONTRIB = (
    "framework", "framework.nest", "layers", "losses", "metrics", "rnn", "legacy_seq2seq", "seq2seq", "crf",
    "training", "data", "lookup", "opt", "nn", "image", "distributions", "distributions.bijectors", "stateless",
    "summary", "util", "saved_model", "predictor", "estimator", "cudnn_rnn", "slim", "slim.learning",
    "slim.evaluation", "slim.queues", "slim.losses", "slim.metrics", "slim.dataset", "slim.data_decoder",
    "slim.dataset_data_provider", "slim.tfexample_decoder", "slim.prefetch_queue", "slim.parallel_reader",
    "slim.model_analyzer", "slim.summaries", "slim.nets.alexnet", "slim.nets.inception", "slim.nets.overfeat",
    "slim.nets.resnet_utils", "slim.nets.resnet_v1", "slim.nets.resnet_v2", "slim.nets.vgg", "learn",
    "learn.datasets", "learn.datasets.base", "learn.datasets.mnist", "learn.preprocessing", "signal", "feature_column",
    "tensorboard.plugins.projector", "tpu", "quantize", "staging", "graph_editor",
)  # fmt: skip
#: the other modules of tf.contrib, less known; of names that an import has left behind in them none is listed
MORE_CONTRIB = (
    "losses.metric_learning", "factorization", "gan", "gan.estimator", "gan.eval", "gan.features", "gan.losses",
    "gan.losses.wargs", "gan.namedtuples", "gan.train", "all_reduce", "text", "timeseries", "resampler",
    "solvers.lanczos", "solvers.least_squares", "solvers.linear_equations", "solvers.util", "sparsemax", "rate",
    "bayesflow.monte_carlo", "model_pruning", "periodic_resample", "input_pipeline", "integrate", "kernel_methods",
    "grid_rnn", "copy_graph", "deprecated", "memory_stats", "mixed_precision", "optimizer_v2", "receptive_field",
    "recurrent", "linear_optimizer", "constrained_optimization", "cluster_resolver", "labeled_tensor", "specs",
    "tensor_forest.client.random_forest", "tensor_forest.client.eval_metrics", "tensor_forest.python.tensor_forest",
    "checkpoint", "hooks", "reduce_slice_ops", "rpc",
    "proto", "batching", "ffmpeg", "meta_graph_transform", "nearest_neighbor", "compiler.jit", "compiler.xla",
    "decision_trees", "quantization", "session_bundle", "stat_summarizer", "testing", "tfprof", "fused_conv",
    "libsvm", "eager.python.metrics", "keras", "autograph", "remote_fused_graph",
)  # fmt: skip
_PLAIN = (bool, int, float, str, bytes, type(None))


def walk(tf):
    """Every public name, dotted, and what it stands for; modules of tf.contrib last."""
    found = collections.OrderedDict()

    def visit(prefix, module):
        for name in sorted(dir(module)):
            if name.startswith("_") or name in LEFT_OUT or prefix + name == "contrib" or not hasattr(module, name):
                continue
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                # Modules of tf.contrib have others beside them that an import left behind, so those are listed.
                if not prefix.startswith("contrib.") and ("_api" in value.__name__ or "estimator" in value.__name__):
                    found[prefix + name] = value
                    visit(prefix + name + ".", value)
            elif name not in ("absolute_import", "division", "print_function"):
                found[prefix + name] = value

    visit("", tf)
    for name in CONTRIB:
        module = tf.contrib
        if name.startswith("slim.nets."):
            module = getattr(importlib.import_module("tensorflow.contrib.slim.nets"), name.rpartition(".")[2])
        else:
            for part in name.split("."):
                module = getattr(module, part)
        found["contrib." + name] = module
        visit("contrib." + name + ".", module)
    for name in MORE_CONTRIB:
        module = imported(tf.contrib, name)
        if module is None:
            print(f"export_tf1_dropped: {tf.__version__} has no tf.contrib.{name}", file=sys.stderr)
            continue
        found["contrib." + name] = module
        own = getattr(module, "__all__", None)
        for short in sorted(dir(module)):
            value = getattr(module, short)
            if short.startswith("_") or isinstance(value, types.ModuleType) or (own is not None and short not in own):
                continue
            made_there = "tensorflow.contrib." in (getattr(value, "__module__", None) or "")
            if own is not None or made_there or (isinstance(value, (str, int)) and short.isupper()):
                found["contrib." + name + "." + short] = value
    return found


def imported(contrib, name):
    """A module of tf.contrib, which may be one only by the name that another module gives it."""
    try:
        return importlib.import_module("tensorflow.contrib." + name)
    except ImportError:
        for part in name.split("."):
            contrib = getattr(contrib, part, None)
        return contrib


def rank(name):
    """Names outside of tf.contrib first, then by the order of its modules; short ones before long ones."""
    module = name[len("contrib.") :].rpartition(".")[0] if name.startswith("contrib.") else None
    return (-1 if module is None else (CONTRIB + MORE_CONTRIB).index(module), name.count("."), len(name), name)


def canonical_names(found):
    """Name to the first name of the same thing; those outside of tf.contrib come first."""
    first, canonical = {}, {}
    for name in sorted((name for name in found if not isinstance(found[name], types.ModuleType)), key=rank):
        value = found[name]
        if isinstance(value, _PLAIN):
            canonical[name] = name
            continue
        inner = value if isinstance(value, type) else unwrapped(value)
        canonical[name] = first.setdefault(id(inner), name)
    return canonical


def unwrapped(value):
    from tensorflow.python.util import tf_decorator

    return tf_decorator.unwrap(value)[1]


def signature_text(value, dtypes):
    signature = inspect.signature(value)
    parts = []
    empty = inspect.Parameter.empty
    for parameter in signature.parameters.values():
        kind = parameter.kind
        if kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        default = "" if parameter.default is empty else "=" + default_text(parameter.default, dtypes)
        parts.append(star + parameter.name + default)
    return "(" + ", ".join(parts) + ")"


def default_text(value, dtypes):
    import tensorflow as tf

    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return f"float('{value}')"
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tf.DType):
        return dtypes[value.as_datatype_enum]
    if isinstance(value, (tuple, list)):
        inner = ", ".join(default_text(item, dtypes) for item in value)
        if isinstance(value, list):
            return "[" + inner + "]"
        return "(" + inner + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, dict) and not value:
        return "{}"
    return f"<{type(value).__name__}>"


def is_deprecated(value):
    while hasattr(value, "_tf_decorator"):
        if value._tf_decorator.decorator_name == "deprecated":
            return True
        value = value._tf_decorator.decorated_target
    return False


def members(name, cls, dtypes):
    rows = []
    for member in sorted(dir(cls)):
        if member.startswith("_"):
            continue
        value = inspect.getattr_static(cls, member)
        if isinstance(value, property) or not callable(getattr(cls, member, None)):
            rows.append((name + "." + member, "property", "", {}, ""))
            continue
        try:
            rows.append((name + "." + member, "method", "", {}, signature_text(getattr(cls, member), dtypes)))
        except (TypeError, ValueError):
            rows.append((name + "." + member, "method", "", {}, ""))
    return rows


def rows_of(found, kept):
    import tensorflow as tf
    from google.protobuf.message import Message

    canonical = canonical_names(found)
    public = {id(value): canonical[name] for name, value in found.items() if isinstance(value, type)}
    dtypes = {v.as_datatype_enum: "tf." + canonical[n] for n, v in found.items() if isinstance(v, tf.DType)}
    rows = []
    for name, value in found.items():
        if name in kept:
            continue
        if isinstance(value, types.ModuleType):
            rows.append((name, "module", "", {}, ""))
            continue
        first = canonical[name]
        first = kept.get(first) or first
        other = first if first != name else ""
        detail, signature = {}, ""
        if isinstance(value, tf.DType):
            kind, detail = "dtype", {"value": value.as_datatype_enum}
        elif isinstance(value, type) and issubclass(value, enum.Enum):
            kind = "enum"
            detail["members"] = {m.name: m.value if isinstance(m.value, (int, str)) else None for m in value}
        elif isinstance(value, type) and issubclass(value, Message):
            kind, detail = "message", {"message": value.DESCRIPTOR.full_name}
        elif isinstance(value, type):
            kind = "class"
            try:
                signature = signature_text(value, dtypes)
            except (TypeError, ValueError):
                signature = ""
            detail = {"bases": [public[id(base)] for base in value.__mro__[1:] if id(base) in public]}
            if not other:
                rows += members(name, value, dtypes)
        elif callable(value):
            kind = "function"
            try:
                signature = signature_text(value, dtypes)
            except (TypeError, ValueError):
                signature = ""
            if is_deprecated(value):
                detail["deprecated"] = True
        else:
            kind = "constant"
            if isinstance(value, _PLAIN) and not isinstance(value, bytes):
                detail["value"] = value
        rows.append((name, kind, other, detail, signature))
    return sorted(rows)


def main():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow as tf
    except ImportError:
        tf = None
    older = "--older" in sys.argv
    wanted = "1.13" if older else "1.15"
    if tf is None or not tf.__version__.startswith(wanted):
        print(f"export_tf1_dropped: TensorFlow {wanted} is needed, under Python 3.7", file=sys.stderr)
        return 2
    kept = {}
    for line in lzma.decompress(KEPT.read_bytes()).decode().split("\n")[1:]:
        if line:
            name, _, canonical = line.split("\t")[:3]
            kept[name] = canonical or name
    rows = rows_of(walk(tf), kept)
    lines = ["tensorflow " + tf.__version__]
    if older:
        lines = lzma.decompress(FILE.read_bytes()).decode().splitlines()
        there = {line.split("\t")[0] for line in lines[1:]}
        lost = [row for row in rows if row[1] == "module" and row[0] not in there]
        rows = [row for row in rows if any((row[0] + ".").startswith(module[0] + ".") for module in lost)]
    for name, kind, canonical, detail, signature in rows:
        shown = json.dumps(detail, separators=(",", ":"), sort_keys=True) if detail else ""
        lines.append("\t".join((name, kind, canonical, shown, signature)))
    text = "\n".join([lines[0], *sorted(lines[1:])]) + "\n"
    FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    kinds = collections.Counter(row[1] for row in rows)
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"wrote {len(rows)} names ({shown}): {FILE.name} {FILE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
