"""Files: reading and writing them whole, and the paths of meshes."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from jaxdyn._errors import FileAccessError, FileFormatError


def read_bytes(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Content of a regular file of bounded size."""
    try:
        path = Path(path)
        if path.exists() and not path.is_file():
            raise FileAccessError(f"{path}: is not a file; give the path of one")
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileAccessError(f"{os.fspath(path)}: cannot be read ({reason}); check the path") from None
    if len(content) > max_bytes:
        raise FileFormatError(
            f"{path}: is larger than the {max_bytes} bytes allowed; if you trust it, raise the limit by keyword"
        )
    return content


def write_bytes(path: str | os.PathLike[str], content: bytes):
    """Writes a file whole or not at all: to a new file beside it, which then takes its name."""
    path = Path(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException as error:  # an interrupt too leaves nothing behind
        draft.unlink(missing_ok=True)
        if not isinstance(error, OSError | ValueError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise FileAccessError(f"{path}: cannot be written ({reason}); check folder and permissions") from None


def paths_of(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Several paths, or one; a text taken for a sequence would be a list of letters, and `/` all there is."""
    return [Path(given)] if isinstance(given, str | os.PathLike) else [Path(x) for x in given]


def resolve_mesh(
    mesh: str,
    *,
    base: str | os.PathLike[str] | None = None,
    package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    allow_absolute: bool = False,
) -> Path:
    """The file that a mesh name of a robot description stands for, inside the folders that the caller allows.

    `package://name/rest` is looked for as `name/rest` in each of `package_dirs`, and as `rest` in one that is
    itself called `name`; a relative name is looked for in `base`, the folder of the description, and
    then in `package_dirs`. With all links resolved the file must lie in `base` or in one of `package_dirs`.
    `file://` and absolute paths are refused unless `allow_absolute`, and other schemes always. Nothing is opened.
    """
    package_dirs = paths_of(package_dirs)
    roots = [Path(os.path.realpath(x)) for x in ([] if base is None else [base]) + list(package_dirs)]
    scheme, found, rest = mesh.partition("://")
    if not mesh or "\0" in mesh:
        raise FileFormatError(f"mesh {mesh!r}: is not a path; name a file")
    if not found:
        scheme, rest = "", mesh
    if scheme == "file" or (not scheme and _is_absolute(rest)):
        return _absolute(mesh, rest, allow_absolute)
    if scheme in ("package", "model"):
        package, _, inside = rest.partition("/")
        folders = [Path(os.path.realpath(x)) for x in package_dirs]
        candidates = [x / package / inside for x in folders] + [x / inside for x in folders if x.name == package]
    elif not scheme:
        candidates = [root / rest for root in roots]
    else:
        raise FileFormatError(f"mesh {mesh!r}: {scheme}:// is not read; give a file in one of package_dirs")
    return _inside(mesh, candidates, roots)


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or bool(PureWindowsPath(path).anchor)


def _absolute(mesh: str, path: str, allowed: bool) -> Path:
    if not allowed:
        raise FileFormatError(
            f"mesh {mesh!r}: absolute paths are not followed; pass allow_absolute=True if you trust the file"
        )
    resolved = Path(os.path.realpath(path))
    if not resolved.is_file():
        raise FileAccessError(f"mesh {mesh!r}: there is no such file")
    return resolved


def _inside(mesh: str, candidates: list[Path], roots: list[Path]) -> Path:
    outside = False
    for candidate in candidates:
        resolved = Path(os.path.realpath(candidate))
        if not any(resolved.is_relative_to(root) for root in roots):
            outside = True
        elif _is_file(resolved):
            return resolved
    if outside:
        raise FileFormatError(
            f"mesh {mesh!r}: leads out of the allowed folders; add the folder that holds it to package_dirs"
        )
    where = ", ".join(str(root) for root in roots) or "no folder given"
    raise FileAccessError(f"mesh {mesh!r}: not found ({where}); add the folder that holds it to package_dirs")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name longer than the system allows, for one
        return False
