"""Which slow checks CI runs: each kind of check once, on small or rich robots; the rest is marked wide.

A slow check of a kind that is not listed here is the same as a default one on another robot or function. An entry is
a test, with all its parameters, or one of its cases.
"""

import pytest

CI = {
    "test_energies_every_joint_type",
    "test_lagrange_every_joint_type",
    "test_lagrange_joints_that_other_engines_lack[0]",
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
    # derivatives of second order, at singular points, of rare joints, in batches and in single precision
    "test_second_order[any-rnea-pair]",
    "test_second_order[any-forward_dynamics-pair]",
    *(f"test_singular_points[few-forward_dynamics-{x}]" for x in ("at_rest", "half_turn", "aligned", "weightless")),
    "test_reverse_forward_and_differences_agree[rare-rnea]",
    "test_reverse_forward_and_differences_agree[rare-forward_dynamics]",
    "test_each_leaf[rare-forward_dynamics]",
    "test_jacobians_are_the_automatic_ones",
    "test_jacobians_in_single_precision",
    "test_a_joint_with_coordinates_of_its_own_is_another_in_other_words",
    "test_a_batch_of_no_round_size",
    "test_the_task_space_of_a_round_body",
    "test_a_locked_gimbal_leaves_the_other_joints_alone",
    # identities
    "test_christoffel_symbols_give_the_coriolis_matrix[pair]",
    "test_christoffel_symbols_of_the_first_kind[based]",
    "test_momentum_rate_is_the_external_wrench[pair]",
    "test_centroidal_momentum[pair]",
    "test_task_space_dynamics[pair]",
    # other engines
    "test_floating_tree",
    "test_energies_and_momentum",
    "test_sweep[50-True-0.6-0]",
    "test_derivatives_of_forward_dynamics[constant]",
    # size
    "test_a_thousand_links_compile_at_once_and_run_in_linear_time[rnea]",
    "test_memory_of_reverse_mode_is_linear_in_links[rnea]",
}


def pytest_collection_modifyitems(items):
    for item in items:
        here = "dynamics" in item.path.parts
        if here and item.get_closest_marker("slow") and not {item.originalname, item.name} & CI:
            item.add_marker(pytest.mark.wide)
