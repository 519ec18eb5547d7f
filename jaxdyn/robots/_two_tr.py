"""The 2TR robot (two prismatic joints and a revolute one), the example of Negrean et al."""

import numpy as np

from jaxdyn.model import Model, from_space_screws
from jaxdyn.spatial import Inertia


def two_tr(masses=(4.0, 3.0, 2.0), arm=0.4, inertia=0.05) -> Model:
    """The 2TR robot: prismatic joints along x and z, and a link rotating about z with its centre `arm` off the axis.

        Q1 = (M1 + M2 + M3) a1 - M3 arm (sin q3 a3 + cos q3 v3^2)
        Q2 = (M2 + M3) (a2 + g)
        Q3 = (M3 arm^2 + Iz) a3 - M3 arm sin q3 a1

    (equation 40 of Negrean, Duca, Kacso, Mura-Cozma and Schonstein, "New formulations on serial robots dynamics",
    COMEC 2009, with `arm` for its a_2), which follow as `dE_A / da` from the acceleration energy (equations 38 and
    39). The second line of equation 38 is misprinted: the term is `-M3 arm sin q3 a1 a3`, with the factor
    a3, as in the derivation and in equation 40.

    Arguments: `masses` (kg), `arm` (m), `inertia` (Iz of the third link about its centre of mass, kg m^2; the other two
    moments have no effect). The paper gives no numbers. The frame "tool" is the paper's frame {3}, on the axis.
    """
    screws = [(0.0, 0.0, 0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 0.0, 0.0, 0.0)]
    home, zero, eye = np.eye(4), np.zeros(3), np.eye(3)
    bodies = [
        Inertia(masses[0], zero, np.zeros((3, 3))),
        Inertia(masses[1], zero, np.zeros((3, 3))),
        Inertia(masses[2], zero, inertia * eye).moved((arm, 0.0, 0.0)),
    ]
    return from_space_screws(screws, [home] * 3, bodies, tool=home, name="2TR")
