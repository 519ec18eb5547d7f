"""Compilation by MuJoCo, restricted to allowed files.

The compiler opens any file that a model names. Therefore every attribute that can name a file is first looked up in
all places that the compiler would search; a model is refused if such a file exists outside the allowed folders.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxdyn._errors import FileFormatError
from jaxdyn.io.files import ParsingLimits, read_bytes
from jaxdyn.io.mjcf._text import Text, check_total_size, read_text

MAX_TEXTS = 200  # XML texts that a model includes
MAX_NAMES = 10_000  # names of files
MAX_FOLDERS = 50  # folders of meshes and textures
MAX_PLACES = 20_000  # paths that are looked up
_FOLDERS = ("meshdir", "texturedir", "assetdir")
_TEXTS = ("include", "model")  # elements that name an XML file
_COMPILER_LOCK = threading.Lock()  # MuJoCo has a single global handler of warnings


def compile_path(mujoco: ModuleType, file: Path, roots: Sequence[Path], bounds: ParsingLimits) -> tuple[Any, list[str]]:
    """The compiled model of a file, and the warnings of the compiler."""
    content = read_bytes(file, bounds.max_bytes)
    _FileAccess(str(file), file.parent, [file.parent, *roots], bounds).check(content)
    return _run_compiler(mujoco, str(file), lambda: mujoco.MjModel.from_xml_path(str(file)))


def compile_text(
    mujoco: ModuleType, text: str, assets: dict[str, bytes], bounds: ParsingLimits
) -> tuple[Any, list[str]]:
    """The compiled model of a text with the files `assets`, and the warnings of the compiler."""
    origin = "MJCF text"
    _FileAccess(origin, Path(), [], bounds, assets).check(text)
    return _run_compiler(mujoco, origin, lambda: mujoco.MjModel.from_xml_string(text, assets))


def _run_compiler(mujoco: ModuleType, origin: str, compiler: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Runs the compiler and collects its warnings, which MuJoCo would write to a file in the working directory."""
    warnings: list[str] = []
    with _COMPILER_LOCK:
        previous = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(warnings.append)
        try:
            return compiler(), warnings
        except (ValueError, TypeError, MemoryError, mujoco.FatalError, mujoco.UnexpectedError) as error:
            reason = " ".join(str(error).split())
            raise FileFormatError(
                f"{origin}: MuJoCo's compiler refuses it ({reason}); correct the named element"
            ) from None
        finally:
            mujoco.set_mju_user_warning(previous)


@dataclass
class _FileAccess:
    """Follows the names of files through a model and the texts that it includes."""

    origin: str
    folder: Path
    roots: Sequence[Path]
    bounds: ParsingLimits
    assets: dict[str, bytes] = field(default_factory=dict)
    #: where files are searched: folders of the texts, and folders relative to these that texts name
    bases: set[Path] = field(default_factory=set)
    folders: set[str] = field(default_factory=lambda: {""})
    #: names of files, and the names of XML files among them
    names: set[str] = field(default_factory=set)
    included: set[str] = field(default_factory=set)
    #: paths that have been looked up, and existing files among them
    visited_places: set[str] = field(default_factory=set)
    visited_files: set[Path] = field(default_factory=set)
    texts: list[Text] = field(default_factory=list)

    def __post_init__(self):
        self.bases.add(self.folder)

    def check(self, content: bytes | str):
        """Reads all texts that can be included, and refuses models that could open a file that is not allowed."""
        self._read(content, self.origin, main=True)
        unread = dict(self.assets)
        while True:
            count = len(self.texts)
            for name in [name for name, data in unread.items() if self._is_text(name, data[:1024])]:
                self._read(unread.pop(name), f"{self.origin}, asset {name!r}")
            for path, name in self._new_files():
                with path.open("rb") as file:
                    start = file.read(1024)
                if self._is_text(name, start):
                    self.bases.add(path.parent)
                    self._read(read_bytes(path, self.bounds.max_bytes), str(path))
            if len(self.texts) == count:
                return

    def _is_text(self, name: str, start: bytes) -> bool:
        """True if a file is XML: an element for XML files names it, or it begins with `<`."""
        last = lambda x: re.split(r"[/\\]", x)[-1]
        return start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<" or last(name) in map(last, self.included)

    def _read(self, content: bytes | str, source: str, *, main: bool = False):
        self._check_count("texts to include", len(self.texts), MAX_TEXTS)
        text = read_text(content, source, self.bounds, main=main)
        self.texts.append(text)
        check_total_size(self.texts, self.origin, self.bounds)
        for element in text.elements:
            for key, value in element.attributes.items():
                if key.lower().startswith("file"):
                    self.names.add(value)
                    if element.tag.lower() in _TEXTS:
                        self.included.add(value)
                elif key.lower() in _FOLDERS:
                    self.folders.add(value)
        self.names.discard("")
        self._check_count("files", len(self.names), MAX_NAMES)
        self._check_count("folders", len(self.folders), MAX_FOLDERS)

    def _check_count(self, what: str, count: int, most: int):
        if count > most:
            raise FileFormatError(f"{self.origin}: names {count} {what}, more than the {most} allowed; reduce them")

    def _new_files(self) -> list[tuple[Path, str]]:
        """Existing files that have not been visited, with their names; refuses files that are not allowed."""
        roots = [Path(os.path.realpath(root)) for root in self.roots]
        given = set(self.assets) | {Path(name).name for name in self.assets}
        found: list[tuple[Path, str]] = []
        for name in sorted(self.names - given):
            for path in self._candidates(name):
                if path in self.visited_files:
                    continue
                if not any(path.is_relative_to(root) for root in roots):
                    self._refuse(name)
                self.visited_files.add(path)
                found.append((path, name))
        return found

    def _refuse(self, name: str):
        remedy = (
            "add the folder of the file to roots=[...] if you trust the model"
            if self.roots
            else "a text may read no files: pass the content as assets={name: bytes}, or load the model from its file"
        )
        raise FileFormatError(
            f"{self.origin}: names the file {name!r}, which lies outside the allowed folders; {remedy}"
        )

    def _candidates(self, name: str) -> Iterator[Path]:
        """Existing files at paths that the compiler could open and that have not been looked up.

        Symbolic links are resolved both before and after `..`.
        """
        for base in sorted(self.bases):
            for folder in sorted(self.folders):
                for last in sorted({name, re.split(r"[/\\]", name)[-1]}):
                    place = os.path.join(base, folder, last)
                    if place in self.visited_places or "\0" in place:
                        continue
                    self.visited_places.add(place)
                    self._check_count("paths of files", len(self.visited_places), MAX_PLACES)
                    paths = {place, os.path.normpath(place)}
                    yield from {Path(os.path.realpath(x)) for x in paths if _exists(Path(x))}


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that the system does not accept
        return False
