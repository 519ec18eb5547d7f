"""Robots from MJCF, resolved by MuJoCo's own compiler."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxdyn._errors import FileFormatError, ModelError
from jaxdyn.io._mjcf_compiled import Compiled, engine
from jaxdyn.io._mjcf_drives import add_actuators, add_equalities
from jaxdyn.io._mjcf_report import check_numbers, refuse_unsupported, report
from jaxdyn.io._mjcf_scene import add_shapes, add_sites
from jaxdyn.io._mjcf_source import compile_path, compile_text
from jaxdyn.io._mjcf_text import BOUNDS
from jaxdyn.io._mjcf_tree import add_bodies
from jaxdyn.io._paths import paths_of
from jaxdyn.io._xml import Bounds
from jaxdyn.model import Model


def load_mjcf(
    path: str | PathLike[str],
    *,
    roots: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    dtype: Any = None,
    bounds: Bounds = BOUNDS,
) -> Model:
    """The robot that an MJCF file describes, as MuJoCo compiles it.

    Bodies are links in MuJoCo's order, with the file's body frames; several joints on one body are a chain of
    massless links. `q` is MuJoCo's `qpos` and `v` its `qvel`, save for free joints: there `qpos` has the position
    first, and `qvel` the linear velocity, in world axes (MuJoCo documentation, "Modeling" and "Floating objects").
    What has no counterpart is listed in `model.report`; what would change the rigid dynamics is refused.

    `path`: the file. Files that it names (includes, meshes, textures, height fields) are read by the compiler, and
    must lie below the file's folder or one of `roots`. `dtype` is the precision of the numbers. What is no XML, and
    what is larger than `bounds`, replicas written out, raises `FileFormatError`. Needs the extra `mjcf`.
    """
    mujoco = engine()
    file = Path(path)
    compiled, warnings = compile_path(mujoco, file, paths_of(roots), bounds)
    return _model(mujoco, compiled, str(file), file.parent.resolve(), warnings, dtype, bounds)


def parse_mjcf(
    text: str, *, assets: Mapping[str, bytes] | None = None, dtype: Any = None, bounds: Bounds = BOUNDS
) -> Model:
    """The robot that an MJCF text describes; see `load_mjcf`.

    `assets`: contents of the files that the text names, by name. No file is read from disk.
    """
    mujoco = engine()
    compiled, warnings = compile_text(mujoco, text, dict(assets or {}), bounds)
    return _model(mujoco, compiled, "MJCF text", None, warnings, dtype, bounds)


def _model(
    mujoco: ModuleType,
    compiled: Any,
    origin: str,
    folder: Path | None,
    warnings: Sequence[str],
    dtype: Any,
    bounds: Bounds,
) -> Model:
    try:
        check_numbers(mujoco, compiled, origin, bounds)
        source = Compiled(mujoco, compiled, origin, folder)
        refuse_unsupported(source)
        add_bodies(source)
        add_sites(source)
        add_shapes(source)
        add_actuators(source)
        add_equalities(source)
        report(source, warnings)
        return source.builder.build(dtype)
    except FileFormatError:
        raise
    except ModelError as error:
        raise FileFormatError(f"{origin}: {error}") from None
