"""Kinematic calibration on measured markers of a real robot, on poses that were not fitted.

    python -m benchmarks._calibration --tiago DIR [--out FILE.md]

The TIAGo's folder holds 35 static poses: positions of three markers on the hand, by cameras, and of the lift and seven
joints. Where the base stands before the cameras and where the markers are on the hand is not known and fitted always;
every third pose is held out. The geometry is believed to a hundredth of its numbers, to 1 mm and 1 mrad where these
are zero, and measured positions to 3 mm; the loss is Cauchy's, since some poses are far off. Errors are root mean
squares of distances over all markers and poses of a set, far ones included.
"""

import argparse
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

import jaxdyn as jd
from jaxdyn.identification import Cauchy, FramePoses, GeometricPrior, Log, Physical, fit
from jaxdyn.model import to_builder

HEAD = ("case", "fitted", "parameters", "markers fitted, mm", "markers held out, mm", "s")
JOINTS = ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8)))
BESIDE = (
    *("base_laser", "base_sonar", "base_mic", "base_antenna", "base_imu", "base_cover", "suspension", "caster", "head"),
    *("rgbd", "torso_fixed_column", "arm_tool", "cover"),
)
MARKERS = ("marker1", "marker2", "marker3")
PLACE = ("joints[root_joint].translation", "joints[root_joint].rotation", "frames[marker*].translation")
GEOMETRY = ("joints[arm_?_joint].translation", "joints[arm_?_joint].rotation")


def measured(folder: Path) -> tuple[jd.Model, Log]:
    """The robot, placed so that its hand is about where the markers are, and the log of poses."""
    table = np.loadtxt(folder / "calibration" / "qualysis_base_hand_calibration.csv", delimiter=",", skiprows=1)
    model = jd.reduce_joints(jd.load_urdf(folder / "tiago_48_schunk.urdf"), JOINTS)
    for name in model.link_names:  # wheels, head, sensors, gripper: all that does not carry the hand
        if name in model.link_names and name.startswith(BESIDE):
            model = jd.remove_link(model, name)
    builder = to_builder(model)
    for name in MARKERS:
        builder.add_frame(name, "arm_7_link")
    model = builder.build()
    q, p = table[:, 12:], table[:, :9].reshape(-1, 3, 3)
    hand = np.asarray(jax.vmap(lambda x: jd.frame_pose(model, x, "arm_7_link").translation)(jnp.asarray(q)))
    middle = p.mean(1)
    turn, _ = Rotation.align_vectors(middle - middle.mean(0), hand - hand.mean(0))
    x, y, z, w = turn.as_quat()
    row = model.joint_names.index("root_joint")
    placed = model.placements.translation.at[row].set(middle.mean(0) - turn.apply(hand.mean(0)))
    turned = model.placements.rotation.at[row].set(jnp.array([w, x, y, z]))
    model = eqx.tree_at(lambda m: (m.placements.translation, m.placements.rotation), model, (placed, turned))
    nothing = np.zeros_like(q)
    frames = {name: (None, p[:, k]) for k, name in enumerate(MARKERS)}
    return model, Log(np.arange(len(q)), q, nothing, nothing, nothing, "poses", frames=frames)


def calibration(folder: Path) -> list[tuple[str, ...]]:
    """Rows of the table: with the geometry of the description, and with that of the fit."""
    model, log = measured(folder)
    held = np.arange(log.num_samples) % 3 == 1
    rows = []
    method = FramePoses(solver=Physical(reweight=2, loss=Cauchy()))
    weights, prior = np.full(9, 1 / 0.003), GeometricPrior(spread=1 / 0.01**2)
    for label, paths, belief in (
        ("base and markers", PLACE, None),
        ("geometry of the arm as well", (*PLACE, *GEOMETRY), prior),
    ):
        begin = time.perf_counter()
        result = fit(
            model,
            log.rows(~held),
            paths,
            method,
            held_out=log.rows(held),
            prior=belief,
            weights=weights,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
        spent = time.perf_counter() - begin
        model = result.model if belief is None else model
        rms = (np.sqrt(np.sum(np.square([getattr(e, key) for e in result.errors])) / 3) for key in ("fit", "held_out"))
        errors = (f"{1000 * x:.2f}" for x in rms)
        count = f"{len(result.base)} of {len(result.parameters)} ({result.status.name})"
        rows.append(("TIAGo, markers on the hand", label, count, *errors, f"{spent:.1f}"))
    return rows


def main():
    """Prints the table, and writes it where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiago", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    parser.add_argument("--quick", action="store_true", help="does nothing, since there are only 35 poses")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    lines = [f"| {' | '.join(row)} |" for row in (HEAD, *calibration(options.tiago))]
    lines.insert(1, "|" + " --- |" * len(HEAD))
    print("\n".join(lines))
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
