"""The gradient of a cube toss: hard contact with exact events, beside MuJoCo's JAX port at several steps.

python benchmarks/cube_toss.py [--core N]

A cube of 0.1 m falls from 0.2 m onto one corner, bounces, tumbles, slides and comes to rest within 1 s. The derivative
of its final position along x with respect to its initial velocity along x, by forward mode, is compared with central
differences of the same compiled program. Each section runs in a new process, pinned to one core; times to trace and
compile, and the best of several runs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._processes import KEEP_MEMORY, KINDER, ONE_THREAD  # noqa: E402
from benchmarks._timing import pin_to_core  # noqa: E402

RUNS = 5
EDGE, MASS, FRICTION, RESTITUTION = 0.1, 0.37, 0.3, 0.3
#: tilt of the cube about x, y and z, rad; height of its centre, m
TILT, HEIGHT = (0.5, 0.3, 0.1), 0.2
#: angular velocity, rad/s, and velocity, m/s
SPIN, VELOCITY = (0.0, 2.0, 1.0), (0.8, -0.1, -2.0)
STEPS = (1e-2, 3e-3, 1e-3, 3e-4)


def jaxdyn_toss(_: float):
    """The final position along x as a function of a change of the velocity along x, and the events up to then."""
    import diffrax
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Plane, Poisson, box_corners

    cube = jd.ModelBuilder()
    cube.add_link("cube", "world", jd.joints.Free(), jd.spatial.box((EDGE,) * 3, mass=MASS))
    model = cube.build()
    corners = box_corners("cube", (EDGE,) * 3, "world", Plane())
    contacts = [Contact(f"corner {k}", gap, FRICTION, Poisson(RESTITUTION)) for k, gap in enumerate(corners)]
    system = jd.System(model, motion=ContactMotion(contacts))
    q0 = jd.integrate(model, jd.neutral(model), jnp.array([*TILT, 0, 0, HEIGHT]))

    def final(dv):
        v0 = jnp.array([*SPIN, *VELOCITY]).at[3].add(dv)
        mode = diffrax.ForwardMode()
        run = jd.simulate(system, q0, v0, jnp.array([0.0, 1.0]), rtol=1e-10, atol=1e-10, adjoint=mode, max_events=100)
        return run.q[-1, 4], run.phases.count - 1

    return final


def mjx_toss(step: float):
    """The same by MuJoCo's JAX port, with its soft contact."""
    import jax
    import jax.numpy as jnp
    import mujoco
    from mujoco import mjx

    half = EDGE / 2
    text = f"""<mujoco><option timestep="{step}"/><worldbody>
      <geom type="plane" size="5 5 .1" friction="{FRICTION}"/>
      <body><freejoint/><geom type="box" size="{half} {half} {half}" mass="{MASS}" friction="{FRICTION}"/></body>
    </worldbody></mujoco>"""
    host = mujoco.MjModel.from_xml_string(text)
    model = mjx.put_model(host)
    # a first step gives the data the types that every other step returns
    start = jax.jit(mjx.step)(model, mjx.put_data(host, mujoco.MjData(host)))

    import jaxdyn as jd

    pose = jd.ModelBuilder()
    pose.add_link("cube", "world", jd.joints.Free(), jd.spatial.box((EDGE,) * 3, mass=MASS))
    q = jd.integrate(pose.build(), jnp.array([1.0, *[0] * 6]), jnp.array([*TILT, 0, 0, HEIGHT]))

    def final(dv):
        qpos = jnp.concatenate([q[4:], q[:4]])
        qvel = jnp.array([*VELOCITY, *SPIN]).at[0].add(dv)
        data = start.replace(qpos=qpos, qvel=qvel)
        data = jax.lax.scan(lambda d, _: (mjx.step(model, d), None), data, None, length=round(1 / step))[0]
        return data.qpos[0], 0

    return final


def section(engine: str, step: float) -> dict[str, float]:
    """Gradient, central difference, and times, s."""
    import jax

    final = {"jaxdyn": jaxdyn_toss, "mjx": mjx_toss}[engine](step)
    begin = time.perf_counter()
    derivative = jax.jit(lambda x: jax.jvp(final, (x,), (1.0,))).lower(0.0).compile()
    compiling = time.perf_counter() - begin
    (_, events), (slope, _) = derivative(0.0)
    h = 1e-6 if engine == "jaxdyn" else 1e-5
    f = lambda x: float(derivative(x)[0][0])
    # central differences of fourth order
    difference = (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)
    best = min(_time(derivative) for _ in range(RUNS))
    return {
        "gradient": float(slope),
        "difference": difference,
        "compile": compiling,
        "run": best,
        "events": int(events),
    }


def _time(derivative) -> float:
    start = time.perf_counter()
    derivative(0.0)[0][0].block_until_ready()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--section", nargs=2)
    args = parser.parse_args()
    if args.section:
        print(json.dumps(section(args.section[0], float(args.section[1]))))
        return
    pin_to_core(args.core)
    env = dict(os.environ, JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1", **KEEP_MEMORY)
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
    print("| engine | gradient | its difference | error | trace and compile, s | run, ms |\n|---|---|---|---|---|---|")
    for engine, step in (("jaxdyn", 0.0), *(("mjx", h) for h in STEPS)):
        command = [sys.executable, __file__, "--section", engine, str(step)]
        env["XLA_FLAGS"] = f"{ONE_THREAD} {KINDER.get(engine, '')}".strip()
        run = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
        x = json.loads(run.stdout.splitlines()[-1])
        name = f"MJX, {step:g} s" if step else f"jaxdyn, {x['events']} events"
        error = abs(x["gradient"] - x["difference"])
        numbers = f"{x['gradient']:.8g} | {x['difference']:.8g} | {error:.1e}"
        print(f"| {name} | {numbers} | {x['compile']:.1f} | {1e3 * x['run']:.3g} |", flush=True)


if __name__ == "__main__":
    main()
