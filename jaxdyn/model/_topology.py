"""What of a robot is structure: names, the tree, and the bookkeeping derived from them.

All of it is static and hashable. Links are numbered depth first, so that a subtree is contiguous.
"""

import functools as ft
from dataclasses import dataclass

import numpy as np

WORLD = -1


@dataclass(frozen=True)
class Slots:
    """Where a sweep finds the state of a node's parent.

    Depth first, the parent of most nodes is the node just visited. A node with several children is kept in
    a numbered slot until its last child has been visited; few slots are alive at any time.
    """

    load: tuple[int, ...]
    save: tuple[int, ...]
    root: int
    count: int


def allocate_slots(parents: tuple[int, ...]) -> Slots:
    """Assigns slots to the nodes of a depth-first tree that have more than one child."""
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
    """`mask[i, j]`: node i is j or an ancestor of j."""
    n = len(parents)
    mask = np.eye(n, dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            mask[:, node] |= mask[:, parent]
    return mask


@dataclass(frozen=True)
class Topology:
    """Names and tree of a robot.

    `parents[i]` is the link that joint i hangs on, or `WORLD`; joint i carries link i. `groups[i]` is the
    index of its joint type in `Model.joints`, or -1 for a fixed joint. `mimics` lists `(joint, source)`.
    """

    link_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    frame_names: tuple[str, ...]
    parents: tuple[int, ...]
    groups: tuple[int, ...]
    group_sizes: tuple[tuple[int, int, bool], ...]
    frame_links: tuple[int, ...]
    mimics: tuple[tuple[int, int], ...]

    def __hash__(self):
        return self._hash

    @ft.cached_property
    def _hash(self):
        return hash((self.link_names, self.joint_names, self.parents, self.groups, self.mimics))

    # --- moving bodies: each joint that moves, with what is rigidly attached to its link ----------

    @ft.cached_property
    def bodies(self) -> tuple[int, ...]:
        """Links carried by a joint that moves; everything else is rigidly attached to one of them."""
        return tuple(i for i, g in enumerate(self.groups) if g >= 0)

    @ft.cached_property
    def body_of_link(self) -> tuple[int, ...]:
        """For each link, the body it is part of, or -1 when it is part of the world."""
        number = {link: k for k, link in enumerate(self.bodies)}
        out: list[int] = []
        for i, parent in enumerate(self.parents):
            out.append(number[i] if i in number else (out[parent] if parent >= 0 else WORLD))
        return tuple(out)

    @ft.cached_property
    def body_parents(self) -> tuple[int, ...]:
        parents = (self.parents[link] for link in self.bodies)
        return tuple(self.body_of_link[p] if p >= 0 else WORLD for p in parents)

    @ft.cached_property
    def body_slots(self) -> Slots:
        return allocate_slots(self.body_parents)

    @ft.cached_property
    def is_root(self) -> np.ndarray:
        return np.array([p < 0 for p in self.body_parents], bool)

    @ft.cached_property
    def body_nq(self) -> tuple[int, ...]:
        return tuple(self.group_sizes[self.groups[link]][0] for link in self.bodies)

    @ft.cached_property
    def body_nv(self) -> tuple[int, ...]:
        return tuple(self.group_sizes[self.groups[link]][1] for link in self.bodies)

    @ft.cached_property
    def q_start(self) -> tuple[int, ...]:
        return tuple(int(x) for x in np.concatenate([[0], np.cumsum(self.body_nq)])[:-1])

    @ft.cached_property
    def v_start(self) -> tuple[int, ...]:
        return tuple(int(x) for x in np.concatenate([[0], np.cumsum(self.body_nv)])[:-1])

    @ft.cached_property
    def full_nq(self) -> int:
        """Coordinates of all joints, those that mimic others included."""
        return sum(self.body_nq)

    @ft.cached_property
    def full_nv(self) -> int:
        return sum(self.body_nv)

    @ft.cached_property
    def runs(self) -> tuple[tuple[int, int, int], ...]:
        """Bodies in order as runs `(group, first member of the group, count)`."""
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

    # --- the tree of degrees of freedom: a joint with k of them is a chain of k nodes --------------

    @ft.cached_property
    def simple(self) -> bool:
        """Whether every joint that moves has one degree of freedom."""
        return all(n == 1 for n in self.body_nv)

    @ft.cached_property
    def dof_body(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.bodies)), self.body_nv)

    @ft.cached_property
    def dof_parents(self) -> tuple[int, ...]:
        last = np.cumsum(self.body_nv) - 1
        out: list[int] = []
        for body, n in enumerate(self.body_nv):
            parent = self.body_parents[body]
            for k in range(n):
                out.append(len(out) - 1 if k else (int(last[parent]) if parent >= 0 else WORLD))
        return tuple(out)

    @ft.cached_property
    def dof_slots(self) -> Slots:
        return allocate_slots(self.dof_parents)

    @ft.cached_property
    def body_ancestors(self) -> np.ndarray:
        """`[i, j]`: body i carries body j, itself included."""
        return ancestor_mask(self.body_parents)

    @ft.cached_property
    def dof_ancestors(self) -> np.ndarray:
        """`[i, j]`: the body of dof i carries the body of dof j, itself included."""
        return self.body_ancestors[np.ix_(self.dof_body, self.dof_body)]

    # --- coordinates that mimic others --------------------------------------------------------------

    @ft.cached_property
    def mimic_bodies(self) -> tuple[tuple[int, int], ...]:
        number = {link: k for k, link in enumerate(self.bodies)}
        return tuple((number[a], number[b]) for a, b in self.mimics)

    @ft.cached_property
    def independent(self) -> tuple[int, ...]:
        """Bodies with coordinates of their own."""
        followers = {a for a, _ in self.mimic_bodies}
        return tuple(k for k in range(len(self.bodies)) if k not in followers)

    @ft.cached_property
    def q_source(self) -> np.ndarray:
        """For each full coordinate, the coordinate of the state that drives it."""
        return self._source(self.body_nq)

    @ft.cached_property
    def v_source(self) -> np.ndarray:
        return self._source(self.body_nv)

    def _source(self, sizes) -> np.ndarray:
        start, at = {}, 0
        for k in self.independent:
            start[k], at = at, at + sizes[k]
        driver = dict(self.mimic_bodies)
        out = [start[driver.get(k, k)] + i for k, n in enumerate(sizes) for i in range(n)]
        return np.array(out, int)

    @property
    def nq(self) -> int:
        return sum(self.body_nq[k] for k in self.independent)

    @property
    def nv(self) -> int:
        return sum(self.body_nv[k] for k in self.independent)

    def joint_slices(self, joint: int) -> tuple[slice, slice]:
        """Slices of q and v that belong to a joint, those of its source if it mimics one."""
        joint = dict(self.mimics).get(joint, joint)
        if self.groups[joint] < 0:
            return slice(0, 0), slice(0, 0)
        body = self.bodies.index(joint)
        q, v = self.q_source[self.q_start[body]], self.v_source[self.v_start[body]]
        return slice(int(q), int(q) + self.body_nq[body]), slice(int(v), int(v) + self.body_nv[body])
