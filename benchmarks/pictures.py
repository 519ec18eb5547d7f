"""Draws the pictures of docs/pictures.md.

python benchmarks/pictures.py [--folder docs/img]
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxdyn as jd


def main():
    """Writes three pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("docs/img"))
    folder = parser.parse_args().folder
    jax.config.update("jax_enable_x64", True)
    model = jd.robots.double_pendulum()
    fall = jd.simulate(model, jnp.array([1.5, 0.2]), jnp.zeros(2), jnp.linspace(0.0, 2.0, 101))
    jd.viz.draw(model, fall.q[::20], folder / "pictures_double_pendulum.png")
    jd.viz.animate(fall, folder / "pictures_fall.gif", speed=0.5, trace=["tip"], dpi=60)
    panda = jd.robots.panda()
    pose = jnp.array([0.6, 0.3, 0.0, -1.8, 0.0, 2.0, 0.8])
    jd.viz.draw(panda, pose[: panda.nq], folder / "pictures_panda.png", view=(-50.0, 20.0))


if __name__ == "__main__":
    main()
