"""All quantities that Pinocchio computes, on random trees, to a relative error of 1e-10 in float64."""

import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from tests.dynamics._cases import TOLERANCE, call, model, state
from tests.oracles import PINOCCHIO_KINDS, random_model, random_state, relative_error, to_pinocchio
from tests.oracles._pinocchio import swap


def _world_momentum(o, q, v):
    h = pin.computeCentroidalMomentum(o.model, o.data, q, v)
    return np.r_[h.angular + np.cross(o.data.com[0], h.linear), h.linear]


def _energy(o, q, v):
    # the energy of the rotors is added here, since not all releases of Pinocchio include it
    pin.forwardKinematics(o.model, o.data, q, v)
    bodies = [0.5 * o.data.v[i].dot(o.model.inertias[i] * o.data.v[i]) for i in range(1, o.model.njoints)]
    return sum(bodies) + 0.5 * v @ (o.model.armature * v)


def _velocity_forces(o, q, v):
    gravity = pin.computeGeneralizedGravity(o.model, o.data, q).copy()
    return pin.nonLinearEffects(o.model, o.data, q, v) - gravity


def _wrenches(o, q, v, a, ext):
    """Wrench through the joint of each moving body, in body axes."""
    pin.rnea(o.model, o.data, q, v, a, ext)
    return np.array([swap(o.data.f[i].vector) for i in range(1, o.model.njoints)])


def _moving_links(m):
    return np.array(m.topology.bodies)


# name: (ours, theirs); the state is (q, v, a, external), with a as the effort for forward dynamics
QUANTITIES = {
    "rnea": (
        lambda m, q, v, a, e: call("rnea", m, q, v, a, e),
        lambda o, q, v, a, e: o.v_back(pin.rnea(o.model, o.data, q, v, a, e)),
    ),
    "forward_dynamics": (
        lambda m, q, v, a, e: call("forward_dynamics", m, q, v, a, e),
        lambda o, q, v, a, e: o.v_back(pin.aba(o.model, o.data, q, v, a, e)),
    ),
    "bias_forces": (
        lambda m, q, v, a, e: call("bias_forces", m, q, v),
        lambda o, q, v, a, e: o.v_back(pin.nonLinearEffects(o.model, o.data, q, v)),
    ),
    "gravity_forces": (
        lambda m, q, v, a, e: call("gravity_forces", m, q),
        lambda o, q, v, a, e: o.v_back(pin.computeGeneralizedGravity(o.model, o.data, q)),
    ),
    "coriolis_matrix": (
        lambda m, q, v, a, e: call("coriolis_matrix", m, q, v) @ v,
        lambda o, q, v, a, e: o.v_back(_velocity_forces(o, q, v)),
    ),
    "kinetic_energy": (
        lambda m, q, v, a, e: call("kinetic_energy", m, q, v),
        lambda o, q, v, a, e: _energy(o, q, v),
    ),
    "potential_energy": (
        lambda m, q, v, a, e: call("potential_energy", m, q),
        lambda o, q, v, a, e: pin.computePotentialEnergy(o.model, o.data, q),
    ),
    "momentum": (
        lambda m, q, v, a, e: call("momentum", m, q, v),
        lambda o, q, v, a, e: _world_momentum(o, q, v),
    ),
    "centroidal_momentum_matrix": (
        lambda m, q, v, a, e: call("centroidal_momentum_matrix", m, q),
        lambda o, q, v, a, e: o.columns_back(swap(pin.ccrba(o.model, o.data, q, v).T).T),
    ),
    "joint_reactions": (
        lambda m, q, v, a, e: call("joint_reactions", m, q, v, a, e).wrench[_moving_links(m)],
        _wrenches,
    ),
}


def _compare(m, q, v, a, e, name):
    o = to_pinocchio(m)
    ours, theirs = QUANTITIES[name]
    want = theirs(o, o.q(q), o.v(v), o.v(a), o.external(e))
    assert relative_error(ours(m, q, v, a, e), want) < TOLERANCE


exhaustive = lambda *x: pytest.param(*x, marks=pytest.mark.exhaustive)
#: quantities that would be wrong if a heavy link fixed to the world were counted
WEIGHED = ("potential_energy", "centroidal_momentum_matrix", "momentum")
ON_A_BASE = [
    pytest.param("based", x, marks=pytest.mark.slow if x == "centroidal_momentum_matrix" else pytest.mark.exhaustive)
    for x in WEIGHED
]


@pytest.mark.parametrize(
    ("robot", "name"),
    [*(("pair", x) for x in QUANTITIES), *ON_A_BASE, *(exhaustive(r, x) for r in ("arm", "tree") for x in QUANTITIES)],
)
def test_quantity(robot, name):
    _compare(model(robot), *state(robot), name)


@pytest.mark.parametrize("robot", ["pair", exhaustive("arm"), exhaustive("tree")])
def test_mass_matrix(robot):
    q = state(robot)[0]
    want = to_pinocchio(model(robot)).mass_matrix(q)
    assert relative_error(call("mass_matrix", model(robot), q), want) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["based", exhaustive("constant")])
def test_rate_of_the_centroidal_momentum_matrix(robot):
    m, (q, v, *_) = model(robot), state(robot)
    o = to_pinocchio(m)
    want = o.columns_back(swap(pin.dccrba(o.model, o.data, o.q(q), o.v(v)).T).T)
    assert relative_error(call("centroidal_momentum_matrix_derivative", m, q, v), want) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["arm", exhaustive("constant")])
