"""Transmissions of a URDF: a motor with a gear on one joint."""

from jaxdyn.io.files import Element, parse_number
from jaxdyn.io.urdf._joints import make_unique_name
from jaxdyn.model import ModelBuilder

_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")


def add_drives(robot: Element, drivable: set[str], builder: ModelBuilder):
    """Adds an actuator for each transmission of one motor to one joint of `drivable`.

    The gear of the actuator is the reduction: the ratio of the effort on the joint to the effort of the motor.
    """
    groups = [robot, *robot.all("ros2_control")]
    names: dict[str, int] = {}
    for transmission in (x for group in groups for x in group.all("transmission")):
        joints = [x.attributes.get("name", "") for x in transmission.all("joint")]
        motors = transmission.all("actuator")
        kind = transmission.attributes.get("name", "")
        where = f"transmission {kind}" if kind else "transmission"
        if len(joints) != 1 or len(motors) != 1:
            builder.add_note(where, f"has {len(joints)} joints and {len(motors)} actuators, not one of each: ignored")
        elif joints[0] not in drivable:
            builder.add_note(
                where, f"drives {joints[0]!r}, which is not a joint with one independent coordinate: ignored"
            )
        else:
            gear = _gear(transmission, motors[0], where, builder)
            name = motors[0].attributes.get("name") or kind or f"{joints[0]}_drive"
            builder.add_actuator(make_unique_name(name, names), joints[0], gear=gear)


def _gear(transmission: Element, motor: Element, where: str, builder: ModelBuilder) -> float:
    for owner in (motor, *transmission.all("joint"), transmission):
        for tag in _REDUCTIONS:
            element = owner.first(tag)
            if element is None:
                continue
            gear = parse_number(element, f"<{tag}>", element.text)
            if gear != 0:
                return gear
            builder.add_note(where, "has a reduction of zero: 1 assumed")
            return 1.0
    builder.add_note(where, "has no reduction: 1 assumed")
    return 1.0
