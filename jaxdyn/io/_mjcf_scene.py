"""Sites and geoms of a compiled MuJoCo model: named frames, and shapes to look at."""

import os

import numpy as np

from jaxdyn.io._mjcf_compiled import Compiled, Placing, distinct
from jaxdyn.model import Shape


def site_placing(m, site: int) -> Placing:
    """A site in its body."""
    return Placing(np.array(m.site_quat[site]), np.array(m.site_pos[site]))


def add_sites(source: Compiled):
    """Sites become frames; those of the world are on a link that does not move."""
    m, builder = source.m, source.builder
    if not m.nsite:
        return
    given = source.named(source.mujoco.mjtObj.mjOBJ_SITE, m.nsite, "site")
    ground = _ground(source) if (m.site_bodyid == 0).any() else ""
    taken = set(source.link_names)
    for site, name in enumerate(distinct(given, taken)):
        if name != given[site]:
            source.note(f"site {given[site]!r}", f"is the frame {name!r}, since a link has its name")
        body, placing = int(m.site_bodyid[site]), site_placing(m, site)
        link = source.links[body] if body else ground
        builder.add_frame(name, link, quaternion=placing.quaternion, translation=placing.translation)


def _ground(source: Compiled) -> str:
    name = source.new_link("worldbody")
    source.builder.add_link(name, "world", joint_name=source.new_joint(f"{name}_fixed"))
    source.note("worldbody", f"its sites are frames on the link {name!r}, which has no mass and does not move")
    return name


def add_shapes(source: Compiled):
    """Geoms become shapes; those that can touch anything are marked as meant for collisions."""
    m, types = source.m, source.mujoco.mjtGeom
    kinds = {
        int(types.mjGEOM_PLANE): ("plane", lambda s: ()),
        int(types.mjGEOM_SPHERE): ("sphere", lambda s: s[:1]),
        int(types.mjGEOM_CAPSULE): ("capsule", lambda s: (s[0], 2 * s[1])),
        int(types.mjGEOM_ELLIPSOID): ("ellipsoid", lambda s: s),
        int(types.mjGEOM_CYLINDER): ("cylinder", lambda s: (s[0], 2 * s[1])),
        int(types.mjGEOM_BOX): ("box", lambda s: 2 * s),
    }
    names = distinct(source.named(source.mujoco.mjtObj.mjOBJ_GEOM, m.ngeom, "geom"), set())
    for geom, name in enumerate(names):
        kind = int(m.geom_type[geom])
        placing = Placing(np.array(m.geom_quat[geom]), np.array(m.geom_pos[geom]))
        if kind in kinds:
            word, size = kinds[kind]
            _add(source, geom, name, word, size(np.array(m.geom_size[geom])), placing)
        elif kind == int(types.mjGEOM_MESH) and m.geom_dataid[geom] >= 0:
            mesh = int(m.geom_dataid[geom])
            # the compiler moves vertices to principal axes, and the geom the other way
            inner = Placing(np.array(m.mesh_quat[mesh]), np.array(m.mesh_pos[mesh])).inverse()
            _add(source, geom, name, "mesh", m.mesh_scale[mesh], placing @ inner, _mesh_file(source, mesh))
        else:
            source.note(f"geom {name!r}", f"is a {types(kind).name[7:].lower()}, which has no shape here")


def _add(source: Compiled, geom: int, name: str, kind: str, size, placing: Placing, mesh: str = ""):
    m = source.m
    numbers = lambda x: tuple(float(y) for y in x)
    source.builder.add_shape(
        Shape(
            name,
            source.links[int(m.geom_bodyid[geom])],
            kind,
            numbers(size),
            numbers(placing.translation),
            numbers(placing.quaternion),
            mesh,
            numbers(_color(m, geom)),
            bool(m.geom_contype[geom] or m.geom_conaffinity[geom]),
        )
    )


def _color(m, geom: int):
    """The geom's own colour, unless it has MuJoCo's default one and a material."""
    own, material = m.geom_rgba[geom], int(m.geom_matid[geom])
    return m.mat_rgba[material] if material >= 0 and np.allclose(own, (0.5, 0.5, 0.5, 1)) else own


def _mesh_file(source: Compiled, mesh: int) -> str:
    """The mesh's file as seen from the model's folder, or its name if it was made by the compiler."""
    m = source.m
    start = int(m.mesh_pathadr[mesh])
    if start < 0:
        return source.mujoco.mj_id2name(m, source.mujoco.mjtObj.mjOBJ_MESH, mesh) or ""
    path = m.paths[start:].split(b"\0", 1)[0].decode(errors="replace")
    return path if source.folder is None else os.path.relpath(os.path.realpath(path), source.folder)
