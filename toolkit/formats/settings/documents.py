"""JSON and YAML through one door each: whatever the text is, a value or one line that says where it is wrong.

Depth, aliases and digits are bounded (`toolkit.formats.bounds`); no tag makes anything but plain data.
"""

# PyYAML has no types for its parsers
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import functools
import json
import re
from typing import Any, cast

from toolkit.errors import FormatError
from toolkit.formats import bounds

#: characters of what a parser says, which may quote the file
_MOST = 300
#: what may be half of a character
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_TOO_DEEP = f"it is nested more than {bounds.NESTING} levels deep"
#: what newer releases of libyaml say where they meet many brackets at once, before we have counted them
_LIBRARY_TOO_DEEP = "exceeded maximum nesting depth"

# -- JSON ------------------------------------------------------------------------------------------------


def load_json(data: str | bytes, file: str | None = None, *, unique: bool = False) -> Any:
    """The value of a JSON text.

    Args:
        file: for errors.
        unique: refuse objects that have a key twice.

    Raises:
        FormatError: not UTF-8, not JSON (with line and column), nested too deeply, a number of too many digits.
    """
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        value = json.loads(text, object_pairs_hook=_once if unique else None)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise FormatError("JSON with half of a surrogate pair (\\uD800 to \\uDFFF)", file=file) from None
    except UnicodeDecodeError:
        raise FormatError("JSON that is not UTF-8", file=file) from None
    except json.JSONDecodeError as error:
        where = f"{file}:{error.lineno}:{error.colno}" if file else None
        raise FormatError(f"not JSON: {error.msg}", file=where) from None
    except ValueError:  # what int() says of too many digits
        raise FormatError(f"not JSON: a number has more than {bounds.DIGITS:,} digits", file=file) from None
    except RecursionError:
        raise FormatError("the JSON is nested too deeply", file=file) from None
    except FormatError as error:
        raise error.at(file=file) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise FormatError(f"the key '{key}' is given twice")
            seen.add(key)
    return found


def brief(error: object) -> str:
    """What a parser says, as one line: without the names of our schemas' package, and no longer than people read."""
    text = " ".join(str(error).replace("graphmill.", "").split()).rstrip(".")
    return text if len(text) <= _MOST else f"{text[: _MOST // 2]} ... {text[-_MOST // 2 :]}"


# -- YAML ------------------------------------------------------------------------------------------------


def load_yaml(data: str | bytes, file: str | None = None) -> Any:
    """The value of a YAML document; None of an empty one.

    Raises:
        FormatError: see `Yaml`.
    """
    document = Yaml(data, file)
    return None if document.root is None else document.construct(document.root)


