"""Constraints out of the closures that a model describes."""

from jaxdyn.constraints._closures import (
    CylindricalClosure,
    Distance,
    PlanarClosure,
    PointClosure,
    PrismaticClosure,
    RevoluteClosure,
    WeldClosure,
)
from jaxdyn.constraints._contract import AbstractConstraint
from jaxdyn.constraints._coordinates import JointCoupling
from jaxdyn.constraints._ends import End
from jaxdyn.model import Coupling, Model

_KINDS = {
    "point": PointClosure,
    "weld": WeldClosure,
    "revolute": RevoluteClosure,
    "cylindrical": CylindricalClosure,
    "prismatic": PrismaticClosure,
    "planar": PlanarClosure,
}


def described_constraints(model: Model) -> tuple[AbstractConstraint, ...]:
    """The closures and couplings of a model (`model.closures`), as a file or a bundled robot described them.

    Their numbers are the model's leaves, so derivatives reach these.
    """
    out = []
    for c in model.closures:
        if isinstance(c, Coupling):
            out.append(JointCoupling(c.name, c.joint, c.source, c.coefficients))
            continue
        first, second = (End(link, c.translations[k], c.rotations[k]) for k, link in enumerate(c.links))
        closed = (
            Distance(c.name, first, second, c.length) if c.kind == "distance" else _KINDS[c.kind](c.name, first, second)
        )
        out.append(closed)
    return tuple(out)
