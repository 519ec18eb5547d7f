"""Replacement of inertias that no rigid body can have."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.identification.parameters._link_checks import link_checks
from jaxdyn.identification.parameters._pseudo_inertia import raise_eigenvalues
from jaxdyn.model import Model


def as_bodies(model: Model, floor: float = 1e-5) -> Model:
    """Replaces inertias that are not physically consistent by near ones that are; all others stay bit by bit.

    With the second moments about the centre of mass, `S = tr(I)/2 1 - I`, the eigenvalues of S are raised to `floor`
    times the greatest one, and `I = tr(S) 1 - S`. Masses and centres of mass stay. Robot files contain such inertias
    where somebody typed them; `link_checks` names them. Not differentiable.

    Arguments:

    * `model`: the robot, with concrete numbers.
    * `floor`: least eigenvalue of S over its greatest one, after the replacement.

    Returns the model with physically consistent links.

    ```python
    import equinox as eqx
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.identification import as_bodies, link_checks

    robot = jd.robots.pendulum()
    typed = eqx.tree_at(lambda m: m.links.inertia, robot, jnp.diag(jnp.array([1.0, 0.1, 0.1]))[None])
    assert not link_checks(typed)[0].physical  # 1.0 > 0.1 + 0.1: the triangle inequality fails
    assert link_checks(as_bodies(typed))[0].physical
    ```
    """
    inertia = np.array(model.links.inertia, float)
    for check in link_checks(model):
        if check.physical or not float(model.links.mass[model.link_names.index(check.link)]) > 0:
            continue
        row = model.link_names.index(check.link)
        symmetric = (inertia[row] + inertia[row].T) / 2
        s = raise_eigenvalues(np.trace(symmetric) / 2 * np.eye(3) - symmetric, floor)
        inertia[row] = np.trace(s) * np.eye(3) - s
    return eqx.tree_at(lambda m: m.links.inertia, model, jnp.asarray(inertia, model.dtype))
