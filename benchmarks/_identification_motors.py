"""Identification of a driven arm on generated logs with noise, quantisation and a delay: coverage of the deviations.

    python -m benchmarks._identification_motors [--logs 50]

Each log holds 10 s of a random motion of an arm with two joints at 500 Hz: positions of encoders with 17 bits and noise
of 0.1 mrad, voltages (12 bits, 20 mV) that act 2 ms late, currents (12 bits, 20 mA), speeds of the rotors (0.2 rad/s).
The fit without simulation starts from numbers that are 20 % too small. Printed for each parameter: the mean deviation
relative to the truth, the root mean square of the errors over the deviations, and the share of errors within 1.96
deviations.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, StribeckFriction
from jaxdyn.control import PathReference
from jaxdyn.identification import (
    FitResult,
    LevenbergMarquardt,
    LoggedInputs,
    LowPassed,
    Preparation,
    Table,
    fit,
    prepare,
)
from jaxdyn.simulation import Inputs, tabulate_inputs

JOINTS = ("shoulder", "elbow")
RATE, DURATION, DELAY = 500.0, 10.0, 2e-3
NUMBERS = {
    "constant": 0.05,
    "resistance": 1.2,
    "gear": 20.0,
    "rotor_inertia": 1.5e-5,
    "viscous": 2e-5,
    "coulomb": 4e-3,
}
#: velocity of the rotor over which the Coulomb friction changes its sign, rad/s; known
WIDTH = 5.0
PATHS = (
    *(f"parts[DcMotor].{x}" for x in NUMBERS if x != "coulomb"),
    "parts[DcMotor].friction.coulomb",
    "parts[Inputs].controller.delay",
)
#: quantities without noise at the times of the rows: positions, rotor speeds, voltages and currents
Exact = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def arm() -> jd.Model:
    """Two links that swing about parallel axes."""
    b = jd.ModelBuilder(name="arm")
    for k, (joint, parent) in enumerate(zip(JOINTS, ("world", "upper"), strict=True)):
        body = jd.spatial.cylinder(0.04, 0.3, mass=1.0 - 0.4 * k).moved([0.01, 0, -0.15])
        place = {"translation": [0, 0, -0.3]} if k else {}
        b.add_link(("upper", "lower")[k], parent, jd.joints.Revolute([0, 1, 0]), body, joint_name=joint, **place)
    return b.build()


def motor(joint: str, factor: float = 1.0) -> DcMotor:
    """A motor whose numbers are the true ones times a factor."""
    numbers = {name: factor * x for name, x in NUMBERS.items()}
    coulomb = numbers.pop("coulomb")
    return DcMotor(joint, inductance=2e-3, friction=StribeckFriction(coulomb, coulomb, width=WIDTH), **numbers)


def times() -> np.ndarray:
    """Times of the rows."""
    return np.arange(round(DURATION * RATE) + 1) / RATE


def exact_rows(seed: int) -> Exact:
    """A random motion of the arm, and the voltages and currents that it requires."""
    rng = np.random.default_rng(seed)
    frequency = rng.uniform([0.3, 1.0, 2.0], [0.8, 1.8, 3.0], (2, 3))
    size = rng.uniform([0.7, 0.3, 0.08], [1.1, 0.5, 0.15], (2, 3))
    phase = rng.uniform(0, 2 * np.pi, (2, 3))
    q, v, u, current = _tabulate(jnp.asarray(times()), *map(jnp.asarray, (2 * np.pi * frequency, size, phase)))
    return np.asarray(q), NUMBERS["gear"] * np.asarray(v), np.asarray(u), np.asarray(current)


@jax.jit
def _tabulate(t, frequency, size, phase):
    system = jd.System(arm(), tuple(motor(joint) for joint in JOINTS))
    reference = PathReference(lambda t: jnp.sum(size * jnp.sin(frequency * t + phase), axis=1))
    table = tabulate_inputs(system, reference, t)
    return table.q, table.v, table.required.inputs, jnp.stack([x.current for x in table.required.parts or ()], axis=1)


def measure(exact: Exact, seed: int) -> Table:
    """A log of the sensors, in which voltages are early by the delay with which they act."""
    rng, t = np.random.default_rng([seed, 1]), times()
    q, speed, u, current = exact
    late = np.stack([np.interp(t + DELAY, t, x) for x in u.T], axis=1)
    read = lambda x, noise, step: step * np.round((x + rng.normal(0, noise, x.shape)) / step)
    columns = {
        "q": read(q, 1e-4, 2 * np.pi / 2**17),
        "voltage": read(late, 0.02, 96 / 2**12),
        "current": read(current, 0.02, 60 / 2**12),
        "rotor_velocity": speed + rng.normal(0, 0.2, speed.shape),
    }
    named = {f"{name}.{joint}": x[:, k] for name, x in columns.items() for k, joint in enumerate(JOINTS)}
    return Table("run", {"t": t, **named})


def identify(table: Table) -> FitResult:
    """Constant, resistance, gear, rotor inertia and friction of both motors, and the delay of the voltages."""
    start = tuple(motor(joint, 0.8) for joint in JOINTS)
    system = jd.System(arm(), (*start, Inputs(LoggedInputs(delay=1e-3))))
    logs, _ = prepare([table], system, preparation=Preparation(cutoff=100.0))
    return fit(system, logs, PATHS, LowPassed(20.0, LevenbergMarquardt(reweight=3))).checked()


def truth(name: str) -> float:
    """The true value of a parameter of the fit."""
    return (
        DELAY if name.endswith("delay") else NUMBERS[name.partition("[DcMotor].")[2].partition("[")[0].split(".")[-1]]
    )


def scaled_errors(result: FitResult) -> np.ndarray:
    """Errors over deviations of all parameters."""
    return np.array([(row.value - truth(row.name)) / row.deviation for row in result.parameters])


def main():
    """Prints the coverage over random logs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=50)
    logs = parser.parse_args().logs
    jax.config.update("jax_enable_x64", True)
    begin = time.perf_counter()
    results = [identify(measure(exact_rows(seed), seed)) for seed in range(logs)]
    z = np.array([scaled_errors(result) for result in results])
    names = [row.name for row in results[0].parameters]
    deviations = np.mean([[row.deviation for row in result.parameters] for result in results], axis=0)
    print(f"{logs} logs in {time.perf_counter() - begin:.0f} s\n{'parameter':<45} deviation  rms  within 1.96")
    for name, s, column in zip(names, deviations, z.T, strict=True):
        print(f"{name:<45} {100 * s / truth(name):7.3f} % {np.sqrt(np.mean(column**2)):5.2f} {within(column):.3f}")
    print(f"{'all ' + str(z.size):<45} {'':9} {np.sqrt(np.mean(z**2)):5.2f} {within(z):.3f}")


def within(z: np.ndarray) -> float:
    """The share of errors within 1.96 deviations."""
    return float(np.mean(np.abs(z) < 1.96))


if __name__ == "__main__":
    main()
