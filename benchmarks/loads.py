"""The figures of docs/loads.md: a UR5 whose arms are aluminium tubes moves 5 kg from a table to a shelf.

python benchmarks/loads.py [--out docs/img]
"""

import argparse
import itertools
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.beams import Beam, Material, Tube
from jaxdyn.loads import buckling_utilisation, deflections, internal_loads, stresses, worst_case
from jaxdyn.paths import quintic
from jaxdyn.spatial import Pose, point_mass, rpy_to_matrix
from jaxdyn.viz import plot_beams, plot_internal_loads

#: pick, over the table, place, rad
CONFIGURATIONS = (
    (0.0, -0.7, 1.5, -2.4, -1.57, 0.0),
    (1.2, -1.3, 1.3, -1.6, -1.57, 0.4),
    (2.4, -0.5, 0.4, -1.4, -1.57, 0.8),
)
DURATION = 0.8  # s, of each of the two moves
PAYLOAD = 5.0  # kg


def make_arm() -> jd.Model:
    """A UR5 with a payload at its flange."""
    load = jd.ModelBuilder().add_link("payload", "world", None, point_mass(PAYLOAD)).build()
    return jd.attach(jd.robots.ur5(), load, "link6", translation=(0.0, 0.0, 0.1))


def make_beams(radius=0.035, wall=0.002) -> dict[str, Beam]:
    """Tubes of upper arm and forearm, along -x of their links."""
    turn = rpy_to_matrix(np.array([0.0, 0.0, np.pi]))
    tube, thin = Tube(radius, radius - wall), Tube(0.8 * radius, 0.8 * radius - wall)
    upper = Beam(tube, Material.aluminium(), 0.425, placement=Pose(turn, [0.0, 0.0, 0.1134]))
    fore = Beam(thin, Material.aluminium(), 0.39225, placement=Pose(turn, [0.0, 0.0, 0.0265]))
    return {"link2": upper, "link3": fore}


def pick_and_place(count: int = 101):
    """Times, configurations, velocities and accelerations of two moves from rest to rest."""
    points = [jnp.array(x) for x in CONFIGURATIONS]
    ts = jnp.linspace(0.0, DURATION, count)
    moves = [jax.vmap(quintic(a, b, DURATION))(ts) for a, b in itertools.pairwise(points)]
    return jnp.concatenate([ts, DURATION + ts]), *(jnp.concatenate(x) for x in zip(*moves, strict=True))


@jax.jit
def loads_along(model, beams, q, v, a):
    """Internal loads, stresses and deflections at all times."""
    loads = jax.vmap(lambda *state: internal_loads(model, beams, *state))(q, v, a)
    return loads, stresses(beams, loads), jax.vmap(lambda *state: deflections(model, beams, *state))(q, v, a)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="docs/img")
    out = Path(parser.parse_args().out)
    jax.config.update("jax_enable_x64", True)
    model, beams = make_arm(), make_beams()
    t, q, v, a = pick_and_place()
    loads, stress, bent = loads_along(model, beams, q, v, a)
    still = loads_along(model, beams, q, 0 * v, 0 * a)[1]
    print("equivalent stress, Pa:", worst_case(stress.von_mises, stress, t))
    print("at rest in the same configurations:", worst_case(still.von_mises, still, t))
    print(f"safety factor against yield: {float(stress.safety_factor.min()):.1f}")
    print(f"buckling: {float(buckling_utilisation(beams, loads).max()):.2e} of Euler's load")
    tip = jnp.linalg.norm(bent.displacement("tool"), axis=-1)
    print(f"displacement of the flange: {1e3 * float(tip.max()):.2f} mm at t = {float(t[tip.argmax()]):.2f} s")
    slope = jax.grad(lambda r: loads_along(model, make_beams(r), q, v, a)[1].von_mises.max())(0.035)
    print(f"derivative of the worst stress with respect to the radius: {1e-9 * float(slope):.2f} MPa/mm")
    worst = worst_case(stress.von_mises, stress, t)
    plot_internal_loads(loads, worst.link, out / "loads_diagram.png", title="UR5, upper arm")
    plot_beams(
        model, bent, 1e-6 * stress.von_mises, out / "loads_robot.png", label="equivalent stress [MPa]", title="UR5"
    )


if __name__ == "__main__":
    main()