def test_derivatives_of_inverse_dynamics(robot):
    m, (q, v, a, e) = model(robot), state(robot)
    o = to_pinocchio(m)
    pin.computeRNEADerivatives(o.model, o.data, o.q(q), o.v(v), o.v(a), o.external(e))
    d = call("rnea_derivatives", m, q, v, a, e)
    assert relative_error(d.dq, o.matrix_back(o.data.dtau_dq)) < TOLERANCE
    assert relative_error(d.dv, o.matrix_back(o.data.dtau_dv)) < TOLERANCE
    assert relative_error(d.da, o.mass_matrix(q)) < TOLERANCE


@pytest.mark.parametrize("robot", ["arm", exhaustive("constant")])
def test_derivatives_of_forward_dynamics(robot):
    m, (q, v, tau, e) = model(robot), state(robot)
    o = to_pinocchio(m)
    pin.computeABADerivatives(o.model, o.data, o.q(q), o.v(v), o.v(tau), o.external(e))
    d = call("forward_dynamics_derivatives", m, q, v, tau, e)
    inverse = np.triu(o.data.Minv) + np.triu(o.data.Minv, 1).T
    assert relative_error(d.dq, o.matrix_back(o.data.ddq_dq)) < TOLERANCE
    assert relative_error(d.dv, o.matrix_back(o.data.ddq_dv)) < TOLERANCE
    assert relative_error(d.dtau, o.matrix_back(inverse)) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["arm", exhaustive("bare")])
def test_inertial_regressor(robot):
    """Pinocchio's order of the inertia is xx xy yy xz yz zz, and its bodies are joints."""
    m, (q, v, a, _) = model(robot), state(robot)
    o = to_pinocchio(m)
    theirs = o.rows_back(pin.computeJointTorqueRegressor(o.model, o.data, o.q(q), o.v(v), o.v(a)))
    order = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
    joints = [o.model.getJointId(n) - 1 for n in m.joint_names]
    want = theirs.reshape(m.nv, -1, 10)[:, joints][:, :, order].reshape(m.nv, -1)
    assert relative_error(call("inertial_regressor", m, q, v, a), want) < TOLERANCE


SWEEP = [
    (n, floating, branching, seed)
    for n, seeds in ((1, 2), (2, 2), (5, 2), (12, 1), (25, 1), (50, 1))
    for floating in (False, True)
    for branching in (0.0, 0.6)
    for seed in range(seeds)
    if n > 2 or branching == 0
]


def _refined_accelerations(o, mass, q, v, tau, external):
    """Pinocchio's articulated-body algorithm, and one step of iterative refinement with its own inverse dynamics.

    On a floating chain of 50 links the recursion alone misses efforts of 1e4 N m by 7e-9 N m, which with the least
    eigenvalue of M, 0.04, is a relative error of 4e-10 in the accelerations: more than rounding of the data explains.
    """
    state, wrenches = (o.q(q), o.v(v)), o.external(external)
    a = o.v_back(pin.aba(o.model, o.data, *state, o.v(tau), wrenches)).copy()
    residual = np.asarray(tau) - o.v_back(pin.rnea(o.model, o.data, *state, o.v(a), wrenches))
    return a + np.linalg.solve(mass, residual)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("n", "floating", "branching", "seed"), SWEEP)
def test_sweep(n, floating, branching, seed):
    m = random_model(
        100 * n + seed,
        n,
        branching=branching,
        floating=floating,
        based=not floating,
        fixed_fraction=0.15,
        kinds=PINOCCHIO_KINDS,
    )
    q, v, a, e = random_state(m, seed)
    o = to_pinocchio(m)
    want = o.v_back(pin.rnea(o.model, o.data, o.q(q), o.v(v), o.v(a), o.external(e)))
    assert relative_error(call("rnea", m, q, v, a, e), want) < TOLERANCE
    mass = o.mass_matrix(q)
    assert relative_error(call("mass_matrix", m, q), mass) < TOLERANCE
    # a mass matrix with a condition number above 1e5 costs as many digits of the accelerations
    tolerance = max(TOLERANCE, 1e-15 * np.linalg.cond(mass))
    want = _refined_accelerations(o, mass, q, v, a, e)
    assert relative_error(call("forward_dynamics", m, q, v, a, e), want) < tolerance


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", PINOCCHIO_KINDS)
def test_each_kind(kind):
    m = random_model(5, 4, kinds=(kind,))
    args = random_state(m, 3)
    for name in ("rnea", "forward_dynamics", "bias_forces", "coriolis_matrix", "kinetic_energy"):
        _compare(m, *args, name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("floating", [False, True])
def test_quantity_on_a_large_tree(name, floating):
    m = random_model(8, 30, floating=floating, fixed_fraction=0.15)
    _compare(m, *random_state(m, 1), name)


def test_inverse_dynamics_at_rest_equals_gravity_forces():
    m, (q, *_) = model("pair"), state("pair")
    zero = jnp.zeros(m.nv)
    statics = call("rnea", m, q, zero, zero, jnp.zeros((m.num_links, 6)))
    o = to_pinocchio(m)
    want = o.v_back(pin.computeGeneralizedGravity(o.model, o.data, o.q(q)))
    assert relative_error(statics, want) < TOLERANCE
