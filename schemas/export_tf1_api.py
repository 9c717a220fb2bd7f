# TensorFlow, which this script reads the names from, has no types.
# pyright: basic
"""Export the public names of tensorflow.compat.v1 of an installed TensorFlow to schemas/tf1_api.txt.xz.

    python -m schemas.export_tf1_api

The file is text, one name a line, in order of name, with five columns between tabs:

name       dotted, without "tf.": nn.relu, train.Saver, train.Saver.save (a member of a class)
kind       module, function, op (a function that only adds one op), class, message (a protobuf class),
           enum, dtype, constant; of members: method, property
canonical  the name that TensorFlow calls the same thing by first, where that is another one
detail     JSON, or empty. Of ops: "op", the op; "arguments", pairs of an argument of the op and a parameter of the
           function; "fixed", arguments with a value of their own; "outputs", the fields of the named tuple that is
           returned; "scope", the name scope that is opened where no name is given; "converts", what is made a tensor
           in it: parameter, name of the constant, the parameter whose type it gets. "value" of plain constants;
           "members" of enums, name to value; "message": full name; "bases": public names of base classes;
           "deprecated": true where TensorFlow warns
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
    """What a function that is one op does; None for others.

    TensorFlow generates some of these; others are written by hand but only convert their arguments and hand them on.
    """
    from tensorflow.python.util import tf_decorator

    inner = tf_decorator.unwrap(function)[1]
    if inner.__module__.startswith("tensorflow.python.ops.gen_"):
        return _generated(inner)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inner))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    return _handed_on(tree, inner) if isinstance(tree, ast.FunctionDef) else None


def _generated(inner) -> dict | None:
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


def _handed_on(tree: ast.FunctionDef, inner) -> dict | None:
    """The detail of a body that is: a name scope, conversions to tensors, one call of a generated function."""
    body = [s for s in tree.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    detail: dict = {}
    named = "name"
    if len(body) == 1 and isinstance(body[0], ast.With) and len(body[0].items) == 1:
        opened = body[0].items[0]
        call = opened.context_expr
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "ops.name_scope" and len(call.args) == 3):
            return None
        if not (isinstance(call.args[1], ast.Constant) and isinstance(opened.optional_vars, ast.Name)):
            return None
        if not isinstance(call.args[2], ast.List) or not all(isinstance(v, ast.Name) for v in call.args[2].elts):
            return None
        detail["scope"], named = call.args[1].value, opened.optional_vars.id
        body = body[0].body
    converts = []
    for statement in body[:-1]:
        found = _conversion(statement)
        if found is None:
            return None
        converts.append(found)
    last = body[-1] if body else None
    if not (isinstance(last, ast.Return) and isinstance(last.value, ast.Call)):
        return None
    call = last.value
    target = ast.unparse(call.func)
    if not target.startswith("gen_") or target.count(".") != 1:
        return None
    module, short = target.split(".")
    generated = getattr(inner.__globals__.get(module), short, None)
    from tensorflow.python.util import tf_decorator

    if generated is None or not tf_decorator.unwrap(generated)[1].__module__.startswith("tensorflow.python.ops.gen_"):
        return None
    inside = _generated(tf_decorator.unwrap(generated)[1])
    if inside is None:
        return None
    order = list(inspect.signature(generated).parameters)
    passed = dict(zip(order, call.args, strict=False)) | {k.arg: k.value for k in call.keywords}
    if "name" not in passed or not isinstance(passed["name"], ast.Name) or passed["name"].id != named:
        return None
    own = set(inspect.signature(inner).parameters)
    arguments, fixed = [], {}
    for argument, parameter in inside["arguments"]:
        value = passed.get(parameter)
        if value is None:
            continue  # the default of the op
        if isinstance(value, ast.Name) and value.id in own:
            arguments.append([argument, value.id])
        elif isinstance(value, ast.Constant):
            fixed[argument] = value.value
        else:
            return None
    if {name for _, name in arguments} | {"name"} != own:
        return None
    detail |= {"op": inside["op"], "arguments": arguments}
    if "outputs" in inside:
        detail["outputs"] = inside["outputs"]
    if fixed:
        detail["fixed"] = fixed
    if converts:
        detail["converts"] = converts
    return detail


def _conversion(statement: ast.stmt) -> list | None:
    """[parameter, name of the constant, the parameter whose type it gets or null] of x = convert_to_tensor(x, ...)."""
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        return None
    call, name = statement.value, statement.targets[0].id
    if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "ops.convert_to_tensor" and len(call.args) == 1):
        return None
    if not (isinstance(call.args[0], ast.Name) and call.args[0].id == name):
        return None
    given = {k.arg: k.value for k in call.keywords}
    constant, like = given.pop("name", None), given.pop("dtype", None)
    if given or not (constant is None or isinstance(constant, ast.Constant)):
        return None
    text = ast.unparse(like) if like is not None else ""
    if like is not None and not text.endswith((".dtype", ".dtype.base_dtype")):
        return None
    return [name, None if constant is None else constant.value, text.split(".")[0] or None]


def is_deprecated(value) -> bool:
    """Whether TensorFlow warns about a function as a whole, not about one of its arguments."""
    while hasattr(value, "_tf_decorator"):
        names = getattr(getattr(value, "__code__", None), "co_freevars", ())
        if value._tf_decorator.decorator_name == "deprecated" and "instructions" in names and "ok_vals" not in names:
            return not any("arg" in name or "ok_val" in name for name in names)
        value = value._tf_decorator.decorated_target
    return False


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
