"""Fits by FIGAROH's own functions on given rows; runs under any Python that has `figaroh`, and imports nothing of ours.

    python _figaroh_worker.py IN.npz OUT.npz

Regressor, elimination of columns, double QR, weights by the residuals of joints and the physically consistent fit are
FIGAROH's (figaroh 1.0.2, `tools.regressor`, `tools.qrdecomposition`, `identification`).
"""

import sys
import time
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
from figaroh.identification.base_identification import BaseIdentification
from figaroh.identification.parameter import add_standard_additional_parameters, get_standard_parameters
from figaroh.identification.physical_fit import PhysicalPolicy, build_problem, solve_direct_effort_fit
from figaroh.tools.qrdecomposition import QRDecomposer
from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced, get_index_eliminate

#: what BaseIdentification takes where its configuration is silent
TOLERANCE = 1e-6


class Rows:
    """Regressor rows of a robot, all samples of the first joint first."""

    def __init__(self, urdf: str, joints: list[str]):
        self.model = pin.buildModelFromXML(urdf)
        self.robot = SimpleNamespace(model=self.model, data=self.model.createData())
        ids = [self.model.getJointId(name) for name in joints]
        self.place = np.argsort([self.model.joints[k].idx_v for k in ids])

    def settings(self, extras: bool) -> dict:
        """What FIGAROH calls identif_config."""
        on = dict.fromkeys(("has_friction", "has_joint_offset"), extras)
        many = [0.0] * self.model.nv
        values = {"fv": many, "fs": many, "Ia": many, "off": many}
        return {**on, **values, "has_actuator_inertia": False, "act_idxv": list(range(self.model.nv))}

    def regressor(self, q, v, a, extras: bool = True):
        """`W` of these samples."""
        order = self.place
        return build_regressor_basic(self.robot, q[:, order], v[:, order], a[:, order], self.settings(extras))

    def stacked(self, effort):
        """Efforts in the order of the rows."""
        return effort[:, self.place].T.reshape(-1)

    def unstacked(self, rows):
        """Rows as `(n, nv)` in the order of the given joints."""
        return rows.reshape(self.model.nv, -1).T[:, np.argsort(self.place)]

    def parameters(self, extras: bool = True) -> dict:
        """Names and numbers of the model, in the order of columns."""
        more = add_standard_additional_parameters(self.model, self.settings(True)) if extras else {}
        return {**get_standard_parameters(self.model), **more}


def base(rows: Rows, w, tau, standard: dict):
    """Base regressor, its columns in `w`, least squares and the model's own base parameters."""
    gone, left = get_index_eliminate(w, standard, TOLERANCE)
    kept = np.array([k for k in range(w.shape[1]) if k not in set(gone)])
    decomposer = QRDecomposer(tolerance=TOLERANCE)
    found = decomposer.double_decomposition(tau, build_regressor_reduced(w, gone), left, standard)
    return found[0], kept[np.array(decomposer.get_base_indices())], found[2], found[3], found[4]


def main(given, to):
    """Reads the rows, fits, and writes predictions and seconds."""
    x = np.load(given, allow_pickle=False)
    rows = Rows(str(x["urdf"]), [str(name) for name in x["joints"]])
    out = {}
    begin = time.perf_counter()
    w = rows.regressor(x["q"], x["v"], x["a"])
    tau, standard = rows.stacked(x["effort"]), rows.parameters()
    wb, columns, names, phi, _ = base(rows, w, tau, standard)
    out["seconds_ordinary"] = time.perf_counter() - begin
    blocks = rows.model.nv
    state = SimpleNamespace(phi_base=phi, _compute_wls_standard_deviations=lambda c, p: None)
    _, variances = BaseIdentification._calculate_joint_variances(state, wb, tau, blocks)
    weighted, _ = BaseIdentification._solve_weighted_least_squares(state, wb, tau, variances)
    out["seconds_weighted"] = time.perf_counter() - begin
    unseen = rows.regressor(x["held_q"], x["held_v"], x["held_a"])
    for label, p in (("ordinary", phi), ("weighted", weighted)):
        out[f"fitted_{label}"], out[f"held_{label}"] = (rows.unstacked(m[:, columns] @ p) for m in (w, unseen))
    out["rank"], out["names"] = len(phi), np.array(names)
    prior = np.array(list(standard.values()))
    joints = list(rows.model.names[1:])
    weights = 1 / np.sqrt(variances)
    for k, strength in enumerate(x["prior_weights"]):
        begin = time.perf_counter()
        policy = PhysicalPolicy(prior_weight=float(strength))
        problem = build_problem(w, tau, list(standard), joints, prior=prior, policy=policy, row_weight=weights)
        # over the columns that act: over all of them the solver divides by zero on the arm of seven joints
        record = solve_direct_effort_fit(problem, variables="params_r")
        out[f"seconds_physical{k}"] = out["seconds_weighted"] + time.perf_counter() - begin
        verdict = "accepted" if record.accepted else "not accepted"
        out[f"status{k}"] = f"{record.solver_status} ({record.exception or verdict})"
        if record.theta is not None:
            out[f"fitted_physical{k}"], out[f"held_physical{k}"] = (
                rows.unstacked(m @ record.theta) for m in (w, unseen)
            )
            out[f"bodies{k}"] = f"{sum(v['ok'] for v in record.feasibility.values())} of {len(record.feasibility)}"
    w = rows.regressor(x["random_q"], x["random_v"], x["random_a"], extras=False)
    standard = rows.parameters(extras=False)
    wb, columns, names, _, nominal = base(rows, w, np.zeros(len(w)), standard)
    out["span"] = np.stack([rows.unstacked(column) for column in w[:, columns].T], axis=-1)
    out["nominal"] = rows.unstacked(wb @ np.asarray(nominal))
    out["inertial_names"] = np.array(names)
    np.savez(to, **out)


if __name__ == "__main__":
    main(*sys.argv[1:])
