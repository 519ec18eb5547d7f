"""Reading of whole files, and the paths of meshes."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from jaxdyn._errors import FileAccessError, FileFormatError


def read_bytes(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """The content of a regular file of at most `max_bytes`."""
    try:
        path = Path(path)
        if path.exists() and not path.is_file():
            raise FileAccessError(f"{path}: is not a file; give the path of a file")
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


def as_paths(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """A list of paths from one or several. A string is one path, although it is a sequence of letters."""
    return [Path(given)] if isinstance(given, str | os.PathLike) else [Path(x) for x in given]


def resolve_mesh(
    mesh: str,
    *,
    base: str | os.PathLike[str] | None = None,
    package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    allow_absolute: bool = False,
) -> Path:
    """Resolves the name of a mesh in a robot description to a file inside the allowed folders.

    `package://name/rest` is searched as `name/rest` in each folder of `package_dirs`, and as `rest` in a folder that is
    itself called `name`. A relative name is searched in `base` and then in `package_dirs`. After resolution of symbolic
    links, the file must lie in `base` or in one of `package_dirs`. No file is opened.

    Arguments:

    * `mesh`: the name in the description.
    * `base`: the folder of the description.
    * `package_dirs`: folders that hold packages, or packages themselves.
    * `allow_absolute`: follow `file://` and absolute paths, which are refused otherwise.

    Returns the path of the file. Raises `FileFormatError` for a name that is refused, and `FileAccessError` for a file
    that does not exist.
    """
    package_dirs = as_paths(package_dirs)
    roots = [Path(os.path.realpath(x)) for x in ([] if base is None else [base]) + list(package_dirs)]
    scheme, separator, rest = mesh.partition("://")
    if not mesh or "\0" in mesh:
        raise FileFormatError(f"mesh {mesh!r}: is not a path; name a file")
    if not separator:
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
        raise FileFormatError(f"mesh {mesh!r}: {scheme}:// is not supported; give a file in one of package_dirs")
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
    is_outside = False
    for candidate in candidates:
        resolved = Path(os.path.realpath(candidate))
        if not any(resolved.is_relative_to(root) for root in roots):
            is_outside = True
        elif _is_file(resolved):
            return resolved
    if is_outside:
        raise FileFormatError(f"mesh {mesh!r}: lies outside the allowed folders; add its folder to package_dirs")
    where = ", ".join(str(root) for root in roots) or "no folder was given"
    raise FileAccessError(f"mesh {mesh!r}: not found ({where}); add its folder to package_dirs")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # for example a name longer than the system allows
        return False
