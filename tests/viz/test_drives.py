"""The figure of drives."""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, SteppingMotor, ThermalModel
from jaxdyn.viz import plot_drives


@pytest.mark.slow
def test_speed_torque_diagrams(tmp_path):
    """One panel for each actuator; limits where the motor has some, hot limits where it has temperatures."""
    arm = jd.robots.double_pendulum()
    upper, lower = arm.joint_names
    thermal = ThermalModel(0.5, 4.0)
    motor = DcMotor(
        upper, constant=0.06, resistance=1.2, gear=50.0, voltage_limit=24.0, current_limit=15.0, thermal=thermal
    )
    stepper = SteppingMotor(lower, holding_torque=1.0, pole_pairs=50, viscous=0.02, gear=20.0)
    ts = jnp.linspace(0.0, 0.5, 26)
    run = jd.simulate(
        jd.System(arm, (motor, stepper)), jnp.zeros(2), jnp.zeros(2), ts, inputs=jnp.array([20.0, 0.0]), dt=2e-3
    )
    path = tmp_path / "drives.png"
    figure = plot_drives(run, path, title="swing")
    assert path.stat().st_size > 10_000
    first, second, *rest = figure.axes
    assert rest == [] and [axes.get_title(loc="left") for axes in (first, second)] == [upper, lower]
    labels = lambda axes: [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels(first)[0] == "limits of the motor" and "°C" in labels(first)[1] and labels(second) == ["motion"]
    for axes in (first, second):
        figure.canvas.draw()
        assert axes.get_legend().get_window_extent().y1 <= axes.xaxis.label.get_window_extent().y0 + 1  # covers nothing
    high = first.lines[0].get_ydata()
    assert abs(high[len(high) // 2] - 50 * 0.06 * 15.0) < 1e-9  # the current limit at rest
    with pytest.raises(jd.ModelError, match="the suffix of a figure"):
        plot_drives(run, tmp_path / "drives.bmp")
    with pytest.raises(jd.ShapeError, match="not a batch"):
        plot_drives(jax.tree.map(lambda x: x[None], run))
    still = jd.simulate(arm, jnp.zeros(2), jnp.zeros(2), ts[:3], dt=0.01)
    with pytest.raises(jd.ModelError, match="no actuators"):
        plot_drives(still)
