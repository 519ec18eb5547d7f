"""Whether inertias are those of bodies, and what to do where they are not."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.identification._fit import link_checks
from jaxdyn.identification._parameters import definite
from jaxdyn.model import Model


def as_bodies(model: Model, floor: float = 1e-5) -> Model:
    """The model with inertias that belong to no body replaced by near ones that do; all others stay bit by bit.

    With the second moments about the centre of mass, `S = tr(I)/2 1 - I`, the eigenvalues of S are raised to `floor`
    times the greatest one, and `I = tr(S) 1 - S`. Masses and centres stay. Robot files hold such inertias where they
    were typed rather than computed; `link_checks` names them. Not differentiable.
    """
    inertia = np.array(model.links.inertia, float)
    for check in link_checks(model):
        if check.physical or not float(model.links.mass[model.link_names.index(check.link)]) > 0:
            continue
        row = model.link_names.index(check.link)
        about = (inertia[row] + inertia[row].T) / 2
        s = definite(np.trace(about) / 2 * np.eye(3) - about, floor)
        inertia[row] = np.trace(s) * np.eye(3) - s
    return eqx.tree_at(lambda m: m.links.inertia, model, jnp.asarray(inertia, model.dtype))
