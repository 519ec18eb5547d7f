"""Groups of coordinates that share a panel of a figure."""

from collections.abc import Sequence
from typing import NamedTuple

from jaxdyn.model import Model
from jaxdyn.simulation import coordinate_names, effort_names, velocity_names

MAX_CURVES = 8  # in one panel


class Group(NamedTuple):
    """Columns of q and of v with their names and units."""

    q: list[int]
    v: list[int]
    q_names: list[str]
    v_names: list[str]
    q_unit: str
    v_unit: str
    effort_unit: str

    @property
    def is_plain(self) -> bool:
        """True if every coordinate of q has its rate in v: the names agree."""
        return self.q_names == self.v_names


def group_coordinates(model: Model) -> list[Group]:
    """The coordinates of each limb, by unit.

    A limb is a sequence of joints along one branch of the tree; short limbs are merged.
    """
    out: list[Group] = []
    for joints in _limbs(model):
        q, v = ([k for i in joints for k in range(*model.topology.joint_slices(i)[w].indices(10**9))] for w in (0, 1))
        out += _group_by_unit(model, q, v)
    return out


def _limbs(model: Model) -> list[list[int]]:
    topology = model.topology
    followers = {follower for follower, _ in topology.mimics}
    moving = {i for i in topology.bodies if i not in followers}
    limbs: list[list[int]] = []
    last = -2
    for i in sorted(moving):
        has_several = _num_velocities(model, i) > 1
        parent = _moving_ancestor(topology.parents, i, moving)
        continues = limbs and parent == last and not has_several and _num_velocities(model, last) == 1
        if continues and len(limbs[-1]) < MAX_CURVES:
            limbs[-1].append(i)
        else:
            limbs.append([i])
        last = i
    return _merge_limbs(model, limbs)


def _merge_limbs(model: Model, limbs: list[list[int]]) -> list[list[int]]:
    """Concatenates neighbouring limbs while they fit into a panel."""
    out: list[list[int]] = []
    for limb in limbs:
        has_several = any(_num_velocities(model, i) > 1 for i in (*limb, *(out[-1] if out else ())))
        if out and not has_several and len(out[-1]) + len(limb) <= MAX_CURVES:
            out[-1] += limb
        else:
            out.append(list(limb))
    return out


def _num_velocities(model: Model, joint: int) -> int:
    _, v = model.topology.joint_slices(joint)
    return v.stop - v.start


def _moving_ancestor(parents: Sequence[int], link: int, moving: set[int]) -> int:
    """The nearest ancestor of a link whose joint moves, or -1."""
    link = parents[link]
    while link >= 0 and link not in moving:
        link = parents[link]
    return link


def _group_by_unit(model: Model, q: list[int], v: list[int]) -> list[Group]:
    """A group for each unit; the units of q are matched with the units of v in order."""
    coordinates, velocities, efforts = coordinate_names(model), velocity_names(model), effort_names(model)
    split = lambda names, ks: {u: [k for k in ks if names[k][1] == u] for u in dict.fromkeys(names[k][1] for k in ks)}
    by_q, by_v = split(coordinates, q), split(velocities, v)
    out = []
    units = list(zip(by_q, by_v, strict=True)) if len(by_q) == len(by_v) else [(None, None)]
    for unit_q, unit_v in units:
        qs, vs = (by_q[unit_q], by_v[unit_v]) if unit_q is not None and unit_v is not None else (q, v)
        names = [coordinates[k][0] for k in qs], [velocities[k][0] for k in vs]
        labels = (" and ".join(by_q), " and ".join(by_v)) if unit_q is None or unit_v is None else (unit_q, unit_v)
        force = " and ".join(dict.fromkeys(efforts[k][1] for k in vs))
        out.append(Group(qs, vs, *names, *labels, force))
    return out
