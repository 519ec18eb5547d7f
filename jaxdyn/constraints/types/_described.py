"""Constraints from the closures of a model."""

from jaxdyn.constraints.contract import AbstractConstraint
from jaxdyn.constraints.types._closures import (
    CylindricalClosure,
    Distance,
    PlanarClosure,
    PointClosure,
    PrismaticClosure,
    RevoluteClosure,
    WeldClosure,
)
from jaxdyn.constraints.types._coordinates import JointCoupling
from jaxdyn.constraints.types._ends import End
from jaxdyn.model import Coupling, Model
from jaxdyn.recursion import check_model

_KINDS = {
    "point": PointClosure,
    "weld": WeldClosure,
    "revolute": RevoluteClosure,
    "cylindrical": CylindricalClosure,
    "prismatic": PrismaticClosure,
    "planar": PlanarClosure,
}


def described_constraints(model: Model) -> tuple[AbstractConstraint, ...]:
    """The constraints for the closures and couplings of a model (`model.closures`), from a file or a bundled robot.

    Returns a tuple of constraints in the order of `model.closures`. Their parameters are leaves of the model, so
    derivatives with respect to the model include them.

    ```python
    import jaxdyn as jd
    import jaxdyn.constraints as jc

    (pin,) = jc.described_constraints(jd.robots.four_bar())
    assert pin.name == "pin"
    ```
    """
    check_model(model)
    out = []
    for c in model.closures:
        if isinstance(c, Coupling):
            out.append(JointCoupling(c.name, c.joint, c.source, c.coefficients))
            continue
        first, second = (End(link, c.translations[k], c.rotations[k]) for k, link in enumerate(c.links))
        closure = (
            Distance(c.name, first, second, c.length) if c.kind == "distance" else _KINDS[c.kind](c.name, first, second)
        )
        out.append(closure)
    return tuple(out)
