"""Large static deflections against closed forms and converged solutions of the field."""

import numpy as np
import pytest

from benchmarks import _flexible_cases as cases


def test_roll_up_is_exact():
    np.testing.assert_allclose(cases.roll_up(4), [0, 0], atol=1e-12)  # the polygon closes


@pytest.mark.exhaustive
def test_circular_arc_converges_with_second_order():
    error = [np.linalg.norm(cases.roll_up(n, 0.6) - cases.roll_up_exact(0.6)) for n in (8, 16)]
    assert error[1] < 0.025 and 3.9 < error[0] / error[1] < 4.1


@pytest.mark.exhaustive
@pytest.mark.parametrize(("load", "sublinks"), [(2.0, 8), (2.0, 16), (10.0, 8)], ids=["2-8", "2-16", "10-8"])
def test_elastica(load, sublinks):
    error = cases.elastica(sublinks, load) / np.array(cases.ELASTICA[load]) - 1
    limits = {2.0: (0.00109, 0.00486, 0.00066), 10.0: (0.00263, 0.00771, 0.00148)}[load]
    assert np.all(np.abs(error) < np.array(limits) * (8 / sublinks) ** 2 * 1.01)


@pytest.mark.exhaustive
def test_bend_of_45_degrees():
    """Bending and torsion couple, so that symmetric coordinates of the elastic joints matter for second order."""
    coarse, fine = cases.bend(4), cases.bend(8)
    np.testing.assert_allclose(fine + (fine - coarse) / 3, cases.BEND_ELEMENTS, rtol=3e-3)
    error = np.linalg.norm(coarse - cases.BEND), np.linalg.norm(fine - cases.BEND)
    assert error[1] < 0.4 and 3.7 < error[0] / error[1] < 4.3
