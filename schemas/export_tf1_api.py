# TensorFlow, which this script reads the names from, has no types.
# pyright: basic
"""Export the public names of tensorflow.compat.v1 of an installed TensorFlow to schemas/tf1_api.txt.xz.

    python -m schemas.export_tf1_api

The file is text, one name a line, in order of name, with five columns between tabs:

name       dotted, without "tf.": nn.relu, train.Saver, train.Saver.save (a member of a class)
kind       module, function, op (a function that TensorFlow generates from an op), class, message (a protobuf class),
           enum, dtype, constant; of members: method, property
canonical  the name that TensorFlow calls the same thing by first, where that is another one
detail     JSON, or empty. "op": the op, "arguments": [argument of the op, parameter of the function] pairs and
           "outputs": fields of what it returns, where it returns a named tuple; "value" of plain constants; "members"
           of enums, name to value; "message": full name; "bases": public names of base classes; "deprecated": true
           where TensorFlow warns; "generic": true for ops of which the function has more than the op's call
signature  as Python writes it. Defaults that Python cannot write: dtypes as tf.NAME, members of enums as
           tf.ENUM.MEMBER, anything else as <type>

The first line names the release. Names, signatures and defaults are all there is: no texts.
Left out: keras, lite, tpu, distribute, raw_ops, compat, and what begins with an underscore.
"""

import ast
import collections
import enum
import inspect
import json
import lzma
import os
import sys
import textwrap
import types
from pathlib import Path

FILE = Path(__file__).resolve().parent / "tf1_api.txt.xz"
LEFT_OUT = frozenset({"keras", "lite", "tpu", "distribute", "raw_ops", "compat", "estimator", "experimental"})
_PLAIN = (bool, int, float, str, bytes, type(None))


def walk(root) -> dict[str, object]:
    """Every public name below a module, dotted, and what it stands for."""
    found: dict[str, object] = {}

    def visit(prefix, module):
        for name in sorted(dir(module)):
            if name.startswith("_") or name in LEFT_OUT:
                continue
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                where = value.__dict__.get("__name__", "")  # getattr would have a lazy module load Keras
                if ".compat." not in where and "_api" not in where:
                    continue  # modules that an import left behind
                visit(f"{prefix}{name}.", value)
                found[prefix + name] = value
            elif name not in ("absolute_import", "division", "print_function"):
                found[prefix + name] = value

    visit("", root)
    return found


def canonical_names(found) -> dict[str, str]:
    """Name to the name that TensorFlow calls the same thing by first."""
    from tensorflow.python.util import tf_decorator

    same = collections.defaultdict(list)
    for name, value in found.items():
        if isinstance(value, types.ModuleType):
            continue
        if isinstance(value, _PLAIN):
            same[(name.rsplit(".", 1)[-1], repr(value))].append(name)
        elif callable(value) and not isinstance(value, type):
            # A name that TensorFlow warns about is the function inside another wrapper.
            same[(id(tf_decorator.unwrap(value)[1]), str(inspect.signature(value)))].append(name)
        else:
            same[id(value)].append(name)
    canonical = {}
    for names in same.values():
        value = found[names[0]]
        exported = []
        if not isinstance(value, _PLAIN):
            exported = list(getattr(tf_decorator.unwrap(value)[1], "_tf_api_names_v1", None) or ())
            exported = exported or list(getattr(value, "_tf_api_names_v1", None) or ())
            dropped = getattr(tf_decorator.unwrap(value)[1], "_tf_deprecated_api_names", None) or ()
            exported = [name for name in exported if name not in dropped]
        first = next((name for name in exported if name in names), None)
        first = first or min(names, key=lambda name: (name.count("."), len(name), name))
        for name in names:
            canonical[name] = first
    return canonical


def signature_text(value, dtypes) -> str:
    """A signature without annotations, with defaults as the module's docstring says."""
    from tensorflow.python.util import tf_inspect

    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        spec = tf_inspect.getfullargspec(value)
        signature = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in spec.args]
        )
    parts = []
    empty = inspect.Parameter.empty
    positional_only = False
    for parameter in signature.parameters.values():
        kind = parameter.kind
        if positional_only and kind is not parameter.POSITIONAL_ONLY:
            parts.append("/")
            positional_only = False
        if kind is parameter.POSITIONAL_ONLY:
            positional_only = True
        if kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        default = "" if parameter.default is empty else "=" + default_text(parameter.default, dtypes)
        parts.append(star + parameter.name + default)
    if positional_only:
        parts.append("/")
    return f"({', '.join(parts)})"


def default_text(value, dtypes) -> str:
    import tensorflow as tf

    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return f"float('{value}')"
    if isinstance(value, enum.Enum):
        return f"tf.{type(value).__name__}.{value.name}"
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tf.DType):
        return dtypes[value.as_datatype_enum]
    if isinstance(value, tuple | list):
        inner = ", ".join(default_text(item, dtypes) for item in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict) and not value:
        return "{}"
    return f"<{type(value).__name__}>"


