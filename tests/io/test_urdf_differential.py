"""Random URDF texts, read by jaxdyn and by Pinocchio: equal models, or a documented difference."""

import itertools

import numpy as np
import pinocchio as pin
import pytest

import jaxdyn as jd
from jaxdyn.joints import Continuous, Fixed, Free, Planar, Prismatic, Revolute

from ._pinocchio import pin_urdf, quantities, some_state
from ._random_urdf import ODDITIES, random_case
from ._urdf_mimics import (
    are_equal,
    has_reduced_mass_matrix,
    mimicking_model,
    native_relations,
    relations_in,
    relations_of,
)

CHUNKS = 40
CHUNK = 500
TOLERANCE = 1e-9


def _matrix(quaternion, translation):
    w, x, y, z = np.asarray(quaternion) / np.linalg.norm(quaternion)
    out = np.eye(4)
    out[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    out[:3, 3] = translation
    return out


def _ten(mass, com, about_com):
    """Mass, first moments and second moments about the origin; they add up over rigidly attached links."""
    second = about_com + mass * ((com @ com) * np.eye(3) - np.outer(com, com))
    return np.r_[mass, mass * com, second.ravel()]


def _moved(body, pose):
    mass, com, about_com = body
    r = pose[:3, :3]
    return _ten(mass, r @ com + pose[:3, 3], r @ about_com @ r.T)


class _Ours:
    """Placements and inertias of jaxdyn's moving joints, links behind fixed joints merged."""

    def __init__(self, model: jd.Model):
        self.model, t = model, model.topology
        leaves = [np.asarray(x) for x in (model.links.mass, model.links.com, model.links.inertia)]
        self.placements, self.inertias, self.joints, rigid = {}, {}, {}, []
        pairs = zip(np.asarray(model.placements.rotation), np.asarray(model.placements.translation), strict=True)
        for i, local in enumerate(_matrix(*pair) for pair in pairs):
            name, parent = t.joint_names[i], t.parents[i]
            joint = model.joint(name).joint
            owner, pose = rigid[parent] if parent >= 0 else ("universe", np.eye(4))
            if isinstance(joint, Fixed):
                rigid.append((owner, pose @ local))
            else:
                self.placements[name], self.joints[name] = (owner, pose @ local), joint
                rigid.append((name, np.eye(4)))
            owner, pose = rigid[-1]
            body = leaves[0][i], leaves[1][i], leaves[2][i]
            self.inertias[owner] = self.inertias.get(owner, 0) + _moved(body, pose)


def _close(a, b):
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.shape != b.shape or not (np.isfinite(a) == np.isfinite(b)).all():
        return False
    finite = np.isfinite(a)
    scale = 1 + np.abs(b[finite]).max(initial=0)
    return bool((a[~finite] == b[~finite]).all() and (np.abs(a[finite] - b[finite]) <= TOLERANCE * scale).all())


def _differences(model: jd.Model, theirs) -> list[str]:
    """What differs between the two models."""
    ours, found = _Ours(model), []
    names = list(theirs.names)
    if set(ours.joints) != set(names[1:]):
        return [f"joints {sorted(ours.joints)} and {sorted(names[1:])}"]
    nq = sum({Continuous: 2, Planar: 4}.get(type(j), j.nq) for j in ours.joints.values())  # Pinocchio's cosine and sine
    nv = model.nv + len(model.topology.mimics)  # Pinocchio's joints are independent
    if (nq, nv) != (theirs.nq, theirs.nv):
        found.append(f"sizes {(nq, nv)} and {(theirs.nq, theirs.nv)}")
    for k, name in enumerate(names[1:], 1):
        owner, pose = ours.placements[name]
        if owner != names[theirs.parents[k]] or not _close(pose, theirs.jointPlacements[k].homogeneous):
            found.append(f"placement of {name}")
        inertia = theirs.inertias[k]
        mine, their = ours.inertias[name], _ten(inertia.mass, inertia.lever, inertia.inertia)
        if not all(_close(mine[part], their[part]) for part in (slice(0, 1), slice(1, 4), slice(4, None))):
            found.append(f"inertia of {name}")
        found += _joint_differences(model, ours.joints[name], theirs.joints[k], name, theirs)
    return found


def _joint_differences(model: jd.Model, joint, other, name: str, theirs) -> list[str]:
    if isinstance(joint, Free | Planar):
        return []
    view, found = model.joint(name), []
    q, number = pin.neutral(theirs), theirs.getJointId(name)
    columns = pin.computeJointJacobian(theirs, theirs.createData(), q, number).reshape(6, theirs.nv)
    column = columns[:, other.idx_v]  # linear half first
    if not _close(joint.subspace(np.zeros(1))[:, 0], np.r_[column[3:], column[:3]]):
        found.append(f"axis of {name}")
    if name in relations_of(model):
        return found  # limits and friction are those of the source
    dof, limits, properties = other.idx_v, model.limits, model.properties
    for what, mine, their in (
        ("effort", limits.effort[view.v], theirs.upperEffortLimit[dof]),
        ("velocity", limits.velocity[view.v], theirs.upperVelocityLimit[dof]),
        ("damping", properties.damping[view.v], theirs.damping[dof]),
        ("friction", properties.friction[view.v], theirs.upperDryFrictionLimit[dof]),
    ):
        if not _close(mine, [their]):
            found.append(f"{what} of {name}")
    if isinstance(joint, Revolute | Prismatic):
        lower, upper = theirs.lowerPositionLimit[other.idx_q], theirs.upperPositionLimit[other.idx_q]
        if not (_close(limits.lower[view.q], [lower]) and _close(limits.upper[view.q], [upper])):
            found.append(f"limits of {name}")
    return found


def _mimic_differences(model: jd.Model, independent, text: str, seed: int) -> list[str]:
    """What differs between the joints that mimic others, in both models and in the text."""
    relations = relations_of(model)
    found = [] if are_equal(relations, relations_in(text)) else [f"mimics {relations} and {relations_in(text)}"]
    mimicking = mimicking_model(text, independent)
    if mimicking is None:
        return found
    if not are_equal(relations, native_relations(mimicking)):
        return [*found, f"mimics {relations} and {native_relations(mimicking)} in Pinocchio"]
    if model.nv != mimicking.nv:
        found.append(f"sizes {model.nv} and {mimicking.nv} of mimicking joints")
    if not has_reduced_mass_matrix(mimicking, independent, relations, seed):
        found.append("mass matrix")
    return found


def _problem(seed: int) -> str | None:
    """The difference between the readers that is not documented, or None."""
    text, oddity = random_case(seed)
    outcome = ODDITIES[oddity].outcome if oddity else "same"
    try:
        ours = jd.parse_urdf(text)
    except jd.FileFormatError as error:
        ours = error
    try:
        theirs = pin.buildModelFromXML(text)
    except (ValueError, RuntimeError) as error:
        theirs = error
    refusals = isinstance(ours, Exception), isinstance(theirs, Exception)
    expected = {"both refuse": (True, True), "jaxdyn refuses": (True, False), "Pinocchio refuses": (False, True)}
    if refusals != expected.get(outcome, (False, False)):
        return f"seed {seed}, {oddity}: jaxdyn {ours if refusals[0] else 'reads'}, Pinocchio {theirs!s:.300}"
    if any(refusals):
        return None
    differences = [x for x in _differences(ours, theirs) if x.split()[0] not in outcome]
    differences += _mimic_differences(ours, theirs, text, seed)
    return f"seed {seed}, {oddity}: {', '.join(differences)}\n{text}" if differences else None


def _check(seeds):
    problems = [problem for problem in map(_problem, seeds) if problem]
    assert not problems, f"{len(problems)} texts differ, among them\n" + "\n".join(problems[:5])


@pytest.mark.slow
def test_random_urdf_as_in_pinocchio():
    _check(range(300))
    both = [text for text, _ in map(random_case, range(300)) if _has_mimics_in_pinocchio(text)]
    assert len(both) >= 15  # Pinocchio has fewer kinds of mimic joints
    assert {random_case(seed)[1] for seed in range(3000)} == {*ODDITIES, None}


def _has_mimics_in_pinocchio(text: str) -> bool:
    try:
        return len(pin.buildModelFromXML(text, mimic=True).mimicking_joints) > 0
    except ValueError:
        return False


def _seeds_with_mimics(count: int) -> list[int]:
    """Seeds of robots without oddities, in which two joints or more mimic others."""
    cases = ((seed, *random_case(seed)) for seed in itertools.count())
    found = (seed for seed, text, oddity in cases if oddity is None and text.count("<mimic") > 1)
    return list(itertools.islice(found, count))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", _seeds_with_mimics(8))
def test_dynamics_of_random_mimic_joints_as_in_pinocchio(seed):
    text = random_case(seed)[0]
    model = jd.parse_urdf(text)
    theirs, state = pin_urdf(model, text), some_state(model, seed)
    for ours, other in zip(quantities(model, state[0], state[1]), theirs.quantities(*state), strict=True):
        np.testing.assert_allclose(ours, other, rtol=0, atol=TOLERANCE * (1 + np.abs(other).max()))


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_many_random_urdf_as_in_pinocchio(chunk):
    _check(range(chunk * CHUNK, (chunk + 1) * CHUNK))
