"""The lines of docs/coming_from.md give the same numbers."""

import re

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import pytest

import jaxdyn as jd
from tests.pages import read_page, run_page

URDF = """<robot name="arm"><link name="base"/>{links}{joints}</robot>"""


def arm() -> str:
    """Two hinged links of different inertia; the base keeps MuJoCo from fusing the first link with the world."""
    link = (
        '<link name="{0}"><inertial><origin xyz="0.01 0 -0.2"/><mass value="{1}"/>'
        '<inertia ixx="0.03" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    joint = (
        '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="0 0 {3}"/>'
        '<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="100" velocity="100"/></joint>'
    )
    links = link.format("upper", 1.5) + link.format("lower", 0.7)
    return URDF.format(
        links=links, joints=joint.format("a", "base", "upper", 0) + joint.format("b", "upper", "lower", -0.4)
    )


def rows() -> dict[str, list[str]]:
    """The code of each task, in the order of the libraries."""
    table = read_page("coming_from").split("## Conventions")[0]
    lines = re.findall(r"^\| (?:\*\*(.*?)\*\*)? *\| [^|]* \| (.*) \|$", table, re.M)
    tasks: dict[str, list[str]] = {}
    for name, cell in lines:
        if cell in ("code", "---"):
            continue
        if name:
            tasks[name] = []
        code = re.search(r"`([^`]*)`", cell)
        tasks[list(tasks)[-1]].append(code[1] if code else "")
    return tasks


@pytest.mark.slow
def test_libraries_agree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(arm())
    names = run_page("coming_from")
    names["qs"] = jnp.stack([names["q"], -names["q"]])
    table = rows()
    assert len(table) == 12
    values = {task: eval(cells[0], names) for task, cells in table.items()}
    q, v, tau = (np.asarray(names[x]) for x in ("q", "v", "tau"))

    model = eval(table["read a robot"][1], {"pin": pin})
    theirs = {"pin": pin, "model": model, "data": model.createData(), "q": q, "v": v, "tau": tau}
    order = np.r_[3:6, 0:3]  # Pinocchio has linear parts first
    for task in (
        "sizes",
        "neutral configuration",
        "pose of a link",
        "inverse dynamics",
        "gravity forces",
        "forward dynamics",
    ):
        np.testing.assert_allclose(values[task], eval(table[task][1], theirs), atol=1e-12, err_msg=task)
    np.testing.assert_allclose(
        values["Jacobian in world axes"], eval(table["Jacobian in world axes"][1], theirs)[order], atol=1e-12
    )
    upper = np.triu(eval(table["mass matrix"][1], theirs))
    np.testing.assert_allclose(np.triu(values["mass matrix"]), upper, atol=1e-12)
    np.testing.assert_allclose(values["derivatives of it"], eval(table["derivatives of it"][1], theirs), atol=1e-9)

    m = eval(table["read a robot"][2], {"mujoco": mujoco})
    m.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT
    d = mujoco.MjData(m)
    d.qpos, d.qvel, d.qfrc_applied = q, v, tau
    own = {
        "mujoco": mujoco,
        "m": m,
        "d": d,
        "mass": np.zeros((2, 2)),
        "jacp": np.zeros((3, 2)),
        "jacr": np.zeros((3, 2)),
    }
    np.testing.assert_allclose(values["forward dynamics"], eval(table["forward dynamics"][2], own), atol=1e-9)
    np.testing.assert_allclose(values["pose of a link"], eval(table["pose of a link"][2], own), atol=1e-9)
    for task in ("mass matrix", "Jacobian in world axes"):
        eval(table[task][2], own)
    np.testing.assert_allclose(values["mass matrix"], own["mass"], atol=1e-9)
    jacobian = np.concatenate([own["jacr"], own["jacp"]])
    np.testing.assert_allclose(values["Jacobian in world axes"], jacobian, atol=1e-9)
    assert values["a batch"].shape == (2, 2, 2) and values["one step under efforts"].q.shape == (2,)
    np.testing.assert_allclose(values["one step under efforts"].v, v + 0.002 * values["forward dynamics"], atol=2e-4)


@pytest.mark.slow
def test_conventions_of_a_free_body():
    """Quaternion first, angular velocity first, both in the axes of the body."""
    builder = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    model = builder.add_link("body", "world", jd.joints.Free(), jd.spatial.box([0.1, 0.2, 0.3], mass=2.0)).build()
    q = jd.neutral(model)
    np.testing.assert_array_equal(q, [1, 0, 0, 0, 0, 0, 0])
    turned = jd.integrate(model, q, jnp.array([0.0, 0, np.pi / 2, 0, 0, 0]))
    moved = jd.integrate(model, turned, jnp.array([0.0, 0, 0, 1.0, 0, 0]))
    np.testing.assert_allclose(moved[4:], [0, 1, 0], atol=1e-12)
    assert jax.jit(lambda q: jd.jacobian(model, q, "body"))(q).shape == (6, 6)
    np.testing.assert_allclose(jd.jacobian(model, turned, "body"), np.eye(6), atol=1e-12)
