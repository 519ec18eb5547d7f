"""Which slow checks CI runs: each kind of check once, on the richest robots; the rest is marked wide.

A slow check of a kind that is not listed here is the same as a default one on another robot or function.
"""

import pytest

CI = {
    "test_energies_every_joint_type",
    "test_lagrange_every_joint_type",
    "test_batch_lowers",
    "test_gradient_lowers",
    "test_lowers",
    "test_coriolis_matrix_makes_mass_rate_skew",
    "test_forward_dynamics_inverts_inverse_dynamics",
    "test_gravity_is_the_gradient_of_potential_energy",
    "test_kinetic_energy_is_the_quadratic_form_of_the_mass_matrix",
    "test_power_balance",
    "test_two_routes_of_forward_dynamics_agree",
    "test_one_joint_as_a_constant",
}


def pytest_collection_modifyitems(items):
    for item in items:
        here = "dynamics" in item.path.parts
        if here and item.get_closest_marker("slow") and item.originalname not in CI:
            item.add_marker(pytest.mark.wide)
