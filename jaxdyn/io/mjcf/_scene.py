"""Sites and geoms of a compiled MuJoCo model, as named frames and shapes."""

import os
from typing import Any

import numpy as np

from jaxdyn.io.mjcf._compiled import CompiledModel, NumpyPose, make_distinct
from jaxdyn.model import Shape


def site_pose(m: Any, site: int) -> NumpyPose:
    """The pose of a site in its body."""
    return NumpyPose(np.array(m.site_quat[site]), np.array(m.site_pos[site]))


def add_sites(source: CompiledModel):
    """Adds sites as frames; the sites of the world are attached to a fixed link."""
    m, builder = source.m, source.builder
    if not m.nsite:
        return
    given = source.element_names(source.mujoco.mjtObj.mjOBJ_SITE, m.nsite, "site")
    world_link = _add_world_link(source) if (m.site_bodyid == 0).any() else ""
    taken = set(source.link_names)
    for site, name in enumerate(make_distinct(given, taken)):
        if name != given[site]:
            source.note(f"site {given[site]!r}", f"becomes the frame {name!r}, as a link has its name")
        body, pose = int(m.site_bodyid[site]), site_pose(m, site)
        link = source.links[body] if body else world_link
        builder.add_frame(name, link, quaternion=pose.quaternion, translation=pose.translation)


def _add_world_link(source: CompiledModel) -> str:
    name = source.new_link("worldbody")
    source.builder.add_link(name, "world", joint_name=source.new_joint(f"{name}_fixed"))
    source.note("worldbody", f"its sites are frames on the massless, fixed link {name!r}")
    return name


def add_shapes(source: CompiledModel):
    """Adds geoms as shapes; `collision` is true for geoms that can make contact."""
    m, types = source.m, source.mujoco.mjtGeom
    kinds = {
        int(types.mjGEOM_PLANE): ("plane", lambda s: ()),
        int(types.mjGEOM_SPHERE): ("sphere", lambda s: s[:1]),
        int(types.mjGEOM_CAPSULE): ("capsule", lambda s: (s[0], 2 * s[1])),
        int(types.mjGEOM_ELLIPSOID): ("ellipsoid", lambda s: s),
        int(types.mjGEOM_CYLINDER): ("cylinder", lambda s: (s[0], 2 * s[1])),
        int(types.mjGEOM_BOX): ("box", lambda s: 2 * s),
    }
    names = make_distinct(source.element_names(source.mujoco.mjtObj.mjOBJ_GEOM, m.ngeom, "geom"), set())
    for geom, name in enumerate(names):
        kind = int(m.geom_type[geom])
        pose = NumpyPose(np.array(m.geom_quat[geom]), np.array(m.geom_pos[geom]))
        if kind in kinds:
            shape, size = kinds[kind]
            _add_shape(source, geom, name, shape, size(np.array(m.geom_size[geom])), pose)
        elif kind == int(types.mjGEOM_MESH) and m.geom_dataid[geom] >= 0:
            mesh = int(m.geom_dataid[geom])
            # the compiler transforms the vertices to principal axes, and the geom by the inverse
            inner = NumpyPose(np.array(m.mesh_quat[mesh]), np.array(m.mesh_pos[mesh])).inverse()
            _add_shape(source, geom, name, "mesh", m.mesh_scale[mesh], pose @ inner, _mesh_file(source, mesh))
        else:
            source.note(
                f"geom {name!r}", f"is a {types(kind).name[7:].lower()}, which has no counterpart among shapes: ignored"
            )


def _add_shape(source: CompiledModel, geom: int, name: str, kind: str, size, pose: NumpyPose, mesh: str = ""):
    m = source.m
    numbers = lambda x: tuple(float(y) for y in x)
    source.builder.add_shape(
        Shape(
            name,
            source.links[int(m.geom_bodyid[geom])],
            kind,
            numbers(size),
            numbers(pose.translation),
            numbers(pose.quaternion),
            mesh,
            numbers(_color(m, geom)),
            bool(m.geom_contype[geom] or m.geom_conaffinity[geom]),
        )
    )


def _color(m: Any, geom: int) -> np.ndarray:
    """The colour of the geom, or of its material if the geom has MuJoCo's default colour."""
    own, material = m.geom_rgba[geom], int(m.geom_matid[geom])
    return m.mat_rgba[material] if material >= 0 and np.allclose(own, (0.5, 0.5, 0.5, 1)) else own


def _mesh_file(source: CompiledModel, mesh: int) -> str:
    """The file of a mesh relative to the folder of the model; the name of a mesh that the compiler generated."""
    m = source.m
    start = int(m.mesh_pathadr[mesh])
    if start < 0:
        return source.mujoco.mj_id2name(m, source.mujoco.mjtObj.mjOBJ_MESH, mesh) or ""
    path = m.paths[start:].split(b"\0", 1)[0].decode(errors="replace")
    return path if source.folder is None else os.path.relpath(os.path.realpath(path), source.folder)
