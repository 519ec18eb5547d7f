"""MuJoCo MJX: smooth dynamics only, by its public functions."""

from benchmarks._export import to_mjcf
from benchmarks._problems import (
    FORWARD,
    MASS,
    RNEA,
    Problem,
    accelerations_from_mujoco,
    forces_from_mujoco,
    mass_from_mujoco,
    to_mujoco,
)

ENGINE = "MJX"


def _functions(mjx):
    """Each work as a function of the model, an empty `Data` and the state."""

    def moved(m, d, q, v):
        return mjx.com_vel(m, mjx.com_pos(m, mjx.kinematics(m, d.replace(qpos=q, qvel=v))))

    def rnea(m, d, q, v, a):
        return mjx.rne(m, moved(m, d, q, v).replace(qacc=a), flg_acc=True).qfrc_bias

    def mass(m, d, q):
        d = mjx.com_pos(m, mjx.kinematics(m, d.replace(qpos=q)))
        return mjx.full_m(m, mjx.crb(m, d))

    def forward(m, d, q, v, tau):
        return mjx.forward(m, d.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc

    return {RNEA: rnea, MASS: mass, FORWARD: forward}


def cases(p: Problem):
    """For each work: `(function of (model, data, *state), (model, data), state, back to jaxdyn)`."""
    import mujoco
    from mujoco import mjx

    model = mjx.put_model(mujoco.MjModel.from_xml_string(to_mjcf(p.model)))
    data = mjx.make_data(model)
    q, v, a, tau = to_mujoco(p)
    run = _functions(mjx)
    return {
        RNEA: (run[RNEA], (model, data), (q, v, a), lambda x: forces_from_mujoco(p, x)),
        MASS: (run[MASS], (model, data), (q,), lambda x: mass_from_mujoco(p, x)),
        FORWARD: (run[FORWARD], (model, data), (q, v, tau), lambda x: accelerations_from_mujoco(p, x)),
    }
