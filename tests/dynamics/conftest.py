"""Which of the slow gradient checks CI runs: those of the functions that everything else is made of."""

import pytest

CORE = {"rnea", "mass_matrix", "forward_dynamics", "kinetic_energy", "joint_reactions", "task_space_dynamics"}


def pytest_collection_modifyitems(items):
    for item in items:
        params = getattr(item, "callspec", None)
        name = params.params.get("name") if params else None
        gradient = item.path.name == "test_gradients.py" and item.get_closest_marker("slow")
        if gradient and isinstance(name, str) and name not in CORE:
            item.add_marker(pytest.mark.wide)
