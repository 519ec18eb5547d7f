"""Mass matrix, bias, inverse and forward dynamics, passive forces and energy against MuJoCo."""

import equinox as eqx
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.dynamics._cases import TOLERANCE, call, model, state
from tests.oracles import MUJOCO_KINDS, random_model, random_state, relative_error, to_mujoco


def _check(m, q, v, a):
    o = to_mujoco(m)
    data = o.set(q, v)
    p = o.tangent(q)
    errors = {"mass_matrix": relative_error(call("mass_matrix", m, q), o.mass_matrix(q))}
    # the bias at zero acceleration of ours is MuJoCo's at the acceleration that its free joint then has
    shift = np.zeros(m.nv)
    mujoco.mj_mulM(o.model, data, shift, o.a(q, v, np.zeros(m.nv)))
    errors["bias_forces"] = relative_error(call("bias_forces", m, q, v), p.T @ (data.qfrc_bias + shift))
    data.qacc[:] = o.a(q, v, a)
    mujoco.mj_inverse(o.model, data)
    inverse = p.T @ (data.qfrc_inverse + data.qfrc_passive)
    errors["rnea"] = relative_error(call("rnea", m, q, v, a, jnp.zeros((m.num_links, 6))), inverse)
    data.qfrc_applied[:] = p @ np.asarray(a) - data.qfrc_passive
    mujoco.mj_forward(o.model, data)
    want = o.a_back(q, v, data.qacc)
    errors["forward_dynamics"] = relative_error(call("forward_dynamics", m, q, v, a, jnp.zeros((m.num_links, 6))), want)
    return errors


@pytest.mark.slow
def test_floating_tree():
    q, v, a, _ = state("mujoco")
    errors = _check(model("mujoco"), q, v, a)
    assert max(errors.values()) < TOLERANCE, errors


@pytest.mark.slow
def test_energies_and_momentum():
    m, (q, v, *_) = model("mujoco"), state("mujoco")
    o = to_mujoco(m)
    data, errors = o.set(q, v), {}
    o.model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    o.model.jnt_stiffness[:] = 0  # springs are passive forces of ours, not part of the potential energy
    mujoco.mj_energyPos(o.model, data)
    mujoco.mj_energyVel(o.model, data)
    errors["potential_energy"] = relative_error(call("potential_energy", m, q), data.energy[0])
    errors["kinetic_energy"] = relative_error(call("kinetic_energy", m, q, v), data.energy[1])
    mujoco.mj_subtreeVel(o.model, data)
    p, centre = m.links.mass.sum() * data.subtree_linvel[0], data.subtree_com[0]
    want = np.r_[data.subtree_angmom[0] + np.cross(centre, p), p]
    errors["momentum"] = relative_error(call("momentum", m, q, v), want)
    assert max(errors.values()) < TOLERANCE, errors


def test_passive_forces():
    """Damping and springs of joints with one coordinate, without Coulomb friction, a constraint in MuJoCo."""
    m, (q, v, *_) = model("mujoco"), state("mujoco")
    m = eqx.tree_at(lambda m: m.properties.friction, m, jnp.zeros(m.nv))
    data = to_mujoco(m).set(q, v)
    scalar = np.zeros(m.nv, bool)
    for name in m.joint_names:
        view = m.joint(name)
        scalar[view.v] = view.joint.nv == view.joint.nq
    ours = call("passive_forces", m, q, v)
    assert scalar.sum() >= 6
    assert relative_error(np.asarray(ours)[scalar], data.qfrc_passive[scalar]) < TOLERANCE


@pytest.mark.exhaustive
@pytest.mark.parametrize(("n", "floating"), [(1, False), (3, True), (8, False), (20, True), (50, False)])
def test_sweep(n, floating):
    m = random_model(n, n, kinds=MUJOCO_KINDS, floating=floating, fixed_fraction=0.1)
    q, v, a, _ = random_state(m, 2)
    errors = _check(m, q, v, a)
    # MuJoCo solves with the mass matrix, whose condition number costs digits
    errors["forward_dynamics"] /= max(1.0, 1e-5 * np.linalg.cond(call("mass_matrix", m, q)))
    assert max(errors.values()) < TOLERANCE, errors
