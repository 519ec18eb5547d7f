"""Derivatives of the kinematics with respect to each leaf of the robot and the state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.kinematics._functions import FUNCTIONS, scalar
from tests.oracles import random_model, random_state

QUICK = {"xla_backend_optimization_level": 0}
#: leaves that kinematics cannot depend on
OTHERS = ("inertia", "gravity", "properties", "limits", "mimic", "actuators")
MOTION = ("frame_velocity", "frame_acceleration", "frame_classical_acceleration", "jacobian_derivative")
MASSES = ("total_mass", "center_of_mass", "center_of_mass_velocity", "center_of_mass_jacobian")


def _model():
    kinds = ("universal", "helical", "spherical")
    return random_model(21, 5, kinds=kinds, fixed_fraction=0.3, branching=0.0, floating=True, frames=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("names", [MOTION, MASSES], ids=["motion", "masses"])
def test_each_leaf(names):
    """Reverse mode against central differences for each leaf; leaves in use have nonzero derivatives."""
    m = _model()
    args = (m, *random_state(m, 0)[:3])
    f = scalar(names)
    value = jax.jit(f, compiler_options=QUICK)
    g = jax.jit(jax.grad(f, (0, 1, 2, 3)), compiler_options=QUICK)(*args)
    flat, tree = jax.tree.flatten(args)
    rng = np.random.default_rng(0)
    for k, (path, slope) in enumerate(jax.tree_util.tree_flatten_with_path(g)[0]):
        name = jax.tree_util.keystr(path)
        assert np.isfinite(slope).all(), name
        if not flat[k].size or any(x in name for x in OTHERS):
            assert not np.any(slope), name
            continue
        d = jnp.asarray(rng.normal(size=flat[k].shape))
        at = lambda s, k=k, d=d: float(value(*tree.unflatten([*flat[:k], flat[k] + s * d, *flat[k + 1 :]])))
        h = 1e-4
        want = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
        scale = float(jnp.abs(slope * d).sum()) + abs(float(value(*args)))
        assert abs(float((slope * d).sum()) - want) < 1e-8 * scale, name  # rounding of the difference


def test_every_function_is_covered():
    import jaxdyn.kinematics as jk

    public = {x for x in vars(jk) if not x.startswith("_") and callable(getattr(jk, x)) and x[0].islower()}
    assert public == set(FUNCTIONS)
