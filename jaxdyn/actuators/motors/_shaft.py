"""Shafts of motors that are mounted away from the joint that they drive."""

from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn.joints import Revolute
from jaxdyn.model import Model, to_builder


def add_shaft(
    model: Model,
    name: str,
    parent: str = "world",
    *,
    axis: ArrayLike | tuple[float, float, float] = (0.0, 0.0, 1.0),
    inertia: ArrayLike = 0.0,
) -> Model:
    """The model with the massless shaft of a motor in a bearing on a link, with a separate coordinate.

    A belt, a chain or a gear train couples the shaft to one or several joints, `theta = A q`, by
    `jaxdyn.constraints.LinearCoupling`. A motor drives the shaft by its name, `DcMotor(name, ...)`, and adds the
    inertia of its rotor. The spin of the shaft does not act on the link that carries it (Spong 1987), which is exact
    for motors at a fixed base; `add_rotor` is the rotor as a body.

    Arguments:

    * `model`: the robot
    * `name`: name of the new link and of its joint
    * `parent`: link that carries the bearing
    * `axis`: axis of the shaft, in axes of that link
    * `inertia`: kg m^2, of the shaft besides the rotors of motors; a leaf, `properties.armature`

    Raises `ModelError` for a name that the model has already.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor, add_shaft
    from jaxdyn.constraints import ConstrainedMotion, LinearCoupling

    arm = jd.robots.double_pendulum()
    first, second = arm.joint_names
    robot = add_shaft(arm, "elbow_motor")
    chain = LinearCoupling("chain", "elbow_motor", (first, second), (40.0, 40.0))  # the elbow's motor at the base
    motor = DcMotor("elbow_motor", constant=0.05, resistance=1.5, rotor_inertia=1e-4)
    system = jd.System(robot, (motor,), motion=ConstrainedMotion((chain,)))
    rate = system.rate(0.0, system.initial(jnp.zeros(3), jnp.zeros(3)), jnp.array([6.0]))
    ```
    """
    if name in model.link_names or name in model.joint_names:
        raise ModelError(f"add_shaft: the model has a link or joint {name!r} already; give the shaft another name")
    builder = to_builder(model)
    builder.add_link(name, parent, Revolute(axis), joint_name=name, armature=inertia)
    return builder.build(model.dtype)