class Yaml:
    """A YAML document as nodes, which know their lines, and their values.

    Args:
        columns: errors tell the column too.

    Attributes:
        root: PyYAML's node of the document, or None.

    Raises:
        FormatError: not UTF-8 text, not YAML, nested too deeply, aliases that stand for too much or contain
            themselves, or a value that its type does not have; with the line.
    """

    def __init__(self, data: str | bytes, file: str | None = None, *, columns: bool = False):
        import yaml

        self.file = file
        self._columns = columns
        text = _text(data, file)
        self._last_line = max(1, len(text.rstrip().splitlines()))
        try:
            self._loader: Any = _loader_class()(text)
            self.root: Any = self._loader.get_single_node()
        except yaml.YAMLError as error:
            raise self._error(error) from None
        if self.root is not None and self._loader.aliases:
            self._check_aliases(max(bounds.YAML_NODES, bounds.YAML_RATIO * len(text)))

    def construct(self, node: Any) -> Any:
        """The value of a node and everything in it."""
        import yaml

        try:
            return self._loader.construct_document(node)
        except yaml.YAMLError as error:
            raise self._error(error) from None

    def merge(self, node: Any) -> None:
        """Put what `<<` names into a mapping: merged keys first, so that its own win."""
        import yaml

        try:
            self._loader.flatten_mapping(node)
        except yaml.YAMLError as error:
            raise self._error(error) from None

    def _error(self, error: Any) -> FormatError:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = " ".join(str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).split())
        if problem == _LIBRARY_TOO_DEEP:
            problem = _TOO_DEEP
        where = self.file
        if mark is not None and self.file is not None:
            where = f"{self.file}:{min(mark.line + 1, self._last_line)}"  # what is missing at the end is past it
            if self._columns and mark.line < self._last_line:
                where += f":{mark.column + 1}"
        return FormatError(f"not valid YAML: {problem}", file=where)

    def _check_aliases(self, limit: int) -> None:
        """Count the nodes that there would be if every alias were written out."""
        sizes: dict[int, int] = {}
        open_: set[int] = set()
        stack: list[tuple[Any, bool]] = [(self.root, False)]
        while stack:
            node, is_done = stack.pop()
            if id(node) in sizes:
                continue
            children = _children(node)
            if is_done:
                open_.discard(id(node))
                sizes[id(node)] = size = 1 + sum(sizes[id(child)] for child in children)
                if size > limit:
                    raise self._at(node, f"the aliases stand for more than {limit:,} values")
                continue
            open_.add(id(node))
            stack.append((node, True))
            for child in children:
                if id(child) in open_:
                    raise self._at(child, "an alias contains itself")
                stack.append((child, False))

    def _at(self, node: Any, message: str) -> FormatError:
        where = f"{self.file}:{node.start_mark.line + 1}" if self.file is not None else None
        return FormatError(message, file=where)


def _children(node: Any) -> list[Any]:
    if node.id == "mapping":
        return [part for pair in node.value for part in pair]
    return cast("list[Any]", node.value) if node.id == "sequence" else []


def _text(data: str | bytes, file: str | None) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"{file}:{data.count(10, 0, error.start) + 1}" if file else None
        raise FormatError("not YAML: it is not UTF-8 text", file=where) from None


@functools.cache
def _loader_class() -> Any:
    """PyYAML's safe loader with bounds; events come from libyaml where it is built in."""
    import yaml
    from yaml.composer import Composer, ComposerError
    from yaml.constructor import ConstructorError, SafeConstructor
    from yaml.resolver import Resolver

    scalar_words = {"tag:yaml.org,2002:int": "a whole number", "tag:yaml.org,2002:float": "a number"}
    parsers: Any
    if hasattr(yaml, "cyaml"):
        parsers = (yaml.cyaml.CParser,)
    else:
        from yaml.parser import Parser
        from yaml.reader import Reader
        from yaml.scanner import Scanner

        parsers = (Reader, Scanner, Parser)

    class Loader(Composer, *parsers, SafeConstructor, Resolver):  # type: ignore[misc]
        """Composes in Python, where depth can be counted: libyaml's own composer overruns the stack."""

        def __init__(self, text: str):
            parsers[0].__init__(self, text)
            for part in (*parsers[1:], Composer, SafeConstructor, Resolver):
                part.__init__(self)
            self.depth = 0
            self.aliases = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                self.aliases += 1
            self.depth += 1
            if self.depth > bounds.NESTING:
                raise ComposerError(None, None, _TOO_DEEP, self.peek_event().start_mark)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            if node.tag in scalar_words and len(node.value) > bounds.DIGITS:
                raise ConstructorError(
                    None, None, f"a number has more than {bounds.DIGITS:,} characters", node.start_mark
                )
            try:
                return super().construct_object(node, deep)
            except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError):
                kind = scalar_words.get(node.tag, node.tag.removeprefix("tag:yaml.org,2002:"))
                shown = f"'{node.value[:40]}'" if isinstance(node.value, str) else "this"
                raise ConstructorError(None, None, f"{shown} is not {kind}", node.start_mark) from None

    return Loader
