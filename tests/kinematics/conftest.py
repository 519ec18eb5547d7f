"""Which slow checks of the kinematics CI runs; the rest is marked wide. Entries are tests or cases of them."""

import pytest

CI = {
    "test_first_derivative_of_the_elbow",
    "test_poses_of_all_links[held]",
    "test_limits_of_a_planar_joint_are_those_of_its_coordinates",
}


def pytest_collection_modifyitems(items):
    for item in items:
        here = "kinematics" in item.path.parts
        if here and item.get_closest_marker("slow") and not {item.originalname, item.name} & CI:
            item.add_marker(pytest.mark.wide)
