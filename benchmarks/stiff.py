"""Steps of stiff systems: a steel rod of 20 sublinks, released bent, and a Panda with damped joints.

    python benchmarks/stiff.py [--seconds 10]

prints time and energy of `Variational` and `Rosenbrock` for the rod, and the time of one `step` of the Panda.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn.beams import Beam, Material, Round
from jaxdyn.flexible import Strains, add_flexible_link
from jaxdyn.simulation import Rosenbrock, Variational

SUBLINKS, STEP = 20, 1e-3


def timed(function, *arguments) -> tuple[float, float, object]:
    """Seconds of the first and of the second call, and the result."""
    begin = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    result = jax.block_until_ready(function(*arguments))
    return first, time.perf_counter() - begin, result


def release_rod(seconds: float):
    """A rod of 1 m and a diameter of 10 mm without gravity and damping."""
    builder = jd.ModelBuilder(gravity=[0, 0, 0])
    beam = Beam(Round(0.005), Material.steel(), 1.0)
    rod = add_flexible_link(builder, "rod", beam=beam, sublinks=SUBLINKS, strains=Strains.planar())
    model = builder.build()
    system, mounted = jd.System(model, (rod,)), rod.mount(model)
    w = jd.modes(mounted, jnp.zeros(model.nq), gravity=False).frequencies
    print(f"rod: angular frequencies {float(w[0]):.1f} to {float(w[-1]):.0f} rad/s")
    ts, bent = jnp.linspace(0.0, seconds, 101), jnp.full(SUBLINKS, 0.08 / SUBLINKS)

    def energy(q, v):
        return jd.kinetic_energy(mounted, q, v) + jnp.sum(mounted.properties.stiffness * q**2) / 2

    for solver in (Variational(), Rosenbrock()):
        options = {"dt": STEP, "solver": solver, "max_steps": round(seconds / STEP) + 10}
        run = jax.jit(lambda q, options=options: jd.simulate(system, q, 0 * q, ts, **options))
        first, second, path = timed(run, bent)
        e = jax.vmap(energy)(path.q, path.v)
        ratio = float(jnp.abs(e / e[0] - 1).max())
        name = type(solver).__name__
        print(f"{name:<12} {int(path.num_steps)} steps, first call {first:.1f} s, {second:.2f} s; energy {ratio:.2%}")


def step_panda():
    """A thousand steps of 4 ms."""
    panda = jd.robots.panda()
    panda = eqx.tree_at(lambda m: m.properties.damping, panda, jnp.full(7, 5.0))
    start = jnp.array([0.0, 0.3, 0.0, -1.8, 0.0, 2.0, 0.8])
    largest = jnp.array([40.0, 40.0, 40.0, 40.0, 8.0, 8.0, 8.0])
    torques = largest * jax.random.uniform(jax.random.key(0), (1000, 7), minval=-1.0, maxval=1.0)

    def move(state, u):
        after = jd.step(panda, *state, u, 0.004)
        return (after.q, after.v), after.v

    first, second, rates = timed(jax.jit(lambda u: jax.lax.scan(move, (start, jnp.zeros(7)), u)[1]), torques)
    fastest = float(jnp.abs(rates).max())
    print(f"panda: first call {first:.1f} s, {1e3 * second:.0f} us a step, at most {fastest:.1f} rad/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    jax.config.update("jax_enable_x64", True)
    release_rod(parser.parse_args().seconds)
    step_panda()


if __name__ == "__main__":
    main()
