"""Fits by `mujoco.sysid` on the logs of `benchmarks.identification`, with the same rows and error measures.

Needs `pip install "mujoco[sysid]"`, mujoco 4.0 or newer. The log-Cholesky parametrisation of the pseudo-inertia
(`InertiaType.Pseudo`) keeps links physically consistent; derivatives are finite differences of rollouts, its default.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

#: time step of the logs, s
DT = 0.002


def is_available() -> bool:
    """True if `mujoco.sysid` and its dependencies can be imported."""
    try:
        from mujoco import sysid
    except ImportError:
        return False
    return hasattr(sysid, "optimize")


def _spec(urdf: str, joints: list[str]) -> Any:
    """A model specification without contacts, with a motor on each joint."""
    import mujoco

    spec = mujoco.MjSpec.from_string(urdf)
    spec.option.timestep = DT
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    for name in joints:
        motor = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.gainprm[0] = 1
        spec.joint(name).range[:] = 0
        spec.joint(name).actfrclimited = False
    return spec


def _joint_writer(kind: str, joint: str):
    """A function that writes a joint parameter; of polynomials (damping) it writes the first coefficient."""

    def write(spec, p):
        field = getattr(spec.joint(joint), kind)
        if np.ndim(field):
            field[0] = p.value[0]
        else:
            setattr(spec.joint(joint), kind, p.value[0])

    return write


def _body_writer(name: str):
    """A function that writes the inertia of a body; it replaces the NaN orientation, which 4.0.0 refuses."""
    from mujoco import sysid

    def write(spec, p):
        sysid.apply_body_inertia(spec, name, p)
        spec.body(name).iquat = [1, 0, 0, 0]

    return write


def _parameters(spec, bodies: list[str], joints: list[str], numbers: dict[str, tuple[float, float]]) -> Any:
    """Inertial parameters of each body, and joint parameters by kind with (initial value, upper bound)."""
    from mujoco import sysid

    model, found = spec.compile(), sysid.ParameterDict()
    for name in bodies:
        found.add(sysid.body_inertia_param(spec, model, name, sysid.InertiaType.Pseudo, modifier=_body_writer(name)))
    for kind, (first, most) in numbers.items():
        for joint in joints:
            name = f"{kind}_{joint}"
            found.add(sysid.Parameter(name, first, 0.0, most, modifier=_joint_writer(kind, joint)))
    return found


class Pendulum:
    """Output-error fit of a double pendulum: windows simulated from measured states, with delayed efforts."""

    def __init__(self, urdf: Path, joints: list[str], length: float, lead: float = 0.1):
        self.joints, self.length, self.lead = joints, round(length / DT), round(lead / DT)
        self.spec = _spec(urdf.read_text(), joints)
        self.model = self.spec.compile()

    def windows(self, logs, stride: float) -> tuple[np.ndarray, ...]:
        """Initial states, efforts from `lead` before the start, and measured coordinates of each window."""
        from mujoco import sysid

        states, efforts, measured = [], [], []
        for log in logs:
            q, v, u = (np.asarray(x) for x in (log.q, log.v, log.effort))
            for k in range(self.lead, len(q) - self.length, round(stride / DT)):
                states.append(sysid.create_initial_state(self.model, q[k], v[k]))
                efforts.append(u[k - self.lead : k + self.length + 1])
                measured.append(q[k + 1 : k + self.length + 1])
        return tuple(np.stack(x) for x in (states, efforts, measured))

    def simulate(self, models: list, late: list[np.ndarray], windows) -> np.ndarray:
        """Simulated coordinates after each step, `(models * windows, steps, joints)`."""
        import mujoco
        from mujoco import rollout

        states, efforts, _ = windows
        at = self.lead + np.arange(self.length)[:, None] + 0.5  # the middle of each step
        controls = []
        for delay in late:
            s = np.clip(at - delay / DT, 0, efforts.shape[1] - 1.001)
            k, joint = np.floor(s).astype(int), np.arange(len(self.joints))
            w = s - k
            controls.append((1 - w) * efforts[:, k, joint] + w * efforts[:, k + 1, joint])
        many = len(states)
        each = [model for model in models for _ in range(many)]
        data = [mujoco.MjData(models[0])]
        found, _ = rollout.rollout(each, data, np.tile(states, (len(models), 1)), np.concatenate(controls))
        return found[:, :, 1 : 1 + len(self.joints)]

    def residual(self, windows):
        """The residual function for `sysid.optimize`, over all windows."""
        from mujoco import sysid

        def residual(x, params):
            models, late = [], []
            for column in np.atleast_2d(x.T):
                params.update_from_vector(column)
                models.append(sysid.apply_param_modifiers(params, self.spec))
                late.append(np.array([params[f"delay_{joint}"].value[0] for joint in self.joints]))
            error = windows[2] - self.simulate(models, late, windows).reshape(len(models), *windows[2].shape)
            error = error[:, :, 9::10].reshape(len(models), -1)
            return [error[0] if x.ndim == 1 else error.T], None, None

        return residual

    def fit(self, logs, max_iters: int) -> tuple[Any, float]:
        """Fitted parameters and wall time, s."""
        from mujoco import sysid

        begin = time.perf_counter()
        numbers = {"damping": (0.01, 1.0), "frictionloss": (0.2, 2.0), "armature": (0.002, 0.05)}
        params = _parameters(self.spec, ["Link1", "Link2"], self.joints, numbers)
        for joint in self.joints:
            params.add(sysid.Parameter(f"delay_{joint}", 0.01, 0.0, 0.09))
        windows = self.windows(logs, self.length * DT / 2)
        found, _ = sysid.optimize(params, self.residual(windows), verbose=False, max_iters=max_iters)
        return found, time.perf_counter() - begin

    def error(self, params, logs, every: int = 5) -> float:
        """Root mean square error of simulated coordinates over consecutive windows, rad."""
        from mujoco import sysid

        windows = self.windows(logs, self.length * DT)
        model = sysid.apply_param_modifiers(params, self.spec)
        late = [np.array([params[f"delay_{joint}"].value[0] for joint in self.joints])]
        error = (windows[2] - self.simulate([model], late, windows))[:, every - 1 :: every]
        return float(np.sqrt(np.mean(error**2)))


class Inverse:
    """Inverse-dynamics fit: the residual of `mj_inverse` efforts, with the parameters and solver of `mujoco.sysid`.

    The library itself simulates, which diverges within tenths of a second for a robot under position control.
    """

    def __init__(self, urdf: str, joints: list[str]):
        self.joints, self.spec = joints, _spec(urdf, joints)
        self.model = self.spec.compile()

    def efforts(self, model, offset, log) -> np.ndarray:
        """Efforts `(rows, joints)`, with an offset per joint."""
        import mujoco

        data = mujoco.MjData(model)
        found = np.empty(np.shape(log.q))
        for k, (q, v, a) in enumerate(zip(*(np.asarray(x) for x in (log.q, log.v, log.a)), strict=True)):
            data.qpos, data.qvel, data.qacc = q, v, a
            mujoco.mj_inverse(model, data)
            found[k] = data.qfrc_inverse
        return found + offset

    def predicted(self, params, log) -> np.ndarray:
        """Predicted efforts along a log."""
        from mujoco import sysid

        offset = np.array([params[f"offset_{joint}"].value[0] for joint in self.joints])
        return self.efforts(sysid.apply_param_modifiers(params, self.spec), offset, log)

    def fit(self, logs, deviations: np.ndarray, max_iters: int) -> tuple[Any, float]:
        """Fitted parameters and wall time, s; residuals are weighted by the inverse deviation of each joint."""
        from mujoco import sysid

        begin = time.perf_counter()
        bodies = [self.model.body(self.model.joint(joint).bodyid[0]).name for joint in self.joints]
        params = _parameters(self.spec, bodies, self.joints, {"damping": (0.1, 10.0), "frictionloss": (0.1, 10.0)})
        for joint in self.joints:
            params.add(sysid.Parameter(f"offset_{joint}", 0.0, -5.0, 5.0))

        def residual(x, params):
            columns = []
            for column in np.atleast_2d(x.T):
                params.update_from_vector(column)
                residuals = [np.asarray(log.effort) - self.predicted(params, log) for log in logs]
                columns.append((np.concatenate(residuals) / deviations).ravel())
            return [columns[0] if x.ndim == 1 else np.stack(columns, 1)], None, None

        found, _ = sysid.optimize(params, residual, verbose=False, max_iters=max_iters)
        return found, time.perf_counter() - begin
