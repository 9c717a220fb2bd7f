# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.flags and tf.app.flags: options of a program, as absl's flags work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_TRUE = frozenset({"true", "t", "1", "yes", "y"})
_FALSE = frozenset({"false", "f", "0", "no", "n"})


class FlagError(Exception):
    """An option that is not known, or a value that does not fit."""


class _Flag:
    def __init__(
        self, name: str, default: Any, help: str | None, parse: Callable[[str], Any], is_bool: bool = False,
        is_list: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.default, self.help, self.parse, self.is_bool = name, default, help, parse, is_bool
        self.value = default
        self.is_list = is_list  # given several times, it holds all of the values
        self.present = False

    def take(self, text: str) -> None:
        """A value from the command line."""
        value = self.parse(text)
        self.value = ([*self.value, value] if self.present else [value]) if self.is_list else value
        self.present = True


class FlagValues:
    """The options by name: `FLAGS.batch_size`."""

    def __init__(self) -> None:
        self.__dict__["_flags"] = {}
        self.__dict__["_parsed"] = False
        self.__dict__["_required"] = []

    def _add(self, flag: _Flag) -> None:
        if flag.name in self._flags:
            raise FlagError(f"The flag '{flag.name}' is defined twice.")
        self._flags[flag.name] = flag

    def __getattr__(self, name: str) -> Any:
        if name == "__flags":  # not declared anywhere, but what programs print their settings from
            return self.__dict__["_flags"]
        if name.startswith("__"):
            raise AttributeError(name)
        flag = self.__dict__["_flags"].get(name)
        if flag is None:
            raise AttributeError(name)
        if not self.__dict__["_parsed"]:
            import sys

            self(list(sys.argv), known_only=True)
        return flag.value

    def __setattr__(self, name: str, value: Any) -> None:
        """A value for an option; of a name that is none, too, as releases up to 1.4 took whatever a program kept there
        (absl's flags, which came after, refuse it)."""
        if name not in self._flags:
            self._add(_Flag(name, value, "", str))
        self._flags[name].value = value

    def __delattr__(self, name: str) -> None:
        self._flags.pop(name, None)

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    def __iter__(self) -> Any:
        return iter(self._flags)

    def __getitem__(self, name: str) -> Any:
        return self._flags[name]

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Take the options out of the arguments; returns the program's name and what is left.

        Raises:
            FlagError: an option is unknown (unless `known_only`), its value does not fit, or a required one is missing.
        """
        self.__dict__["_parsed"] = True
        left: list[str] = list(argv[:1])
        rest = list(argv[1:])
        while rest:
            argument = rest.pop(0)
            if argument == "--":
                left += rest
                break
            if not argument.startswith("-") or argument == "-":
                left.append(argument)
                continue
            name, equals, value = argument.lstrip("-").partition("=")
            flag = self._flags.get(name)
            if flag is None and name.startswith("no") and name[2:] in self._flags and self._flags[name[2:]].is_bool:
                self._flags[name[2:]].value = False
                continue
            if flag is None and name in ("help", "h", "helpfull"):
                self._show_help(argv[0] if argv else "")
                raise SystemExit(1)
            if flag is None:
                if not known_only:
                    raise FlagError(f"Unknown command line flag '{name}'")
                left.append(argument)
                continue
            if flag.is_bool and not equals:
                flag.value = True
            else:
                if not equals:
                    if not rest:
                        raise FlagError(f"Missing value for flag --{name}")
                    value = rest.pop(0)
                flag.take(value)
            flag.present = True
        for name in self._required:
            if name in self._flags and self._flags[name].value is None:
                raise FlagError(f"flag --{name} is required and was not given: write --{name}=VALUE")
        return left

    def _show_help(self, program: str) -> None:
        print(f"usage: {program} [flags]")
        for flag in self._flags.values():
            print(f"  --{flag.name}: {flag.help or ''}\n    (default: {flag.default!r})")

    def flag_values_dict(self) -> dict[str, Any]:
        return {name: flag.value for name, flag in self._flags.items()}

    def mark_as_parsed(self) -> None:
        self.__dict__["_parsed"] = True

    def is_parsed(self) -> bool:
        return self.__dict__["_parsed"]


FLAGS = FlagValues()


def begin_anew() -> FlagValues:
    """FLAGS without an option: `tf.flags._FlagValues()`, with which tests of 1.4 and before forget theirs."""
    FLAGS.__init__()
    return FLAGS


def _define(
    name: str, default: Any, help: str | None, parse: Callable[[str], Any], is_bool: bool = False,
    flag_values: FlagValues = FLAGS, is_list: bool = False,
) -> None:  # fmt: skip
    if isinstance(default, str) and not is_list:  # "1e-4" as the default of a number
        default = parse(default)
    flag_values._add(_Flag(name, default, help, parse, is_bool, is_list))  # pyright: ignore[reportPrivateUsage]


def _number(kind: type, name: str, lower_bound: Any = None, upper_bound: Any = None) -> Callable[[Any], Any]:
    """Reads a number between the bounds, both of which may be reached."""

    def parse(text: Any) -> Any:
        try:
            number = kind(text)
        except ValueError:
            raise FlagError(f"flag --{name}={text}: expected {kind.__name__}") from None
        if lower_bound is not None and number < lower_bound:
            raise FlagError(f"flag --{name}={text}: expected at least {lower_bound}")
        if upper_bound is not None and number > upper_bound:
            raise FlagError(f"flag --{name}={text}: expected at most {upper_bound}")
        return number

    return parse


def _choice(name: str, values: Any) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            raise FlagError(f"flag --{name}={text}: expected one of {', '.join(values)}")
        return text

    return parse


def _define_several(name: str, default: Any, help: Any, parse: Callable[[Any], Any], flag_values: FlagValues) -> None:
    """An option that may be given several times; a default of one value is a list of it."""
    values = default if default is None or isinstance(default, list | tuple) else [default]
    _define(name, None if values is None else [parse(v) for v in values], help, parse, False, flag_values, True)


def _bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise FlagError(f"'{text}' is neither true nor false")


def DEFINE_string(  # noqa: N802
    name: str, default: Any = None, help: Any = None, flag_values: FlagValues = FLAGS, **args: Any
) -> None:
    _define(args.get("flag_name", name), default, help, str, False, flag_values)


def DEFINE_integer(  # noqa: N802
    name: str, default: Any = None, help: Any = None, lower_bound: int | None = None, upper_bound: int | None = None,
    flag_values: FlagValues = FLAGS, **args: Any,
) -> None:  # fmt: skip
    _define(name, default, help, _number(int, name, lower_bound, upper_bound), False, flag_values)


def DEFINE_float(  # noqa: N802
    name: str, default: Any = None, help: Any = None, lower_bound: float | None = None,
    upper_bound: float | None = None, flag_values: FlagValues = FLAGS, **args: Any,
) -> None:  # fmt: skip
    value = float(default) if isinstance(default, int) else default
    _define(name, value, help, _number(float, name, lower_bound, upper_bound), False, flag_values)


def DEFINE_boolean(  # noqa: N802
    name: str, default: Any = None, help: Any = None, flag_values: FlagValues = FLAGS, **args: Any
) -> None:
    _define(name, default, help, _bool, True, flag_values)


DEFINE_bool = DEFINE_boolean


def DEFINE_list(  # noqa: N802
    name: str, default: Any = None, help: Any = None, flag_values: FlagValues = FLAGS, **args: Any
) -> None:
    value = default.split(",") if isinstance(default, str) else default
    _define(name, value, help, lambda text: text.split(",") if text else [], False, flag_values)


def DEFINE_enum(  # noqa: N802
    name: str, default: Any = None, enum_values: Any = (), help: Any = None, flag_values: FlagValues = FLAGS,
    **args: Any,
) -> None:  # fmt: skip
    _define(name, default, help, _choice(name, enum_values), False, flag_values)


def DEFINE_multi_string(  # noqa: N802
    name: str, default: Any = None, help: Any = None, flag_values: FlagValues = FLAGS, **args: Any
) -> None:
    _define_several(name, default, help, str, flag_values)


def DEFINE_multi_integer(  # noqa: N802
    name: str, default: Any = None, help: Any = None, lower_bound: int | None = None, upper_bound: int | None = None,
    flag_values: FlagValues = FLAGS, **args: Any,
) -> None:  # fmt: skip
    _define_several(name, default, help, _number(int, name, lower_bound, upper_bound), flag_values)


def DEFINE_multi_float(  # noqa: N802
    name: str, default: Any = None, help: Any = None, lower_bound: float | None = None,
    upper_bound: float | None = None, flag_values: FlagValues = FLAGS, **args: Any,
) -> None:  # fmt: skip
    _define_several(name, default, help, _number(float, name, lower_bound, upper_bound), flag_values)


def DEFINE_multi_enum(  # noqa: N802
    name: str, default: Any = None, enum_values: Any = (), help: Any = None, flag_values: FlagValues = FLAGS,
    **args: Any,
) -> None:  # fmt: skip
    _define_several(name, default, help, _choice(name, enum_values), flag_values)


def mark_flag_as_required(flag_name: str, flag_values: FlagValues = FLAGS) -> None:
    """Reading the command line fails where this option has no value."""
    mark_flags_as_required([flag_name], flag_values)


def mark_flags_as_required(flag_names: Any, flag_values: FlagValues = FLAGS) -> None:
    """Reading the command line fails where one of these options has no value."""
    flag_values._required.extend(flag_names)
