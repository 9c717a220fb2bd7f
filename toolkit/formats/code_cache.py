"""Machine code that processes of one user leave each other on disk.

What is loaded from here is run, so it must be what a process of this user has written. An entry is sealed: a keyed hash
over its name and bytes, with a key that lies in another folder and that only the user may read. Whoever can write into
the cache alone (it is on a shared disk, it came out of an archive) can neither make an entry nor give one the name of
another; what does not fit its seal is taken for damaged and made anew. Folder and key are used only if they are the
user's and nobody else may write there, and no link is followed. Who may write the user's other files needs no cache to
run code as the user.

Entries are named by a hash of what the code was made of, so there is nothing to invalidate. They are written beside
their name and moved there whole: of two processes that write one, the second replaces the first by the same. The oldest
go when there are too many bytes. Whatever goes wrong with the disk costs the time of compiling, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import time
from pathlib import Path

from toolkit.errors import UsageError

#: "off", or a folder for the entries
VARIABLE = "GRAPHMILL_CACHE"
#: bytes of all entries; a large network has some hundred thousand
MOST_BYTES = 256 << 20
#: of one entry: what is larger is no function of ours
MOST_ENTRY = 16 << 20
#: entries that a process writes between two looks at how much there is
_LOOK_EACH = 64
#: seconds after which an entry that is read counts as new again, and what a process left half written goes
_OLD = 3600.0
_KEY_BYTES = 32
_SEAL_BYTES = 32
_MAGIC = b"graphmill code 1\n"


_is_on = True


def without_cache() -> None:
    """From now on nothing is looked for on disk by this process, and nothing is kept there."""
    global _is_on
    _is_on = False


def is_cached() -> bool:
    """Whether code is looked for and kept on disk, where there is a place for it."""
    return _is_on


class CodeCache:
    """A folder of entries, by name.

    Args:
        folder: of the entries; made where there is none.
        key_folder: of the key, likewise.
    """

    def __init__(self, folder: Path, key_folder: Path):
        self._folder, self._key_folder = folder, key_folder
        self._written = 0
        self._key: bytes | None = None
        self._is_usable: bool | None = None

    @staticmethod
    def name_of(*parts: str) -> str:
        """The name of what is made of these texts."""
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode("utf8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()

    def read(self, name: str) -> bytes | None:
        """The entry; None where there is none that this user has written."""
        key = self._ready()
        if key is None:
            return None
        path = self._folder / name
        try:
            data, age = _read_own(path, MOST_ENTRY)
        except OSError:
            return None
        head = len(_MAGIC) + _SEAL_BYTES
        seal, code = data[len(_MAGIC) : head], data[head:]
        if not data.startswith(_MAGIC) or not hmac.compare_digest(seal, _seal(key, name, code)):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        if age > _OLD:
            with contextlib.suppress(OSError):
                os.utime(path, follow_symlinks=False)
        return code

    def write(self, name: str, code: bytes) -> None:
        """Keep an entry, if that is possible."""
        key = self._ready()
        if key is None or len(code) > MOST_ENTRY - len(_MAGIC) - _SEAL_BYTES:
            return
        with contextlib.suppress(OSError):
            _write_own(self._folder / name, _MAGIC + _seal(key, name, code) + code)
            if self._written % _LOOK_EACH == 0:
                self._drop_oldest()
            self._written += 1

    def _ready(self) -> bytes | None:
        """The key; None where the cache cannot be used."""
        if self._is_usable is None:
            try:
                _own_folder(self._folder)
                _own_folder(self._key_folder)
                self._key = _key_in(self._key_folder)
            except OSError:
                self._key = None
            self._is_usable = self._key is not None
        return self._key

    def _drop_oldest(self) -> None:
        found: list[tuple[float, int, str]] = []
        now = time.time()
        with os.scandir(self._folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if entry.name.endswith(".part") and now - status.st_mtime > _OLD:
                    Path(entry.path).unlink()
                elif stat.S_ISREG(status.st_mode):
                    found.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= MOST_BYTES:
                break
            with contextlib.suppress(FileNotFoundError):  # another process drops the same
                Path(path).unlink()
            total -= size


def _seal(key: bytes, name: str, code: bytes) -> bytes:
    return hmac.digest(key, name.encode() + b"\0" + code, "sha256")


def _own_folder(folder: Path) -> None:
    """Make a folder that is the user's alone, or make sure that it is.

    Raises:
        OSError: it cannot be made, is a link, is somebody else's, or others may write there.
    """
    with contextlib.suppress(FileExistsError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise PermissionError(f"{folder} is not this user's alone")


def _key_in(folder: Path) -> bytes:
    """The key, made where there is none; of processes that make one at the same time all have the first.

    Raises:
        OSError: it can be neither read nor made, or others may read it.
    """
    path = folder / "cache.key"
    try:
        return _checked_key(path)
    except FileNotFoundError:
        pass
    part = folder / f"cache.key.{secrets.token_hex(8)}.part"
    _create(part, secrets.token_bytes(_KEY_BYTES))
    try:
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink()
    return _checked_key(path)


def _checked_key(path: Path) -> bytes:
    key, _ = _read_own(path, _KEY_BYTES, private=True)
    if len(key) != _KEY_BYTES:
        raise OSError(f"{path} is no key")
    return key


def _read_own(path: Path, most: int, *, private: bool = False) -> tuple[bytes, float]:
    """The bytes of a file of this user's, and for how many seconds it has been as it is.

    Raises:
        OSError: there is none, it is a link or no file, somebody else's, too large, or others may write (or read) it.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        others = 0o077 if private else 0o022
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & others:
            raise PermissionError(f"{path} is not this user's alone")
        if status.st_size > most:
            raise OSError(f"{path} is larger than anything that is written here")
        return file.read(most), time.time() - status.st_mtime


def _write_own(path: Path, data: bytes) -> None:
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        _create(part, data)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def _create(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def _base(variable: str, default: str) -> Path | None:
    """A folder of the XDG base directories; None where there is no home."""
    named = os.environ.get(variable, "")
    if named.startswith(os.sep):
        return Path(named)
    try:
        return Path.home() / default
    except RuntimeError:
        return None


def cache_of_user() -> CodeCache | None:
    """The cache where the environment says that it is; None where it is switched off, or there is no place for it.

    Raises:
        UsageError: GRAPHMILL_CACHE names no absolute path.
    """
    folders = cache_folders()
    return CodeCache(*folders) if folders else None


def cache_folders() -> tuple[Path, Path] | tuple[()]:
    """The folders of entries and of the key; nothing where there is no cache.

    Raises:
        UsageError: GRAPHMILL_CACHE names no absolute path.
    """
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "off" or not hasattr(os, "geteuid"):
        return ()
    if chosen and not chosen.startswith(os.sep):
        raise UsageError(f"{VARIABLE} is '{chosen}'; expected an absolute path, or off")
    caches, states = _base("XDG_CACHE_HOME", ".cache"), _base("XDG_STATE_HOME", ".local/state")
    if states is None or (caches is None and not chosen):
        return ()
    folder = Path(chosen) if chosen else Path(str(caches)) / "graphmill" / "code"
    return folder, states / "graphmill"
