"""Robots from MJCF, resolved by MuJoCo's own compiler."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from jaxdyn.io._mjcf_compiled import Compiled, engine
from jaxdyn.io._mjcf_drives import add_actuators, add_equalities
from jaxdyn.io._mjcf_report import refuse_unsupported, report
from jaxdyn.io._mjcf_scene import add_shapes, add_sites
from jaxdyn.io._mjcf_source import compile_path, compile_text
from jaxdyn.io._mjcf_tree import add_bodies
from jaxdyn.model import Model


def load_mjcf(path: str | PathLike[str], *, roots: Sequence[str | PathLike[str]] = (), dtype: Any = None) -> Model:
    """The robot that an MJCF file describes, as MuJoCo compiles it.

    Bodies are links in MuJoCo's order, with the file's body frames; several joints on one body are a chain of
    massless links. `q` is MuJoCo's `qpos` and `v` its `qvel`, save for free joints: there `qpos` has the position
    first, and `qvel` the linear velocity, in world axes (MuJoCo documentation, "Modeling" and "Floating objects").
    What has no counterpart is listed in `model.report`; what would change the rigid dynamics is refused.

    `path`: the file. Files that it names (includes, meshes, textures, height fields) are read by the compiler, and
    must lie below the file's folder or one of `roots`. `dtype` is the precision of the numbers. Needs the extra `mjcf`.
    """
    mujoco = engine()
    file = Path(path)
    compiled, warnings = compile_path(mujoco, file, [Path(root) for root in roots])
    return _model(Compiled(mujoco, compiled, str(file), file.parent.resolve()), warnings, dtype)


def parse_mjcf(text: str, *, assets: Mapping[str, bytes] | None = None, dtype: Any = None) -> Model:
    """The robot that an MJCF text describes; see `load_mjcf`.

    `assets`: contents of the files that the text names, by name. No file is read from disk.
    """
    mujoco = engine()
    compiled, warnings = compile_text(mujoco, text, dict(assets or {}))
    return _model(Compiled(mujoco, compiled, "MJCF text"), warnings, dtype)


def _model(source: Compiled, warnings: Sequence[str], dtype: Any) -> Model:
    refuse_unsupported(source)
    add_bodies(source)
    add_sites(source)
    add_shapes(source)
    add_actuators(source)
    add_equalities(source)
    report(source, warnings)
    return source.builder.build(dtype)
