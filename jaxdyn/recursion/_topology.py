"""Structure of a robot: names, the kinematic tree, and index tables derived from them.

All of it is static and hashable. Links are numbered depth first, so that a subtree is contiguous.
"""

import functools as ft
from dataclasses import dataclass

import numpy as np

WORLD = -1


@dataclass(frozen=True)
class Slots:
    """Storage plan of a sweep: where each node finds the state of its parent.

    In depth-first order the parent of most nodes is the previous node. The state of a node with several children is
    stored in a numbered slot until its last child is visited; few slots are in use at any time.
    """

    #: for each node, the slot with the state of its parent, or -1 if the parent is the previous node
    load: tuple[int, ...]
    #: for each node, the slot where its state is stored, or -1
    save: tuple[int, ...]
    #: slot of the world, or -1
    root: int
    #: number of slots
    count: int


def allocate_slots(parents: tuple[int, ...]) -> Slots:
    """Assigns slots to the nodes with more than one child of a tree in depth-first order."""
    children: dict[int, list[int]] = {k: [] for k in range(-1, len(parents))}
    for node, parent in enumerate(parents):
        children[parent].append(node)
    load, save = [-1] * len(parents), [-1] * len(parents)
    slot: dict[int, int] = {}
    free: list[int] = []
    count = 0
    for node in range(-1, len(parents)):
        if node >= 0 and parents[node] != node - 1:
            load[node] = slot[parents[node]]
            if children[parents[node]][-1] == node:
                free.append(slot[parents[node]])
        if len(children[node]) > 1:
            slot[node] = free.pop() if free else count
            count = max(count, slot[node] + 1)
            if node >= 0:
                save[node] = slot[node]
    return Slots(tuple(load), tuple(save), slot.get(-1, -1), count)


