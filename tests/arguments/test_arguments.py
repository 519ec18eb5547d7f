"""Every public function of `(model, q, v, ...)` refuses wrong arguments by name: given, expected, remedy."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import ArgumentError, ShapeError
from jaxdyn.simulation import integrate_fixed_steps, simulate, simulate_batch

from ._calls import CONFIGURATIONS, MODEL, VALUES, VELOCITIES, public_functions, valid_arguments

pytestmark = pytest.mark.slow
FUNCTIONS = public_functions()


def _wrong_vectors(name: str):
    """Wrong values of a configuration or velocity, with the beginning of the message."""
    n, other = (8, 7) if name in CONFIGURATIONS else (7, 8)
    yield [0.0] * n, f"{name} is a list, expected an array of shape \\({n},\\)"
    yield tuple([0.0] * n), f"{name} is a tuple, expected"
    yield "straight", f"{name} is 'straight', expected"
    yield jnp.zeros(other), f"{name} has shape \\({other},\\), expected \\({n},\\).*order of the arguments"
    yield jnp.zeros(n + 3), f"{name} has shape \\({n + 3},\\), expected"
    yield jnp.zeros((5, n)), f"{name} has shape \\(5, {n}\\), expected .*jax.vmap"
    yield jnp.zeros((n, 1)), f"{name} has shape \\({n}, 1\\), expected"
    yield jnp.zeros(n, complex), f"{name} is complex .*, expected real numbers"
    yield np.array(["a"] * n), f"{name} is an array of shape .*, expected"
    yield jd.robots.pendulum, f"{name} is a function, expected"


def _wrong_models():
    """Models with a wrong leaf, batches, and other objects."""
    leaf = lambda where, value: eqx.tree_at(where, MODEL, value)
    yield VALUES["q"], "model is an array of shape .*, expected a jaxdyn Model; give the model first"
    yield jd.Model, "model is the class Model, expected a jaxdyn Model"
    yield jax.tree.map(lambda x: jnp.stack([x, x]), MODEL), "model.links.mass has shape .*the model is a batch"
    yield leaf(lambda m: m.links.mass, jnp.ones(3)), r"model.links.mass has shape \(3,\), expected \(2,\)"
    yield leaf(lambda m: m.links.com, jnp.ones((2, 2))), r"model.links.com has shape \(2, 2\), expected \(2, 3\)"
    yield leaf(lambda m: m.gravity, jnp.array(9.81)), r"model.gravity has shape \(\), expected \(3,\)"
    yield leaf(lambda m: m.gravity, -9.81), r"model.gravity is -9.81, expected an array of shape \(3,\)"
    yield leaf(lambda m: m.properties.damping, jnp.ones(1)), r"model.properties.damping has shape \(1,\)"
    yield leaf(lambda m: m.limits.lower, jnp.ones(7)), r"model.limits.lower has shape \(7,\), expected \(8,\)"
    yield leaf(lambda m: m.placements.rotation, jnp.ones((2, 3))), r"model.placements.rotation has shape \(2, 3\)"
    yield leaf(lambda m: m.joints[1].axis, jnp.ones(3)), r"model.joints\[1\].axis has shape \(3,\), expected \(1, 3\)"


def _wrong_values(name: str):
    if name in (*CONFIGURATIONS, *VELOCITIES):
        wrong = list(_wrong_vectors(name))
        yield from (x for x in wrong if name != "u" or x[0] is not None)  # without u the robot has no effort
    elif name in ("model", "system"):
        yield from _wrong_models() if name == "model" else list(_wrong_models())[2:]
    elif name == "external":
        yield [[0.0] * 6] * 2, "external is a list, expected an array of shape"
        yield jnp.zeros((1, 6)), r"external has shape \(1, 6\), expected \(2, 6\)"
        yield jnp.zeros(12), r"external has shape \(12,\), expected"
    elif name == "reference":
        for value in ("world", 3, type(jd.WORLD)):
            yield value, "reference is .*, expected an instance of AbstractReference; "
    elif name == "target":
        yield jnp.eye(4), r"target is an array of shape \(4, 4\), expected an instance of Pose"
    elif name == "constraints":
        yield "loops", "constraints is 'loops', expected an instance of AbstractConstraint"
    elif name == "dt":
        for value in (-0.1, 0.0, np.nan, 1j, "fast", [0.1], jnp.ones(2)):
            yield value, "dt is .*, expected a positive number"
    elif name == "num_steps":
        for value in (0, -1, 2.5, True):
            yield value, "num_steps is .*, expected an int of at least 1"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_arguments_are_named(name, without_annotations):
    function, valid = FUNCTIONS[name], valid_arguments(FUNCTIONS[name])
    tried = 0
    for parameter in valid:
        for value, message in _wrong_values(parameter):
            with pytest.raises(ArgumentError, match=message) as error:
                function(**(valid | {parameter: value}))
            assert str(error.value).count(parameter if parameter != "system" else "model") >= 1
            tried += 1
    assert tried >= 9


@pytest.mark.parametrize("name", ["rnea", "frame_velocity", "constrained_dynamics"])
def test_wrong_arguments_are_named_in_traced_functions(name, without_annotations):
    """With every array traced; the model is one too."""
    function, valid = FUNCTIONS[name], valid_arguments(FUNCTIONS[name])
    dynamic, static = eqx.partition(valid, eqx.is_array)
    with pytest.raises(ShapeError, match="v has shape"):
        wrong = dynamic | {"v": jnp.zeros(3)}
        eqx.filter_eval_shape(lambda x: function(**eqx.combine(x, static)), wrong)


OPTIONS = {
    "solver": [diffrax.Tsit5, "Tsit5", jd.simulate],
    "controller": [diffrax.PIDController, 1e-6],
    "adjoint": [diffrax.ForwardMode, "forward"],
    "dt": [-0.01, 0.0, np.inf, 1j, "fast", jnp.ones(2)],
    "rtol": [-1e-6, 0.0],
    "atol": [-1e-6, "tight"],
    "max_steps": [0, 2.5, "many"],
    "max_events": [-1, 1.5],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_simulations(name, without_annotations):
    start = VALUES["q0"], VALUES["v0"], VALUES["ts"]
    for value in OPTIONS[name]:
        with pytest.raises(ArgumentError, match=f"^{name} is .*, expected .*; "):
            simulate(MODEL, *start, **{name: value})
    if name in ("solver", "adjoint"):
        with pytest.raises(ArgumentError, match=f"^{name} is the class .*; create one: "):
            integrate_fixed_steps(MODEL, *start[:2], 0.0, 0.01, 2, **{name: OPTIONS[name][0]})
    with pytest.raises(ArgumentError, match="an entry of events is 'stop', expected an instance of Event"):
        simulate(MODEL, *start, events=("stop",))


def test_arguments_of_batches(without_annotations):
    q0, v0, ts = VALUES["q0"][None], VALUES["v0"][None], VALUES["ts"]
    for size in (2.5, 0, -3, "all", True):
        with pytest.raises(ArgumentError, match="chunk_size is .*, expected an int of at least 1; give a whole number"):
            simulate_batch(MODEL, q0, v0, ts, dt=0.01, chunk_size=size)
    with pytest.raises(ArgumentError, match="q0 is a list, expected an array of shape .batch, nq."):
        simulate_batch(MODEL, [[0.0] * 8], v0, ts, dt=0.01)
    with pytest.raises(ShapeError, match="For one sample use simulate"):
        simulate_batch(MODEL, q0[0], v0[0], ts, dt=0.01)
    with pytest.raises(ArgumentError, match="system is 'arm', expected an instance of Model or System"):
        simulate("arm", q0[0], v0[0], ts)


def test_numpy_arrays_and_integers_are_accepted(without_annotations):
    pendulum = jd.robots.pendulum()
    zero = np.zeros(1, int)
    for x in (zero, zero.astype(float), jnp.zeros(1, jnp.float32)):
        assert jd.gravity_forces(pendulum, x).shape == (1,)
