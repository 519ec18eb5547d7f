"""Root loci of a joint with an elastic transmission under motor-side, joint-side and torque feedback.

    python benchmarks/elastic.py [--plot docs/img/elastic_root_locus.png]

prints the poles over the velocity gain for the data of docs/elastic.md.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn import control as ct
from jaxdyn.actuators import Stage, add_elastic_transmission
from jaxdyn.simulation import Feedback, State, System
from jaxdyn.spatial import Inertia

LOAD, KP = 0.8, 400.0
#: title, measurement and gains of the torque
CASES = (
    ("motor side", ct.motor_side, 0.0, 0.0),
    ("joint side", ct.joint_side, 0.0, 0.0),
    ("joint side and torque sensor", ct.joint_side, 0.5, 0.05),
)
GAINS = np.geomspace(0.4, 400.0, 151)  # kd, N m s/rad
MARKED = 40.0


def elastic_joint():
    """A wheel behind an elastic transmission."""
    body = Inertia(1.0, jnp.zeros(3), LOAD * jnp.eye(3))
    builder = jd.ModelBuilder()
    builder.add_link("link", "world", jd.joints.Revolute([0, 0, 1]), body, joint_name="hinge")
    stage = Stage(80.0, 5000.0, input_inertia=2.5e-4, output_inertia=0.02)
    return add_elastic_transmission(builder.build(), "hinge", stage)


def root_locus(measurement, kt: float, ks: float) -> np.ndarray:
    """Poles for each velocity gain, `(gains, 4)`, 1/s."""
    robot, springs = elastic_joint()

    def state_matrix(kd):
        law = ct.ElasticJointPD(robot, (springs,), jnp.zeros(2), KP, kd, measurement, kt, ks)
        system = System(robot, (springs, Feedback(law)))

        def rate(y):
            start = system.initial(y[:2], y[2:])
            derivative = system.rate(0.0, State(y[:2], y[2:], start.parts))
            return jnp.concatenate([derivative.q, derivative.v])

        return jax.jacfwd(rate)(jnp.zeros(4))

    return np.linalg.eigvals(jax.jit(jax.vmap(state_matrix))(jnp.asarray(GAINS)))


def plot(path: Path, loci: list[np.ndarray]):
    """One picture for each measurement; the colour is the gain, a ring marks kd = 40 N m s/rad."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharex=True, sharey=True)
    marked = np.abs(GAINS - MARKED).argmin()
    for axis, (title, *_), poles in zip(axes, CASES, loci, strict=True):
        colour = np.repeat(np.log10(GAINS)[:, None], 4, 1)
        points = axis.scatter(poles.real, poles.imag, c=colour, s=5, cmap="viridis")
        axis.scatter(poles[marked].real, poles[marked].imag, s=45, facecolors="none", edgecolors="black")
        axis.axvline(0, color="grey", linewidth=0.8)
        axis.set(title=title, xlabel="real part, 1/s", xlim=(-130, 60), ylim=(-140, 140))
    axes[0].set_ylabel("imaginary part, 1/s")
    figure.colorbar(points, ax=axes, label="log10 of kd, N m s/rad")
    figure.savefig(path, dpi=110)


def main():
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, help="file for the picture")
    args = parser.parse_args()
    loci = [root_locus(*case[1:]) for case in CASES]
    print(f"largest real part of the poles, 1/s, kp = {KP:g} N m/rad")
    print(f"{'kd':>8}" + "".join(f"{title:>32}" for title, *_ in CASES))
    for k in range(0, len(GAINS), 10):
        print(f"{GAINS[k]:8.3g}" + "".join(f"{poles[k].real.max():32.3f}" for poles in loci))
    if args.plot:
        plot(args.plot, loci)


if __name__ == "__main__":
    main()
