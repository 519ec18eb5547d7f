"""What MuJoCo's compiler is given, and which files it may read.

The compiler opens whatever file a model names. Before it sees a text, every attribute that can name a file is
looked up in all places where the compiler would look; one that exists outside the allowed folders is a refusal.
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
from jaxdyn.io._mjcf_text import Text, check_together, read_text
from jaxdyn.io._paths import read_bytes
from jaxdyn.io._xml import Bounds

MAX_TEXTS = 200  # that a model includes
MAX_NAMES = 10_000  # of files
MAX_FOLDERS = 50  # for meshes and textures
MAX_PLACES = 20_000  # where files are looked for
_FOLDERS = ("meshdir", "texturedir", "assetdir")
_TEXTS = ("include", "model")  # elements whose file is XML
_ONE_AT_A_TIME = threading.Lock()  # MuJoCo has one handler of warnings


def compile_path(mujoco: ModuleType, file: Path, roots: Sequence[Path], bounds: Bounds) -> tuple[Any, list[str]]:
    """MuJoCo's model of a file, and the compiler's warnings."""
    content = read_bytes(file, bounds.max_bytes)
    _Reach(str(file), file.parent, [file.parent, *roots], bounds).check(content)
    return _compiled(mujoco, str(file), lambda: mujoco.MjModel.from_xml_path(str(file)))


def compile_text(mujoco: ModuleType, text: str, assets: dict[str, bytes], bounds: Bounds) -> tuple[Any, list[str]]:
    """MuJoCo's model of a text whose files are `assets`, and the compiler's warnings."""
    origin = "MJCF text"
    _Reach(origin, Path(), [], bounds, assets).check(text)
    return _compiled(mujoco, origin, lambda: mujoco.MjModel.from_xml_string(text, assets))


def _compiled(mujoco: ModuleType, origin: str, compiler: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Runs the compiler; its warnings would otherwise go to a log file in the working directory."""
    heard: list[str] = []
    with _ONE_AT_A_TIME:
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(heard.append)
        try:
            return compiler(), heard
        except (ValueError, TypeError, MemoryError, mujoco.FatalError, mujoco.UnexpectedError) as error:
            reason = " ".join(str(error).split())
            raise FileFormatError(
                f"{origin}: MuJoCo's compiler refuses it ({reason}); correct the element that it names"
            ) from None
        finally:
            mujoco.set_mju_user_warning(before)


@dataclass
class _Reach:
    """Follows the names of files through a model and what it includes."""

    origin: str
    folder: Path
    roots: Sequence[Path]
    bounds: Bounds
    assets: dict[str, bytes] = field(default_factory=dict)
    #: where names are looked for: folders of the texts, and what texts add to these
    bases: set[Path] = field(default_factory=set)
    folders: set[str] = field(default_factory=lambda: {""})
    #: names of files, and those among them that are XML
    names: set[str] = field(default_factory=set)
    included: set[str] = field(default_factory=set)
    #: places that have been looked at, files that are there, and names of assets that have been read
    looked: set[str] = field(default_factory=set)
    seen: set[Path] = field(default_factory=set)
    texts: list[Text] = field(default_factory=list)

    def __post_init__(self):
        self.bases.add(self.folder)

    def check(self, content: bytes | str):
        """Reads all that can be included, and refuses a model that could reach another file."""
        self._read(content, self.origin, main=True)
        unread = dict(self.assets)
        while True:
            count = len(self.texts)
            for name in [name for name, data in unread.items() if self._is_text(name, data[:1024])]:
                self._read(unread.pop(name), f"{self.origin}, asset {name!r}")
            for path, name in self._reached():
                with path.open("rb") as file:
                    start = file.read(1024)
                if self._is_text(name, start):
                    self.bases.add(path.parent)
                    self._read(read_bytes(path, self.bounds.max_bytes), str(path))
            if len(self.texts) == count:
                return

    def _is_text(self, name: str, start: bytes) -> bool:
        """Whether a file is XML, by who names it or by what it begins with."""
        last = lambda x: re.split(r"[/\\]", x)[-1]
        return start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<" or last(name) in map(last, self.included)

    def _read(self, content: bytes | str, source: str, *, main: bool = False):
        self._bound("texts to include", len(self.texts), MAX_TEXTS)
        text = read_text(content, source, self.bounds, main=main)
        self.texts.append(text)
        check_together(self.texts, self.origin, self.bounds)
        for element in text.elements:
            for key, value in element.attributes.items():
                if key.lower().startswith("file"):
                    self.names.add(value)
                    if element.tag.lower() in _TEXTS:
                        self.included.add(value)
                elif key.lower() in _FOLDERS:
                    self.folders.add(value)
        self.names.discard("")
        self._bound("files", len(self.names), MAX_NAMES)
        self._bound("folders", len(self.folders), MAX_FOLDERS)

    def _bound(self, what: str, count: int, most: int):
        if count > most:
            raise FileFormatError(f"{self.origin}: names {count} {what}, at most {most} are followed")

    def _reached(self) -> list[tuple[Path, str]]:
        """Files that exist and have not been met before, all of them allowed, with the names that they go by."""
        roots = [Path(os.path.realpath(root)) for root in self.roots]
        given = set(self.assets) | {Path(name).name for name in self.assets}
        found = []
        for name in sorted(self.names - given):
            for path in self._candidates(name):
                if path in self.seen:
                    continue
                if not any(path.is_relative_to(root) for root in roots):
                    self._refuse(name)
                self.seen.add(path)
                found.append((path, name))
        return found

    def _refuse(self, name: str):
        remedy = (
            "add the folder that holds it to roots=[...] if you trust the model"
            if self.roots
            else "a text reads no files: pass the content in assets={name: bytes}, or load the model from its file"
        )
        raise FileFormatError(f"{self.origin}: names the file {name!r}, which lies outside what may be read; {remedy}")

    def _candidates(self, name: str) -> Iterator[Path]:
        """Where the compiler could look and we have not: links resolved before `..`, and after."""
        for base in sorted(self.bases):
            for folder in sorted(self.folders):
                for last in sorted({name, re.split(r"[/\\]", name)[-1]}):
                    place = os.path.join(base, folder, last)
                    if place in self.looked or "\0" in place:
                        continue
                    self.looked.add(place)
                    self._bound("places of files", len(self.looked), MAX_PLACES)
                    ways = {place, os.path.normpath(place)}
                    yield from {Path(os.path.realpath(x)) for x in ways if _exists(Path(x))}


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that the system does not take
        return False
