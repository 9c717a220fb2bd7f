"""Parameters, includes and repetition: what a spec says in short is written out before anything is checked.

Every value that is text may name parameters: `${units}` alone is the parameter's value with its type, `conv${i}` puts
it into text, `${2 * units + 1}` computes with +, -, *, /, //, % and parentheses. `$${` stands for `${`.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolkit.client.spec.parameters import Parameters
from toolkit.errors import GraphmillError, did_you_mean
from toolkit.formats import io
from toolkit.formats.schema.kinds import form_of
from toolkit.formats.schema.mistakes import Mistakes
from toolkit.formats.settings.tree import SpecError, YamlItem, parse

#: entries of one spec, written out
_MOST_ENTRIES = 200_000
#: files that include each other
_DEEPEST = 50
#: digits of what an expression makes
_LARGEST = 10**18

_EXPRESSION = re.compile(r"\$\$\{|\$\{([^{}]*)\}")

#: sections that are joined key by key, and those that are joined as lists
MAPPINGS = (
    "parameters", "inputs", "variables", "functions", "losses", "metrics", "optimizers", "datasets", "signatures",
    "collections",
)  # fmt: skip
LISTS = ("nodes", "devices")

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


class Expander:
    """Writes one spec out.

    Args:
        given: parameters from the command line.
        folders: where included files are looked for besides the folder of the file that includes them; files
            elsewhere are not read.
    """

    def __init__(self, given: Mapping[str, str], folders: tuple[Path, ...], mistakes: Mistakes):
        self.given = given
        self.folders = folders
        self.mistakes = mistakes
        self.entries = 0

    def expand(self, root: YamlItem, folder: Path) -> YamlItem:
        """The spec without includes, parameters and repetition.

        Args:
            folder: of the file.

        Raises:
            SpecError: what is wrong with it leaves nothing to go on with.
        """
        roots = (folder.resolve(), *(each.resolve() for each in self.folders))
        merged = self._with_includes(root, folder, roots, ())
        parameters = Parameters.read(merged.section().get("parameters"), self.given, self.mistakes)
        kept = {key: item for key, item in merged.section() if key not in ("parameters", "include")}
        return _Writer(self, roots).write(dataclasses.replace(merged, value=kept), parameters.values, folder, ())

    # -- includes ------------------------------------------------------------------------------------------

    def load(
        self, item: YamlItem, folder: Path, roots: tuple[Path, ...], chain: tuple[Path, ...]
    ) -> tuple[YamlItem, Path]:
        """The document of an included file and the folder it is in.

        Raises:
            SpecError: it cannot be read, lies elsewhere, or includes itself.
        """
        name = item.text()
        path = next((each / name for each in (folder, *self.folders) if (each / name).is_file()), folder / name)
        real = path.resolve()
        if not any(real.is_relative_to(root) for root in roots):
            raise item.error(f"'{name}' is not in the folder of the spec; name its folder with --include-dir")
        if real in chain:
            raise item.error(f"'{name}' includes itself")
        if len(chain) >= _DEEPEST:
            raise item.error(f"files include each other more than {_DEEPEST} deep")
        try:
            text = io.read_bytes(str(path)).decode()
        except UnicodeDecodeError:
            raise item.error(f"'{name}' is not UTF-8 text") from None
        except SpecError:
            raise
        except GraphmillError as error:
            raise item.error(str(error)) from None
        document = parse(text, str(path), columns=True)
        document.section()
        return document, real

    def _with_includes(
        self, root: YamlItem, folder: Path, roots: tuple[Path, ...], chain: tuple[Path, ...]
    ) -> YamlItem:
        section = root.section()
        found = section.get("include")
        if found is None:
            return root
        merged: dict[str, YamlItem] = {}
        for name in found.texts():
            document, real = self.load(name, folder, roots, chain)
            part = self._with_includes(document, real.parent, roots, (*chain, real))
            self._join(merged, part)
        self._join(merged, dataclasses.replace(root, value={k: v for k, v in section if k != "include"}))
        return dataclasses.replace(root, value=merged)

    def _join(self, merged: dict[str, YamlItem], part: YamlItem) -> None:
        for key, item in part.section():
            known = merged.get(key)
            forms = {form_of(item)} if known is None else {form_of(known), form_of(item)}
            if known is not None and key in LISTS and forms == {"list"}:
                merged[key] = dataclasses.replace(known, value=[*known.items(), *item.items()])
            elif known is not None and key in MAPPINGS and forms == {"mapping"}:
                merged[key] = dataclasses.replace(known, value=self._joined_keys(known, item, key == "parameters"))
            else:
                merged[key] = item

    def _joined_keys(self, known: YamlItem, item: YamlItem, is_replaced: bool) -> dict[str, YamlItem]:
        both = dict(known.section())
        for name, value in item.section():
            if name in both and not is_replaced:
                self.mistakes.add(value.error(f"'{name}' stands in {both[name].place} already"))
            both[name] = value
        return both


class _Writer:
    """Writes entries out: parameters in their places, included and repeated entries one after the other."""

    def __init__(self, expander: Expander, roots: tuple[Path, ...]):
        self.expander = expander
        self.roots = roots

    def write(self, item: YamlItem, values: Mapping[str, Any], folder: Path, chain: tuple[Path, ...]) -> YamlItem:
        """A value with everything in it written out."""
        if isinstance(item.value, str):
            return self._text(item, values)
        if isinstance(item.value, list):
            written: list[YamlItem] = []
            for each in item.items():
                written += self._entry(each, values, folder, chain)
            return dataclasses.replace(item, value=written)
        if isinstance(item.value, dict):
            kept = {
                self._key(key, each, values): self.write(each, values, folder, chain) for key, each in item.section()
            }
            return dataclasses.replace(item, value=kept)
        return item

    def _key(self, key: str, item: YamlItem, values: Mapping[str, Any]) -> str:
        if "${" not in key:
            return key
        return str(self._text(dataclasses.replace(item, value=key), values).value)

    def _entry(
        self, item: YamlItem, values: Mapping[str, Any], folder: Path, chain: tuple[Path, ...]
    ) -> list[YamlItem]:
        """An element of a list, or what it stands for."""
        self.expander.entries += 1
        if self.expander.entries > _MOST_ENTRIES:
            raise item.error(f"written out, the spec has more than {_MOST_ENTRIES:,} entries")
        if isinstance(item.value, dict):
            try:
                keys = item.section()
                if "repeat" in keys and "nodes" in keys:
                    return self._repeated(item, values, folder, chain)
                if "include" in keys:
                    return self._included(item, values, folder, chain)
            except SpecError as error:
                self.expander.mistakes.add(error)
                return []
        return [self.write(item, values, folder, chain)]

    def _repeated(
        self, item: YamlItem, values: Mapping[str, Any], folder: Path, chain: tuple[Path, ...]
    ) -> list[YamlItem]:
        """`{repeat: 3, as: i, nodes: [...]}` or `{repeat: [16, 32], as: units, nodes: [...]}`."""
        section = item.section(("repeat", "as", "nodes"))
        over = self.write(section["repeat"], values, folder, chain)
        each: list[Any] = [i.plain() for i in over.items()] if isinstance(over.value, list) else list(_count(over))
        name = section.text("as", "i")
        if not name.isidentifier():
            raise section["as"].error(f"'{name}' is no name of a parameter")
        written: list[YamlItem] = []
        for value in each:
            for entry in section["nodes"].items():
                written += self._entry(entry, {**values, name: value}, folder, chain)
        return written

    def _included(
        self, item: YamlItem, values: Mapping[str, Any], folder: Path, chain: tuple[Path, ...]
    ) -> list[YamlItem]:
        """`{include: block.yaml, set: {units: 3}}`: the nodes of a file that has nodes and parameters."""
        section = item.section(("include", "set"))
        document, real = self.expander.load(
            self.write(section["include"], values, folder, chain), folder, self.roots, chain
        )
        chosen = section.get("set")
        given = {} if chosen is None else dict(self.write(chosen, values, folder, chain).section())
        parts = document.section(("name", "description", "parameters", "nodes"))
        inner = Parameters.read(parts.get("parameters"), {}, self.expander.mistakes, given)
        written: list[YamlItem] = []
        for entry in parts["nodes"].items():
            written += self._entry(entry, inner.values, real.parent, (*chain, real))
        return written

    def _text(self, item: YamlItem, values: Mapping[str, Any]) -> YamlItem:
        text: str = item.value
        if "${" not in text:
            return item
        try:
            whole = _EXPRESSION.fullmatch(text)
            if whole is not None and whole[1] is not None:
                return _item(evaluate(whole[1], values, item), item)
            made = _EXPRESSION.sub(lambda m: "${" if m[1] is None else _shown(evaluate(m[1], values, item)), text)
            return dataclasses.replace(item, value=made)
        except SpecError as error:
            self.expander.mistakes.add(error)
            return dataclasses.replace(item, value=None)


def _count(item: YamlItem) -> range:
    count = item.integer(0)
    if count > _MOST_ENTRIES:
        raise item.error(f"expected at most {_MOST_ENTRIES:,}, found {count:,}")
    return range(count)


def _item(value: Any, at: YamlItem) -> YamlItem:
    """A plain value at the place of the text that stands for it."""
    if isinstance(value, list):
        value = [_item(each, at) for each in value]  # type: ignore[misc]
    elif isinstance(value, dict):
        value = {key: _item(each, at) for key, each in value.items()}  # type: ignore[misc]
    return dataclasses.replace(at, value=value)


def _shown(value: object) -> str:
    """A value as YAML writes it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def evaluate(text: str, values: Mapping[str, Any], item: YamlItem) -> Any:
    """The value of an expression over parameters.

    Raises:
        SpecError: it is none, names a parameter that there is not, or does not fit its values.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise item.error(f"'{text}' is no expression of parameters: names, numbers, + - * / // % and ( )") from None
    try:
        return _value(tree.body, values, item)
    except ArithmeticError as error:
        raise item.error(f"'{text}': {error}") from None
    except TypeError:
        raise item.error(f"'{text}': the values do not go together") from None


def _value(node: ast.AST, values: Mapping[str, Any], item: YamlItem) -> Any:
    match node:
        case ast.Name(id=name):
            if name not in values:
                raise item.error(f"there is no parameter '{name}'{did_you_mean(name, values)}")
            return values[name]
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, values, item)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            a, b = _value(left, values, item), _value(right, values, item)
            if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in (a, b)):
                raise TypeError
            made = _OPERATORS[type(op)](a, b)
            if abs(made) > _LARGEST:
                raise item.error(f"'{ast.unparse(node)}' is larger than {_LARGEST:.0e}")
            return made
        case _:
            raise item.error(f"'{ast.unparse(node)}': expressions are names, numbers, + - * / // % and ( )")