def op_detail(function) -> dict | None:
    """What a generated function does: its op, which parameter goes where, the fields of its result."""
    from tensorflow.python.util import tf_decorator

    inner = tf_decorator.unwrap(function)[1]
    if not inner.__module__.startswith("tensorflow.python.ops.gen_"):
        return None
    tree = ast.parse(textwrap.dedent(inspect.getsource(inner)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "_apply_op_helper":
            op = ast.literal_eval(node.args[0])
            pairs = [[k.arg, k.value.id] for k in node.keywords if isinstance(k.value, ast.Name) and k.arg != "name"]
            detail = {"op": op, "arguments": pairs}
            result = vars(sys.modules[inner.__module__]).get(f"_{op}Output")
            if result is not None:
                detail["outputs"] = list(result._fields)
            return detail
    return None


def is_deprecated(value) -> bool:
    from tensorflow.python.util import tf_decorator

    return any(d.decorator_name == "deprecated" for d in tf_decorator.unwrap(value)[0])


def members(name, cls, public, dtypes) -> list[tuple]:
    """Rows of the public methods and properties of a class."""
    rows = []
    for member in sorted(dir(cls)):
        if member.startswith("_"):
            continue
        value = inspect.getattr_static(cls, member)
        if isinstance(value, property) or not callable(getattr(cls, member, None)):
            rows.append((f"{name}.{member}", "property", "", {}, ""))
            continue
        try:
            rows.append((f"{name}.{member}", "method", "", {}, signature_text(getattr(cls, member), dtypes)))
        except (TypeError, ValueError):
            rows.append((f"{name}.{member}", "method", "", {}, ""))
    return rows


def rows_of(found) -> list[tuple]:
    import tensorflow as tf
    from google.protobuf.message import Message

    canonical = canonical_names(found)
    public = {id(value): canonical[name] for name, value in found.items() if isinstance(value, type)}
    dtypes = {v.as_datatype_enum: f"tf.{canonical[n]}" for n, v in found.items() if isinstance(v, tf.DType)}
    rows = []
    for name, value in found.items():
        if isinstance(value, types.ModuleType):
            rows.append((name, "module", "", {}, ""))
            continue
        other = canonical[name] if canonical[name] != name else ""
        detail: dict = {}
        signature = ""
        if isinstance(value, tf.DType):
            kind, detail = "dtype", {"value": value.as_datatype_enum}
        elif isinstance(value, type) and issubclass(value, enum.Enum):
            kind = "enum"
            detail["members"] = {m.name: m.value if isinstance(m.value, int | str) else None for m in value}
        elif isinstance(value, type) and issubclass(value, Message):
            kind, detail = "message", {"message": value.DESCRIPTOR.full_name}
        elif isinstance(value, type):
            kind = "class"
            try:
                signature = signature_text(value, dtypes)
            except (TypeError, ValueError):
                signature = ""
            detail["bases"] = [public[id(base)] for base in value.__mro__[1:] if id(base) in public]
            if not other:
                rows += members(name, value, public, dtypes)
        elif callable(value):
            kind = "function"
            signature = signature_text(value, dtypes)
            generated = op_detail(value)
            if generated is not None:
                kind, detail = "op", generated
            if is_deprecated(value):
                detail["deprecated"] = True
        else:
            kind = "constant"
            if isinstance(value, _PLAIN) and not isinstance(value, bytes):
                detail["value"] = value
        from tensorflow.python.util import tf_decorator

        dropped = getattr(tf_decorator.unwrap(value)[1], "_tf_deprecated_api_names", None) if callable(value) else None
        if dropped and name in dropped:
            detail["deprecated"] = True
        rows.append((name, kind, other, detail, signature))
    return sorted(rows)


def text_of(rows, version) -> str:
    lines = [f"tensorflow {version}"]
    for name, kind, canonical, detail, signature in rows:
        shown = json.dumps(detail, separators=(",", ":"), sort_keys=True) if detail else ""
        lines.append("\t".join((name, kind, canonical, shown, signature)))
    return "\n".join(lines) + "\n"


def main() -> int:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow as tf
        import tensorflow.compat.v1 as root  # pyright: ignore[reportMissingImports]  # a module made while importing
    except ImportError:
        print("export_tf1_api: TensorFlow is needed; run: pip install tensorflow", file=sys.stderr)
        return 2
    root.disable_v2_behavior()
    rows = rows_of(walk(root))
    text = text_of(rows, tf.version.VERSION)
    FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    kinds = collections.Counter(row[1] for row in rows)
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"wrote {len(rows)} names ({shown}): {FILE.name} {FILE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