def ancestor_mask(parents: tuple[int, ...]) -> np.ndarray:
    """`mask[i, j]` is True if node i is j or an ancestor of j."""
    n = len(parents)
    mask = np.eye(n, dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            mask[:, node] |= mask[:, parent]
    return mask


@dataclass(frozen=True)
class Topology:
    """Names and kinematic tree of a robot. Joint i connects link i to its parent link."""

    link_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    frame_names: tuple[str, ...]
    #: for each link, its parent link, or `WORLD`
    parents: tuple[int, ...]
    #: for each joint, the index of its group (stack of joints of one type) in `Model.joints`; -1 for a fixed joint
    groups: tuple[int, ...]
    #: for each group, `(nq, nv, translates)` of one joint
    group_sizes: tuple[tuple[int, int, bool], ...]
    #: for each frame, the link to which it is fixed
    frame_links: tuple[int, ...]
    #: pairs `(joint, source)`: the coordinate of `joint` follows that of `source`
    mimics: tuple[tuple[int, int], ...]

    def __hash__(self):
        return self._hash

    @ft.cached_property
    def _hash(self):
        return hash((self.link_names, self.joint_names, self.parents, self.groups, self.mimics))

    # --- bodies: the link of each moving joint with the links rigidly attached to it ---------------

    @ft.cached_property
    def bodies(self) -> tuple[int, ...]:
        """Links behind moving joints. All other links are rigidly attached to one of them or to the world."""
        return tuple(i for i, g in enumerate(self.groups) if g >= 0)

    @ft.cached_property
    def body_of_link(self) -> tuple[int, ...]:
        """For each link, the body that it belongs to, or -1 if it is fixed to the world."""
        number = {link: k for k, link in enumerate(self.bodies)}
        out: list[int] = []
        for i, parent in enumerate(self.parents):
            out.append(number[i] if i in number else (out[parent] if parent >= 0 else WORLD))
        return tuple(out)

    @ft.cached_property
    def body_parents(self) -> tuple[int, ...]:
        """For each body, its parent body, or `WORLD`."""
        parents = (self.parents[link] for link in self.bodies)
        return tuple(self.body_of_link[p] if p >= 0 else WORLD for p in parents)

    @ft.cached_property
    def body_slots(self) -> Slots:
        """Storage plan of a sweep over the bodies."""
        return allocate_slots(self.body_parents)

    @ft.cached_property
    def is_root(self) -> np.ndarray:
        """For each body, True if its parent is the world."""
        return np.array([p < 0 for p in self.body_parents], bool)

    @ft.cached_property
    def body_nq(self) -> tuple[int, ...]:
        """Number of coordinates of each body's joint."""
        return tuple(self.group_sizes[self.groups[link]][0] for link in self.bodies)

    @ft.cached_property
    def body_nv(self) -> tuple[int, ...]:
        """Number of degrees of freedom of each body's joint."""
        return tuple(self.group_sizes[self.groups[link]][1] for link in self.bodies)

    @ft.cached_property
    def q_start(self) -> tuple[int, ...]:
        """First full coordinate of each body's joint."""
        return tuple(int(x) for x in np.concatenate([[0], np.cumsum(self.body_nq)])[:-1])

    @ft.cached_property
    def v_start(self) -> tuple[int, ...]:
        """First full velocity of each body's joint."""
        return tuple(int(x) for x in np.concatenate([[0], np.cumsum(self.body_nv)])[:-1])

    @ft.cached_property
    def full_nq(self) -> int:
        """Number of coordinates of all joints, mimic joints included."""
        return sum(self.body_nq)

    @ft.cached_property
    def full_nv(self) -> int:
        """Number of velocities of all joints, mimic joints included."""
        return sum(self.body_nv)

    @ft.cached_property
    def runs(self) -> tuple[tuple[int, int, int], ...]:
        """Consecutive bodies of one group: `(group, index of the first one within the group, count)`."""
        out: list[list[int]] = []
        seen = [0] * len(self.group_sizes)
        for link in self.bodies:
            g = self.groups[link]
            if out and out[-1][0] == g:
                out[-1][2] += 1
            else:
                out.append([g, seen[g], 1])
            seen[g] += 1
        return tuple((g, s, n) for g, s, n in out)

    # --- the tree of degrees of freedom (dofs): a joint with k dofs is a chain of k nodes -----------

    @ft.cached_property
    def has_single_dof_joints(self) -> bool:
        """True if every moving joint has one degree of freedom."""
        return all(n == 1 for n in self.body_nv)

    @ft.cached_property
    def dof_body(self) -> np.ndarray:
        """For each degree of freedom, the body of its joint."""
        return np.repeat(np.arange(len(self.bodies)), self.body_nv)

    @ft.cached_property
    def dof_parents(self) -> tuple[int, ...]:
        """For each degree of freedom, its parent in the tree of degrees of freedom, or `WORLD`."""
        last = np.cumsum(self.body_nv) - 1
        out: list[int] = []
        for body, n in enumerate(self.body_nv):
            parent = self.body_parents[body]
            for k in range(n):
                out.append(len(out) - 1 if k else (int(last[parent]) if parent >= 0 else WORLD))
        return tuple(out)

    @ft.cached_property
    def dof_slots(self) -> Slots:
        """Storage plan of a sweep over the degrees of freedom."""
        return allocate_slots(self.dof_parents)

    @ft.cached_property
    def body_ancestors(self) -> np.ndarray:
        """`[i, j]` is True if body i is j or an ancestor of body j."""
        return ancestor_mask(self.body_parents)

    @ft.cached_property
    def dof_ancestors(self) -> np.ndarray:
        """`[i, j]` is True if the body of dof i is the body of dof j or an ancestor of it."""
        return self.body_ancestors[np.ix_(self.dof_body, self.dof_body)]

    # --- mimic joints -------------------------------------------------------------------------------

    @ft.cached_property
    def mimic_bodies(self) -> tuple[tuple[int, int], ...]:
        """`mimics` as pairs of bodies."""
        number = {link: k for k, link in enumerate(self.bodies)}
        return tuple((number[a], number[b]) for a, b in self.mimics)

    @ft.cached_property
    def independent(self) -> tuple[int, ...]:
        """Bodies whose joints have independent coordinates: all but those of mimic joints."""
        mimic = {a for a, _ in self.mimic_bodies}
        return tuple(k for k in range(len(self.bodies)) if k not in mimic)

    @ft.cached_property
    def q_source(self) -> np.ndarray:
        """For each full coordinate, the coordinate of the state that it equals or mimics."""
        return self._source_coordinates(self.body_nq)

    @ft.cached_property
    def v_source(self) -> np.ndarray:
        """For each full velocity, the velocity of the state that it equals or mimics."""
        return self._source_coordinates(self.body_nv)

    def _source_coordinates(self, sizes) -> np.ndarray:
        start, at = {}, 0
        for k in self.independent:
            start[k], at = at, at + sizes[k]
        driver = dict(self.mimic_bodies)
        out = [start[driver.get(k, k)] + i for k, n in enumerate(sizes) for i in range(n)]
        return np.array(out, int)

    @property
    def nq(self) -> int:
        """Number of configuration coordinates of the state."""
        return sum(self.body_nq[k] for k in self.independent)

    @property
    def nv(self) -> int:
        """Number of velocities of the state: degrees of freedom of the tree."""
        return sum(self.body_nv[k] for k in self.independent)

    def joint_slices(self, joint: int) -> tuple[slice, slice]:
        """Slices of q and v that belong to a joint; of its source for a mimic joint, empty for a fixed joint."""
        joint = dict(self.mimics).get(joint, joint)
        if self.groups[joint] < 0:
            return slice(0, 0), slice(0, 0)
        body = self.bodies.index(joint)
        q, v = self.q_source[self.q_start[body]], self.v_source[self.v_start[body]]
        return slice(int(q), int(q) + self.body_nq[body]), slice(int(v), int(v) + self.body_nv[body])
