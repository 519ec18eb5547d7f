"""Model-predictive control of driven robots: a controller that commands the inputs of actuators."""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import AbstractController, Command
from jaxdyn.simulation import State
from jaxdyn.trajopt.drivers._mpc import AbstractReplanner, Planned, first_plan, next_plan, prepare_replanning
from jaxdyn.trajopt.problem import Problem, Robot
from jaxdyn.trajopt.transcription import rk4


class PredictiveInputs(AbstractController):
    """Model-predictive controller of a driven robot: solves a problem at every sample and commands voltages.

    The problem has the dynamics of a `Robot` whose controls are the inputs of its actuators. The measured state of the
    whole system, currents and temperatures included, replaces the initial state of the problem; otherwise it is
    `ModelPredictive`. Sample it with its `period`, one interval, and give the same `delay` to both:
    `SampledInputs(control, period=control.period, delay=delay)`. The memory of the controller is a `Planned`.

    The parts of the simulated system begin with those of the robot of the problem.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.simulation import SampledInputs
    from jaxdyn.trajopt import Bounds, PredictiveInputs, Problem, Robot

    pendulum = jd.robots.pendulum()
    motor = DcMotor(pendulum.joint_names[0], constant=0.05, resistance=1.0, gear=20.0, voltage_limit=12.0)
    robot = Robot(jd.System(pendulum, (motor,)))


    def cost(t, x, u):
        return 10.0 * (x[0] - 0.5) ** 2 + 0.1 * x[1] ** 2 + 1e-3 * u @ u


    problem = Problem(robot, 0.6, start=jnp.zeros(2), running=cost, bounds=Bounds.of(robot))
    control = PredictiveInputs(problem, intervals=12)
    inputs = SampledInputs(control, period=control.period)
    ```
    """

    problem: Problem
    solver: AbstractReplanner
    #: time between two samples, s
    period: Float[Array, "*batch"]
    #: time from a sample until its inputs act, s
    delay: Float[Array, "*batch"]
    intervals: int = eqx.field(static=True)
    predicts: bool = eqx.field(static=True)

    def __init__(
        self,
        problem: Problem,
        *,
        intervals: int = 30,
        solver: AbstractReplanner | None = None,
        delay: ArrayLike = 0.0,
    ):
        """Arguments:

        * `problem`: a `Problem` for a `Robot` with actuators, with a fixed initial state and a fixed horizon.
        * `intervals`: number of intervals of the horizon.
        * `solver`: an `AbstractReplanner`, by default `WarmILQR()`.
        * `delay`: time from a sample until its inputs act, s, at most one interval; the plan starts from the state
          predicted for that time under the preceding plan.

        Raises `ModelError` for dynamics without inputs of actuators.
        """
        self.problem, self.solver, self.period, self.delay, self.predicts = prepare_replanning(
            problem, intervals, solver, delay, "PredictiveInputs"
        )
        _check_robot(problem, "PredictiveInputs")
        self.intervals = intervals

    @property
    def robot(self) -> Robot:
        """The driven robot of the problem."""
        robot: Robot = self.problem.dynamics  # pyright: ignore[reportAssignmentType]
        return robot

    def initial(self, model, q, v) -> Planned:
        """The guess of the problem as a plan, with a first input of zero."""
        x = self.robot.to_vector(State(q, v))
        return first_plan(self.problem, self.solver, self.intervals, x)

    def command(self, model, t, state, memory: Planned) -> Command:
        """The first inputs of the plan from the state measured at time t, or predicted for `t + delay`."""
        robot = self.robot
        x = jnp.concatenate([state.q, state.v, robot.layout.flatten(state.parts, state.v.dtype)])
        if self.predicts:
            x = rk4(lambda t, x: robot.rate(t, x, memory.u[0]), t, x, self.delay)
        plan = next_plan(self.problem, self.solver, t + self.delay, x, memory)
        return Command(plan.u[0], memory=plan)


def _check_robot(problem: Problem, user: str):
    d = problem.dynamics
    if not isinstance(d, Robot) or d.inputs is not None:
        raise ModelError(
            f"{user} commands the inputs of actuators, but the controls of this problem are {list(d.control_names)}; "
            "give Problem a Robot(System(model, actuators)), or take ModelPredictive, which commands efforts"
        )
