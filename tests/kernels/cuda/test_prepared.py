"""What is made once of arrays that stay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from toolkit.kernels.cuda.prepared import Prepared, changed, noted

_DEVICE = SimpleNamespace(is_recording=False)


def _array() -> Any:
    return SimpleNamespace(watch=None)


def _of(prepared: Prepared, *arrays: Any) -> Any:
    return prepared.of(_DEVICE, arrays, object)


def test_others_beside_the_same_first_array_are_kept_apart() -> None:
    """Of two users that have an array in common neither frees what the other has, whose address may be recorded."""
    first, second, third = (_array() for _ in range(3))
    one, other = Prepared("beside"), Prepared("beside")
    found = _of(one, first, second)
    assert _of(other, first, third) is not found
    with noted() as watches:
        assert _of(one, first, second) is found
        assert _of(other, first, second) is found  # whoever asks
    assert set(watches) == {first.watch, second.watch}


def test_what_is_made_of_a_changed_array_is_made_anew_and_not_kept() -> None:
    first, second = _array(), _array()
    prepared = Prepared("beside")
    found = _of(prepared, first, second)
    changed(second)
    again = _of(prepared, first, second)
    assert again is not found and list(first.watch.made.values()) == [again]
    changed(first)
    assert _of(prepared, first, second) is not again


def test_what_is_changed_again_and_again_is_not_kept() -> None:
    first, second = _array(), _array()
    prepared = Prepared("beside")
    for _ in range(5):
        _of(prepared, first, second)
        changed(second)
    found = _of(prepared, first, second)
    assert _of(prepared, first, second) is not found and not first.watch.made
