"""The robot of two slides and a turn that Negrean et al. take for an example."""

import numpy as np

from jaxdyn.model import Model, from_space_screws
from jaxdyn.spatial import Inertia


def two_tr(masses=(4.0, 3.0, 2.0), arm=0.4, inertia=0.05) -> Model:
    """The 2TR robot: a slide along x, one along z on it, and a link turning about z whose centre is `arm` off the axis.

        Q1 = (M1 + M2 + M3) a1 - M3 arm (sin q3 a3 + cos q3 v3^2)
        Q2 = (M2 + M3) (a2 + g)
        Q3 = (M3 arm^2 + Iz) a3 - M3 arm sin q3 a1

    (equation 40 of Negrean, Duca, Kacso, Mura-Cozma and Schonstein, "New formulations on serial robots dynamics",
    COMEC 2009, with `arm` for its a_2). They follow as `dE_A / da` from its acceleration energy (equations 38 and
    39); the second line of equation 38 is misprinted there: the term is `-M3 arm sin q3 a1 a3`, with the factor
    a3, as derivation and equation 40 have it.

    `masses` in kg, `arm` in m, `inertia` Iz of the turning link about its centre of mass in kg m^2, whose other two
    moments do not matter; the paper gives no numbers. The frame "tool" is the paper's frame {3}, on the turning axis.
    """
    screws = [(0.0, 0.0, 0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 0.0, 0.0, 0.0)]
    here, zero, eye = np.eye(4), np.zeros(3), np.eye(3)
    bodies = [
        Inertia(masses[0], zero, np.zeros((3, 3))),
        Inertia(masses[1], zero, np.zeros((3, 3))),
        Inertia(masses[2], zero, inertia * eye).moved((arm, 0.0, 0.0)),
    ]
    return from_space_screws(screws, [here] * 3, bodies, tool=here, name="2TR")
