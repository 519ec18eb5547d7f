"""Robots that a command names: read from a file, or bundled with jaxdyn."""

import argparse
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxdyn import robots
from jaxdyn._errors import ModelError
from jaxdyn.io import load, load_mjcf, load_urdf
from jaxdyn.model import Model


def read_model(path: Path, floating_base: bool, package_dirs: Sequence[Path], *, allow_absolute: bool = False) -> Model:
    """Reads a URDF (.urdf), an MJCF (.xml, .mjcf) or a saved model (any other suffix).

    `package_dirs` are the folders of the meshes of a URDF, or further folders that an MJCF may read;
    `allow_absolute` allows absolute paths of meshes in a URDF.
    """
    suffix = path.suffix.lower()
    if suffix == ".urdf":
        return load_urdf(path, floating_base=floating_base, package_dirs=package_dirs, allow_absolute=allow_absolute)
    is_mjcf = suffix in (".xml", ".mjcf")
    if floating_base or allow_absolute or (package_dirs and not is_mjcf):
        raise ModelError(
            f"{path}: --floating-base, --allow-absolute and --package-dir apply to .urdf files, the last to MJCF too"
        )
    if is_mjcf:
        return load_mjcf(path, roots=package_dirs)
    tree = load(path)
    if not isinstance(tree, Model):
        raise ModelError(f"{path}: contains a {type(tree).__name__}, not a model; give the file of a robot")
    return tree


def bundled_robots() -> dict[str, Callable[..., Any]]:
    """The functions of `jaxdyn.robots` that need no arguments, by name."""

    def needs_no_arguments(make: Callable[..., Any]) -> bool:
        return all(p.default is not p.empty for p in inspect.signature(make).parameters.values())

    makers = {name: make for name, make in vars(robots).items() if callable(make) and not name.startswith("_")}
    return {name: make for name, make in sorted(makers.items()) if needs_no_arguments(make)}


def read_robot(arguments: argparse.Namespace, *, allow_absolute: bool = False) -> Model:
    """The robot that the arguments of a command name, with JAX arrays for leaves."""
    makers, path = bundled_robots(), Path(arguments.robot)
    if arguments.robot in makers:
        if arguments.floating_base or arguments.package_dir or allow_absolute:
            options = "--floating-base, --package-dir and --allow-absolute"
            raise ModelError(f"{path}: {options} apply to .urdf files, not to bundled robots")
        return makers[arguments.robot]()
    if not path.suffix and not path.exists():
        raise ModelError(f"{path}: is neither a file nor a bundled robot; bundled are {', '.join(makers)}")
    model = read_model(path, arguments.floating_base, arguments.package_dir, allow_absolute=allow_absolute)
    if model.links.mass.ndim != 1:
        raise ModelError(f"{path}: contains a batch of shape {model.links.mass.shape[:-1]}; save a single robot")
    return jax.tree.map(jnp.asarray, model)
