"""Atomic writing of whole files: to a draft beside the file, which is then renamed.

A draft of `run.csv` is called `.run.csv.` and twelve hexadecimal digits. Its writer holds a lock on it (`flock`), which
the system releases when the process dies, however it dies. The next write to the same name removes the drafts that
nobody holds. Systems without `flock` keep the draft of a writer that was killed.
"""

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import BinaryIO

from jaxdyn._errors import FileAccessError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def write_bytes(path: str | os.PathLike[str], content: bytes):
    """Writes a file completely or not at all, and removes the drafts of writers to the same name that were killed."""
    path = Path(path)
    draft = None
    try:
        _remove_stale_drafts(path)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        with _create_locked(draft) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:  # Windows renames closed files only
                file.close()
            draft.replace(path)
    except BaseException as error:  # an interrupt too must leave nothing behind
        if draft is not None:
            with contextlib.suppress(OSError, ValueError):  # never created: a name that the system refuses
                draft.unlink(missing_ok=True)
        if not isinstance(error, OSError | ValueError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise FileAccessError(f"{path}: cannot be written ({reason}); check the folder and its permissions") from None


def _create_locked(draft: Path) -> BinaryIO:
    """A new file that is locked until it is closed."""
    while True:
        file = os.fdopen(os.open(draft, _CREATE, 0o666), "wb")
        if not _lock(file.fileno(), wait=True) or os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another writer took the draft for a stale one before it was locked


def _lock(handle: int, *, wait: bool) -> bool:
    """Locks an open file until it is closed; False if another holds it, or if the file system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_stale_drafts(path: Path):
    """Removes the drafts of a file whose writers are dead, as their locks are free."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}")
    with contextlib.suppress(OSError):  # a folder that cannot be listed
        for draft in [x for x in path.parent.iterdir() if pattern.fullmatch(x.name)]:
            _remove_unlocked(draft)


def _remove_unlocked(draft: Path):
    with contextlib.suppress(OSError):  # renamed meanwhile, or of another user
        handle = os.open(draft, _OPEN)
        try:
            if _lock(handle, wait=False):
                draft.unlink()
        finally:
            os.close(handle)
