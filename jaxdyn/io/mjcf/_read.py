"""Reading of MJCF, which MuJoCo's own compiler resolves."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxdyn._errors import FileFormatError, ModelError
from jaxdyn.io.files import ParsingLimits, as_paths
from jaxdyn.io.mjcf._actuators import add_actuators, add_equalities
from jaxdyn.io.mjcf._compiled import CompiledModel, import_mujoco
from jaxdyn.io.mjcf._report import check_numbers, note_omissions, refuse_unsupported
from jaxdyn.io.mjcf._scene import add_shapes, add_sites
from jaxdyn.io.mjcf._source import compile_path, compile_text
from jaxdyn.io.mjcf._text import LIMITS
from jaxdyn.io.mjcf._tree import add_bodies
from jaxdyn.model import Model


def load_mjcf(
    path: str | PathLike[str],
    *,
    roots: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    dtype: Any = None,
    bounds: ParsingLimits = LIMITS,
) -> Model:
    """Reads the robot in an MJCF file, as MuJoCo compiles it. Needs the extra `mjcf`.

    Bodies become links in MuJoCo's order, with the body frames of the file; several joints on one body become a chain
    of massless links. `q` is MuJoCo's `qpos` and `v` its `qvel`, except for free joints: there `qpos` has the position
    first, and `qvel` the linear velocity, in world axes (MuJoCo documentation, "Modeling" and "Floating objects").

    Arguments:

    * `path`: the file. The compiler also reads the files that it names (includes, meshes, textures, height fields).
    * `roots`: folders, besides the folder of the file, in which those files may lie.
    * `dtype`: precision of the numbers, by default JAX's default precision.
    * `bounds`: limits on the size of the file, with all replicas counted.

    Returns the model; `model.report` lists what is not supported and therefore ignored. Raises `FileFormatError` for a
    file that is malformed, exceeds `bounds`, names files outside the allowed folders, or has unsupported elements that
    would change the rigid dynamics; `FileAccessError` for a file that cannot be read.

    ```python
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import jaxdyn as jd

    text = '''
    <mujoco><worldbody><body name="pole">
      <joint name="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05"/>
    </body></worldbody></mujoco>
    '''
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pole.xml"
        path.write_text(text)
        model = jd.load_mjcf(path)
    assert model.joint_names == ("hinge",)
    ```
    """
    mujoco = import_mujoco()
    file = Path(path)
    compiled, warnings = compile_path(mujoco, file, as_paths(roots), bounds)
    return _model(mujoco, compiled, str(file), file.parent.resolve(), warnings, dtype, bounds)


def parse_mjcf(
    text: str, *, assets: Mapping[str, bytes] | None = None, dtype: Any = None, bounds: ParsingLimits = LIMITS
) -> Model:
    """Reads the robot in an MJCF text, as `load_mjcf` reads a file. Needs the extra `mjcf`.

    Arguments:

    * `text`: the XML text.
    * `assets`: contents of the files that the text names, by name. No file is read from disk.
    * `dtype`, `bounds`: see `load_mjcf`.

    Returns the model; raises `FileFormatError` as `load_mjcf` does.

    ```python
    import jaxdyn as jd

    model = jd.parse_mjcf('''
    <mujoco><worldbody><body name="pole">
      <joint name="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="2"/>
    </body></worldbody></mujoco>
    ''')
    assert model.nv == 1 and float(model.links.mass.sum()) == 2.0
    ```
    """
    mujoco = import_mujoco()
    compiled, warnings = compile_text(mujoco, text, dict(assets or {}), bounds)
    return _model(mujoco, compiled, "MJCF text", None, warnings, dtype, bounds)


def _model(
    mujoco: ModuleType,
    compiled: Any,
    origin: str,
    folder: Path | None,
    warnings: Sequence[str],
    dtype: Any,
    bounds: ParsingLimits,
) -> Model:
    try:
        check_numbers(mujoco, compiled, origin, bounds)
        source = CompiledModel(mujoco, compiled, origin, folder)
        refuse_unsupported(source)
        add_bodies(source)
        add_sites(source)
        add_shapes(source)
        add_actuators(source)
        add_equalities(source)
        note_omissions(source, warnings)
        return source.builder.build(dtype)
    except FileFormatError:
        raise
    except ModelError as error:
        raise FileFormatError(f"{origin}: {error}") from None
