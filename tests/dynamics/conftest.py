"""Which slow checks CI runs: each kind of check once, on small or rich robots; the rest is marked wide.

A slow check of a kind that is not listed here is the same as a default one on another robot or function. An entry is
a test, with all its parameters, or one of its cases.
"""

import pytest

CI = {
    "test_lagrange_joints_that_other_engines_lack[0]",
    # derivatives: of rare joints, of a user's own joints, and where a pose loses rank
    "test_reverse_forward_and_differences_agree[rare-forward_dynamics]",
    "test_each_leaf[rare-forward_dynamics]",
    "test_jacobians_are_the_automatic_ones[own]",
    "test_a_joint_with_coordinates_of_its_own_is_another_in_other_words",
    "test_the_task_space_of_a_round_body",
    "test_a_locked_gimbal_leaves_the_other_joints_alone",
    # identities
    "test_momentum_rate_is_the_external_wrench[pair]",
    "test_centroidal_momentum[pair]",
}


def pytest_collection_modifyitems(items):
    for item in items:
        here = "dynamics" in item.path.parts
        if here and item.get_closest_marker("slow") and not {item.originalname, item.name} & CI:
            item.add_marker(pytest.mark.wide)
