"""Physical consistency of the inertia of each link."""

from dataclasses import dataclass

import numpy as np

from jaxdyn.identification.parameters._pseudo_inertia import pseudo_inertia_basis
from jaxdyn.model import Model
from jaxdyn.spatial import ten_parameters


@dataclass(frozen=True)
class LinkCheck:
    """Whether a link's ten inertial parameters are physically consistent: whether a rigid body can have them."""

    link: str
    physical: bool
    #: least eigenvalue of the pseudo-inertia over its trace, not negative for physically consistent parameters
    margin: float
    #: the violated condition, empty for physically consistent parameters
    reason: str


def link_checks(model: Model) -> tuple[LinkCheck, ...]:
    """Checks the physical consistency of each link that has mass or inertia, to a relative tolerance of 1e-9.

    A rigid body has a positive mass, and principal moments of inertia that satisfy the triangle inequality: its
    pseudo-inertia is positive semidefinite.

    Arguments:

    * `model`: the robot, with concrete numbers.

    Returns a `LinkCheck` for each such link, in the order of `model.link_names`.

    ```python
    import jaxdyn as jd
    from jaxdyn.identification import link_checks

    checks = link_checks(jd.robots.panda())
    assert all(check.physical for check in checks), [check.reason for check in checks]
    ```
    """
    checks = []
    mass, com, inertia = (np.asarray(x, float) for x in (model.links.mass, model.links.com, model.links.inertia))
    pseudo = np.einsum("lk,kab->lab", ten_parameters(mass, com, inertia), pseudo_inertia_basis())
    for k, name in enumerate(model.link_names):
        if mass[k] == 0 and not inertia[k].any():
            continue
        # about the centre of mass and relative to its own trace, so that a distant centre of mass hides no defect
        symmetric = (inertia[k] + inertia[k].T) / 2
        central = np.trace(inertia[k]) / 2 * np.eye(3) - symmetric
        least = np.linalg.eigvalsh(central)[0] / max(abs(np.trace(central)), 1e-300)
        margin = min(mass[k] / max(np.trace(pseudo[k]), 1e-300), least)
        reason = ""
        if mass[k] < 0:
            reason = f"negative mass {mass[k]:.4g} kg"
        elif margin < -1e-9:
            moments = ", ".join(f"{x:.4g}" for x in np.linalg.eigvalsh(symmetric))
            reason = f"principal moments {moments} kg m^2, which no body can have"
        checks.append(LinkCheck(name, not reason, float(margin), reason))
    return tuple(checks)
