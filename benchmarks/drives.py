"""The speed-torque diagrams of docs/drives.md: a double pendulum under voltages, with the limits of its motors.

python benchmarks/drives.py [--out docs/img/drives.png]
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, ThermalModel
from jaxdyn.control import PathReference
from jaxdyn.simulation import tabulate_inputs
from jaxdyn.viz import plot_drives

AMPLITUDES, FREQUENCIES = (0.6, 0.8), (3.4, 4.4)


def swing(t):
    """Angles of the joints, rad."""
    return jnp.stack([a * jnp.sin(w * t) for a, w in zip(AMPLITUDES, FREQUENCIES, strict=True)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="docs/img/drives.png")
    out = parser.parse_args().out
    jax.config.update("jax_enable_x64", True)
    arm = jd.robots.double_pendulum()
    numbers = {"constant": 0.06, "resistance": 1.2, "rotor_inertia": 2e-4, "viscous": 1e-4, "inductance": 2e-3}
    limits = {"voltage_limit": 24.0, "current_limit": 15.0, "efficiency": 0.8, "reverse_efficiency": 0.7}
    heat = ThermalModel(4.0, 1.5, 60.0, 3.0)
    motors = tuple(
        DcMotor(joint, gear=gear, thermal=heat, **numbers, **limits)
        for joint, gear in zip(arm.joint_names, (80.0, 40.0), strict=True)
    )
    system = jd.System(arm, motors)
    table = tabulate_inputs(system, PathReference(swing), jnp.linspace(0.0, 4.0, 1601))
    for joint, saturated in zip(arm.joint_names, table.required.is_saturated.T, strict=True):
        print(f"{joint}: {float(saturated.mean()):.1%} of the motion beyond the limits")
    parts = (*table.initial_parts(), None)
    run = jd.simulate(
        system, table.q[0], table.v[0], table.times[::4], inputs=table.path, parts=parts, max_steps=100_000
    )
    plot_drives(run.checked(), out, title="Double pendulum under voltages")
    error = float(jnp.abs(run.q - table.q[::4]).max())
    print(f"largest error {error:.1e} rad; {out}")


if __name__ == "__main__":
    main()
