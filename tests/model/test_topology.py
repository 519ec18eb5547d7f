"""Topology tables (slots, ancestors, bodies, coordinates) of random trees against brute force."""

import numpy as np
import pytest

from jaxdyn.joints import Fixed, Prismatic, Revolute, Spherical
from jaxdyn.model import ModelBuilder
from jaxdyn.recursion._topology import allocate_slots, ancestor_mask

from ._robots import branched_robot


def random_tree(seed: int, bushy: float):
    """Depth-first parents of a random tree, several roots allowed."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 40)
    parent = [-1 if rng.random() < 0.1 else int(rng.integers(max(-1, k - 1 - bushy * k), k)) for k in range(n)]
    children = {k: [j for j in range(n) if parent[j] == k] for k in range(-1, n)}
    order: list[int] = []
    stack = list(children[-1])
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(children[node])
    number = {node: k for k, node in enumerate(order)}
    return tuple(number[parent[node]] if parent[node] >= 0 else -1 for node in order)


TREES = [random_tree(seed, bushy) for seed in range(60) for bushy in (0.0, 0.2, 1.0)]


def find_parent(slots, k, saved):
    return saved[slots.load[k]] if slots.load[k] >= 0 else k - 1


def test_slots_store_the_parent_until_its_last_child():
    for parents in TREES:
        slots = allocate_slots(parents)
        saved = {slots.root: -1}
        for k, parent in enumerate(parents):
            assert find_parent(slots, k, saved) == parent
            if slots.save[k] >= 0:
                saved[slots.save[k]] = k


def test_number_of_slots():
    """At most the number of branching ancestors of a node; none in a chain."""
    for parents in TREES:
        slots = allocate_slots(parents)
        branching = {p for p in parents if parents.count(p) > 1}
        above = ancestor_mask(parents)
        deepest = max(sum(above[p, k] for p in branching if p >= 0) for k in range(len(parents)))
        assert slots.count <= deepest + (-1 in branching)
    assert allocate_slots((-1, 0, 1, 2)).count == 0
    assert allocate_slots(()).count == 0


def test_ancestor_mask():
    for parents in TREES[::9]:
        mask = ancestor_mask(parents)
        for k in range(len(parents)):
            line, node = set(), k
            while node >= 0:
                line.add(node)
                node = parents[node]
            assert set(np.flatnonzero(mask[:, k])) == line


@pytest.mark.parametrize("seed", range(8))
def test_bodies_and_coordinates_of_random_robots(seed):
    rng = np.random.default_rng(seed)
    parents = TREES[10 * seed]
    kinds = [(Fixed(), 0, 0), (Revolute((0, 0, 1)), 1, 1), (Prismatic((1, 0, 0)), 1, 1), (Spherical(), 4, 3)]
    joints = [kinds[k] for k in rng.integers(0, 4, len(parents))]
    b = ModelBuilder()
    for k, parent in enumerate(parents):
        b.add_link(f"l{k}", "world" if parent < 0 else f"l{parent}", joints[k][0])
    t = b.build().topology
    nq, nv, body_of = 0, 0, {}
    for link, parent in zip(t.link_names, t.parents, strict=True):
        _, q, v = joints[int(link[1:])]
        i = t.link_names.index(link)
        assert t.joint_slices(i) == ((slice(nq, nq + q), slice(nv, nv + v)) if v else (slice(0, 0),) * 2)
        body_of[i] = len(set(body_of.values()) - {-1}) if v else body_of.get(parent, -1)
        nq, nv = nq + q, nv + v
        assert t.body_of_link[i] == body_of[i]
    assert (t.nq, t.nv) == (nq, nv)
    assert t.body_parents == tuple(body_of.get(t.parents[i], -1) for i in t.bodies)
    chain = [j for k, n in enumerate(t.body_nv) for j in [k] * n]
    assert list(t.dof_body) == chain
    for k, parent in enumerate(t.dof_parents):
        inside = parent >= 0 and chain[parent] == chain[k]
        assert inside or (parent < 0 and t.body_parents[chain[k]] < 0) or (chain[parent] == t.body_parents[chain[k]])


def test_mimic_joints_have_no_independent_coordinate():
    model = branched_robot()
    t = model.topology
    assert (model.nq, t.full_nq) == (16, 17)
    assert model.joint("f_joint").q == model.joint("d_joint").q
    assert [model.joint_names[i] for i in t.mimics[0]] == ["f_joint", "d_joint"]
    assert len(model.properties.armature) == model.nv == 14
    assert sorted(set(t.q_source.tolist())) == list(range(model.nq))


def test_topologies_compare_and_hash_by_content():
    one, other = branched_robot().topology, branched_robot().topology
    assert one is not other and one == other and hash(one) == hash(other)
