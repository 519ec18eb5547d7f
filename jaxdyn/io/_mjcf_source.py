"""What MuJoCo's compiler is given, and which files it may read.

The compiler opens whatever file a model names. Before it sees a text, every attribute that can name a file is
looked up in all places where the compiler would look; one that exists outside the allowed folders is a refusal.
"""

import os
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxdyn._errors import FileFormatError
from jaxdyn.io._paths import read_bytes

MAX_BYTES = 32_000_000  # of one XML text
MAX_TEXTS = 200  # that a model includes
MAX_NAMES = 10_000  # of files
_VALUE = r"\s*=\s*(?:\"([^\"]*)\"|'([^']*)')"
_FILE = re.compile(r"\bfile\w*" + _VALUE)
_FOLDER = re.compile(r"\b(?:mesh|texture|asset)dir" + _VALUE)
_CODE = re.compile(r"&#(x[0-9a-fA-F]{1,6}|[0-9]{1,7});")
_ENTITIES = (("lt", "<"), ("gt", ">"), ("quot", '"'), ("apos", "'"), ("amp", "&"))  # the last one last
_COMMENT = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_ONE_AT_A_TIME = threading.Lock()  # MuJoCo has one handler of warnings


def compile_path(mujoco: ModuleType, file: Path, roots: Sequence[Path]) -> tuple[Any, list[str]]:
    """MuJoCo's model of a file, and the compiler's warnings."""
    text = read_bytes(file, MAX_BYTES).decode(errors="surrogateescape")
    _require_mjcf(text, str(file))
    _Reach(str(file), file.parent, [file.parent, *roots]).check(text)
    return _compiled(mujoco, str(file), lambda: mujoco.MjModel.from_xml_path(str(file)))


def compile_text(mujoco: ModuleType, text: str, assets: dict[str, bytes]) -> tuple[Any, list[str]]:
    """MuJoCo's model of a text whose files are `assets`, and the compiler's warnings."""
    origin = "MJCF text"
    if len(text) > MAX_BYTES:
        raise FileFormatError(f"{origin}: has {len(text)} characters, at most {MAX_BYTES} are read")
    _require_mjcf(text, origin)
    reach = _Reach(origin, Path(), [], set(assets) | {Path(name).name for name in assets})
    reach.check(text)
    for content in assets.values():
        if content.lstrip()[:1] == b"<" and len(content) <= MAX_BYTES:
            reach.check(content.decode(errors="surrogateescape"))
    return _compiled(mujoco, origin, lambda: mujoco.MjModel.from_xml_string(text, assets))


def _require_mjcf(text: str, origin: str):
    first = re.search(r"<\s*([^\s/>]+)", _COMMENT.sub("", text))
    if first is not None and first[1] == "robot":
        raise FileFormatError(f"{origin}: is URDF (<robot>); read it with jaxdyn.load_urdf or jaxdyn.parse_urdf")
    if first is None or first[1] != "mujoco":
        raise FileFormatError(f"{origin}: is not MJCF; its first element must be <mujoco>")


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
    given: set[str] = field(default_factory=set)
    bases: set[Path] = field(default_factory=set)
    folders: set[str] = field(default_factory=lambda: {""})
    names: set[str] = field(default_factory=set)
    seen: set[Path] = field(default_factory=set)
    texts: int = 0

    def __post_init__(self):
        self.bases.add(self.folder)

    def check(self, text: str):
        """Reads all that can be included, and refuses a model that could reach another file."""
        pending = [text]
        while pending:
            for text in pending:
                self.names |= _values(_FILE, text)
                self.folders |= _values(_FOLDER, text)
            self._bound("files", len(self.names), MAX_NAMES)
            pending = [self._text(path) for path in self._reached() if self._includes(path)]

    def _bound(self, what: str, count: int, most: int):
        if count > most:
            raise FileFormatError(f"{self.origin}: names {count} {what}, at most {most} are followed")

    def _reached(self) -> list[Path]:
        """Files that exist and have not been met before, all of them allowed."""
        roots = [Path(os.path.realpath(root)) for root in self.roots]
        found = []
        for name in sorted(self.names - self.given):
            for path in self._candidates(name):
                if path in self.seen or not _exists(path):
                    continue
                if not any(path.is_relative_to(root) for root in roots):
                    self._refuse(name)
                self.seen.add(path)
                found.append(path)
        return found

    def _refuse(self, name: str):
        remedy = (
            "add the folder that holds it to roots=[...] if you trust the model"
            if self.roots
            else "a text reads no files: pass the content in assets={name: bytes}, or load the model from its file"
        )
        raise FileFormatError(f"{self.origin}: names the file {name!r}, which lies outside what may be read; {remedy}")

    def _candidates(self, name: str) -> Iterable[Path]:
        """Where the compiler could look: links resolved before `..`, and after."""
        for base in self.bases:
            for folder in self.folders:
                for last in {name, re.split(r"[/\\]", name)[-1]}:
                    path = os.path.join(base, folder, last)
                    yield from {Path(os.path.realpath(p)) for p in (path, os.path.normpath(path)) if "\0" not in p}

    def _includes(self, path: Path) -> bool:
        """Whether a file is XML, by what it begins with."""
        with path.open("rb") as file:
            return file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"

    def _text(self, path: Path) -> str:
        self.texts += 1
        self._bound("texts to include", self.texts, MAX_TEXTS)
        self.bases.add(path.parent)
        return read_bytes(path, MAX_BYTES).decode(errors="surrogateescape")


def _values(pattern: re.Pattern, text: str) -> set[str]:
    found = {_plain(a or b) for a, b in pattern.findall(text)}
    return found - {""}


def _plain(value: str) -> str:
    """An attribute's value with XML's references resolved."""
    number = lambda code: int(code[1:], 16) if code[0] == "x" else int(code)
    value = _CODE.sub(lambda match: chr(n) if (n := number(match[1])) < 0x110000 else match[0], value)
    for name, character in _ENTITIES:
        value = value.replace(f"&{name};", character)
    return value


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that the system does not take
        return False
