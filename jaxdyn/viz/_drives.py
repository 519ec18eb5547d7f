"""The speed-torque diagrams of the drives of a trajectory."""

import os

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdyn._errors import ModelError
from jaxdyn.actuators import (
    AbstractJointActuator,
    DcMotor,
    MotorState,
    SynchronousMotor,
    motor_ratings,
    torque_range,
)
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import DriveLoads, Trajectory, drive_loads
from jaxdyn.viz._canvas import COLORS, GREY, check_drawable, finish_figure, label_axes, new_figure

#: points of a limit curve
_POINTS = 401
_COLUMNS = 3


def plot_drives(
    trajectory: Trajectory, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 120
) -> Figure:
    """Draws the speed-torque diagram of each actuator: the motion of its joint within the limits of the motor.

    The shaded region contains the efforts that a `DcMotor` or `SynchronousMotor` can exert at each velocity within its
    limits of voltage and current, with the losses of its gear (`torque_range`). For a motor with a thermal model, the
    limits at its highest temperature are dashed. Limits do not contain the torque that accelerates the rotor.

    Arguments: as for `plot_trajectory`; the system of the trajectory has actuators (`AbstractJointActuator`).

    Returns the matplotlib figure, which is independent of pyplot. Raises `ShapeError` for a batch of trajectories, and
    `ModelError` for another suffix of `path` and for a system without actuators.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.viz import plot_drives

    model = jd.robots.pendulum()
    motor = DcMotor(model.joint_names[0], constant=0.06, resistance=1.2, gear=30.0, voltage_limit=24.0)
    ts = jnp.linspace(0.0, 1.0, 21)
    run = jd.simulate(jd.System(model, (motor,)), jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([12.0]))
    figure = plot_drives(run)
    assert len(figure.axes) == 1
    ```
    """
    check_drawable(trajectory, path)
    system = trajectory.system
    actuators = [(k, p) for k, p in enumerate(system.parts) if isinstance(p, AbstractJointActuator)]
    if not actuators:
        raise ModelError("the system has no actuators; add motors to its parts, System(model, (motor, ...))")
    loads = drive_loads(trajectory)
    columns = min(len(actuators), _COLUMNS)
    rows = -(-len(actuators) // columns)
    figure = new_figure(max(4.4 * columns, 5.0), 3.6 * rows)
    panels = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    for number, (k, actuator) in enumerate(actuators):
        state = None if trajectory.parts is None else trajectory.parts[k]
        _draw_drive(panels[number], loads, number, actuator, state)
        _label(panels[number], system.model, actuator)
    for axes in panels[len(actuators) :]:
        axes.axis("off")
    return finish_figure(figure, (system.model.name or "") if title is None else title, path, dpi)


def _draw_drive(axes: Axes, loads: DriveLoads, number: int, actuator: AbstractJointActuator, state):
    v, effort = np.asarray(loads.velocity[:, number]), np.asarray(loads.effort[:, number])
    if isinstance(actuator, DcMotor | SynchronousMotor):
        _draw_limits(axes, actuator, np.abs(v).max(), np.abs(effort).max(), state)
    axes.axhline(0, color=GREY, linewidth=0.7)
    axes.axvline(0, color=GREY, linewidth=0.7)
    axes.plot(v, effort, color=COLORS[1], linewidth=1.4, label="motion")
    axes.plot(v[0], effort[0], "o", color=COLORS[1], markersize=4)
    # below the axes, where it covers no curve; the layout makes room for it
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=3, columnspacing=1.2)


def _draw_limits(axes: Axes, motor: DcMotor | SynchronousMotor, fastest: float, strongest: float, state):
    """The region of possible efforts, up to the no-load speed or beyond the fastest motion."""
    no_load = float(abs(motor_ratings(motor).no_load_speed / motor.gear))
    span = 1.15 * max(fastest, no_load if np.isfinite(no_load) else 0.0) or 1.0
    v = np.linspace(-span, span, _POINTS)
    low, high = (np.asarray(x) for x in torque_range(motor, v))
    if np.isfinite(low).all() and np.isfinite(high).all():
        axes.fill_between(v, low, high, color=COLORS[0], alpha=0.12, linewidth=0, label="limits of the motor")
        axes.plot(v, high, color=COLORS[0], linewidth=1.1)
        axes.plot(v, low, color=COLORS[0], linewidth=1.1)
        # beyond the no-load speed, the braking torques grow out of the range of interest
        within = np.abs(v) <= no_load
        limit = 1.1 * max(strongest, high[within].max(), -low[within].min())
        axes.set_ylim(-limit, limit)
    if motor.thermal is not None and isinstance(state, MotorState) and state.temperature is not None:
        temperature = np.asarray(state.temperature)
        hottest = temperature[temperature[:, 0].argmax()]
        hot = torque_range(motor, v, temperature=jax.numpy.asarray(hottest))
        label = f"at {hottest[0]:.0f} °C"
        for side, name in zip(hot, (label, None), strict=True):
            axes.plot(v, np.asarray(side), "--", color=COLORS[0], linewidth=0.9, label=name)
    axes.margins(x=0)


def _label(axes: Axes, model, actuator: AbstractJointActuator):
    slides = isinstance(model.joint(actuator.joint).joint, Prismatic)
    speed, effort = ("velocity [m/s]", "force [N]") if slides else ("velocity [rad/s]", "torque [N m]")
    label_axes(axes, actuator.joint, speed, effort)
