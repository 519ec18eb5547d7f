"""A robot with the surface of a dynamic environment as a link."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.constraints.types import End, as_end
from jaxdyn.contact.compliant import AbstractNormalLaw, CompliantContact
from jaxdyn.contact.environment._dynamics import Environment
from jaxdyn.contact.geometry import Gap, Plane, Point
from jaxdyn.joints import Prismatic
from jaxdyn.model import Model, to_builder
from jaxdyn.recursion import check_model


class EnvironmentModel(NamedTuple):
    """Result of `with_environment`."""

    #: the robot with the surface; the coordinate of the surface is the last one
    model: Model
    #: gap of the tool to the moving surface
    gap: Gap
    #: the contact of tool and surface through the outer spring; None without one
    contact: CompliantContact | None


def with_environment(
    model: Model,
    frame: End | str | tuple,
    surface: End | str | tuple,
    environment: Environment,
    *,
    outer: AbstractNormalLaw | None = None,
    name: str = "environment",
) -> EnvironmentModel:
    """The robot together with a surface that moves along its normal, on a spring and a damper.

    The surface is a link on a prismatic joint with the stiffness and damping of the environment, and its mass as
    armature. Its coordinate is measured from the equilibrium, so that its weight does not appear. With an outer spring
    the tool acts on it through a `CompliantContact`, `F = max(0, k_o (w - s) + b_o (wdot - sdot))`. Without one the
    contact is rigid: pass `gap` to a `Contact` of a `ContactMotion`, which simulates the impact on the mass and the
    motion in contact with it.

    Arguments:

    * `model`: the robot
    * `frame`: the contact point of the tool, a frame as for `Gap`
    * `surface`: a frame on "world" in the surface at equilibrium, whose z axis is the outward normal
    * `environment`: mass, stiffness and damping, which become the leaves `armature`, `stiffness` and `damping`
    * `outer`: law of a spring between tool and mass, such as `KelvinVoigt(k_o, b_o)`
    * `name`: of the link; its joint is `<name>_joint`

    Raises `ModelError` for a surface that is not fixed to the world.

    ```python
    import jaxdyn as jd
    from jaxdyn.contact import Environment, KelvinVoigt, with_environment

    arm = jd.robots.double_pendulum()
    floor = ("world", (0.0, 0.0, -1.5))
    robot, gap, contact = with_environment(
        arm, "tip", floor, Environment(0.5, 4000.0, 30.0), outer=KelvinVoigt(1e5)
    )
    system = jd.System(robot, (contact,))
    ```
    """
    check_model(model)
    base = as_end(surface)
    if base.link != "world":
        raise ModelError(
            f"the surface of {name!r} is on {base.link!r}; expected a frame on 'world', because the mass of the "
            "environment counts along its own coordinate only: for an object on a robot use "
            "jaxdyn.actuators.add_elastic_object"
        )
    builder = to_builder(model)
    builder.add_link(
        name,
        "world",
        Prismatic([0.0, 0.0, 1.0]),
        translation=base.translation,
        quaternion=base.rotation,
        armature=environment.mass,
        stiffness=environment.stiffness,
        damping=environment.damping,
    )
    gap = Gap(first=frame, shape=Point(), second=End(name, jnp.zeros(3, model.dtype)), surface=Plane())
    return EnvironmentModel(builder.build(model.dtype), gap, None if outer is None else CompliantContact(gap, outer))
