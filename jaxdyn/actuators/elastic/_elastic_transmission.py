"""Elastic transmissions between motors and joints."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, check_instance
from jaxdyn._numerics import is_concrete
from jaxdyn.actuators.elastic._stage import Stage, equivalent_stages
from jaxdyn.actuators.elastic._transmission_springs import TransmissionSprings
from jaxdyn.joints import Revolute
from jaxdyn.model import Model, Note, to_builder
from jaxdyn.spatial import Inertia


def add_elastic_transmission(
    model: Model, joint: str, stages: Stage | Sequence[Stage], *, rotor: Inertia | None = None
) -> tuple[Model, TransmissionSprings]:
    """The model with the shafts of an elastic transmission in front of a joint, and the part with its springs.

    Each shaft is a link without mass on the parent link of the joint, with the joint's axis. Its inertia is an
    armature, so that the rotation of the shafts about moving axes does not enter the equations of the links (Spong
    1987). The input shaft turns in the joint `<joint>_shaft`, which an actuator drives, `DcMotor("<joint>_shaft")`, the
    other shafts in `<joint>_shaft2` and so on. Coordinates are numbered depth first: look them up by
    `model.joint(name)`.

    Arguments:

    * `model`, `joint`: the robot and the name of a joint with one coordinate, such as `Revolute` or `Prismatic`
    * `stages`: a `Stage`, or several from the motor to the joint. The first needs an inertia, which may be zero if an
      actuator on the shaft has a rotor inertia; a later stage without inertias is in series with the preceding one
    * `rotor`: the rotor as a body, in the axes of the joint frame: it moves with the parent link and adds to the
      inertia of the input shaft, with the gyroscopic moments of its spin

    Returns `(model, part)` for `System(model, parts=(part, ...))`. The inertias of the shafts are leaves of the part,
    and a `System` simulates the model that includes them; elsewhere use `part.mount(model)`. Raises
    `ModelError` for a joint without exactly one coordinate, a mimic joint, and stages that cannot be merged.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import Stage, add_elastic_transmission

    arm = jd.robots.pendulum()
    joint = arm.joint_names[0]
    robot, springs = add_elastic_transmission(arm, joint, Stage(80.0, 5000.0, damping=2.0, input_inertia=2.5e-4))
    system = jd.System(robot, (springs,))
    run = jd.simulate(system, jnp.array([0.1, 8.0]), jnp.zeros(2), jnp.linspace(0.0, 0.05, 3))
    ```
    """
    stages = (stages,) if isinstance(stages, Stage) else tuple(stages)
    _check_stages(joint, stages, rotor)
    view, parent = _check_joint(model, joint)
    builder = to_builder(model)
    names = [f"{joint}_shaft", *(f"{joint}_shaft{k}" for k in range(2, len(equivalent_stages(stages)) + 1))]
    axis = getattr(view.joint, "axis", jnp.array([0.0, 0.0, 1.0]))
    for k, name in enumerate(names):
        builder.add_link(
            name,
            parent,
            Revolute(axis),  # not Continuous, whose differences are within half a turn: motors make many turns
            rotor if k == 0 else None,
            joint_name=name,
            translation=model.placements.translation[view.index],
            quaternion=model.placements.rotation[view.index],
        )
    part = TransmissionSprings(joint, tuple(names), stages, has_rotor_body=rotor is not None)
    return _note_inertias(builder.build(model.dtype), names), part


def _check_joint(model: Model, joint: str):
    view = model.joint(joint)
    if view.index in {follower for follower, _ in model.topology.mimics}:
        raise ModelError(f"add_elastic_transmission: joint {joint!r} mimics another joint; give that joint's name")
    if view.joint.nv != 1 or view.joint.nq != 1:
        raise ModelError(
            f"add_elastic_transmission: joint {joint!r} is {type(view.joint).__name__} with {view.joint.nv} velocity "
            "coordinates; a transmission drives a joint with one"
        )
    parent = model.topology.parents[view.index]
    return view, model.link_names[parent] if parent >= 0 else "world"


def _check_stages(joint: str, stages: tuple[Stage, ...], rotor: Inertia | None):
    where = f"elastic transmission of joint {joint!r}"
    if not stages:
        raise ModelError(f"{where}: no stages; give one Stage or more")
    for k, stage in enumerate(stages, 1):
        check_instance(f"{where}: stage {k}", stage, Stage, "make one with jaxdyn.actuators.Stage", error=ModelError)
    if not stages[0].has_inertia and rotor is None:
        raise ModelError(
            f"{where}: the input shaft has no inertia, and a mass matrix with zero armature is singular; give the "
            "first stage input_inertia, which may be 0.0 if the rotor inertia of an actuator on the shaft is not zero"
        )
    for k, stage in enumerate(stages[1:], 2):
        inertia = stage.shaft_inertia
        if stage.has_inertia and is_concrete(inertia) and np.any(np.asarray(inertia) <= 0):
            raise ModelError(
                f"{where}: the input shaft of stage {k} has the inertia {np.asarray(inertia)}, and a mass matrix with "
                "zero armature is singular; give a positive inertia, or None for both inertias to put the springs in "
                "series"
            )
        preceding = stages[k - 2]
        if not stage.has_inertia and not (stage.is_linear and preceding.is_linear and preceding.damping is None):
            raise ModelError(
                f"{where}: stage {k} has no inertia and is in series with stage {k - 1}, but springs in series must be "
                "linear, without backlash or hysteresis, and damped at the last of them only; give stage "
                f"{k} an inertia"
            )


#: note in the report on the shafts
_INERTIA = "its inertia is brought by TransmissionSprings.mount"


def _note_inertias(model: Model, names: list[str]) -> Model:
    """Notes where the inertias of the shafts are, in place of the notes on joints without inertia."""
    shafts = [note for note in model.report if note.what == _INERTIA]
    shafts += [Note(f"joint {name}", _INERTIA) for name in names]
    joints = {note.where for note in shafts}
    others = [note for note in model.report if note.where not in joints]
    return dataclasses.replace(model, info=dataclasses.replace(model.info, notes=(*others, *shafts)))
