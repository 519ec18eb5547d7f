"""Events at the instants at which parts of a system switch."""

from collections.abc import Sequence

import equinox as eqx

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import AbstractSwitchingPart, PartSwitch
from jaxdyn.model import Model
from jaxdyn.recursion import check_model
from jaxdyn.simulation.events._events import Event
from jaxdyn.simulation.system import System, as_system


class SwitchCondition(eqx.Module):
    """The condition of one switch of one part of a system; `bind_switches` sets the switch."""

    part: int = eqx.field(static=True)
    index: int = eqx.field(static=True)
    switch: PartSwitch

    def __call__(self, model, t, q, v, parts):
        return self.switch.condition(model, t, q, v, parts[self.part])


class SwitchUpdate(eqx.Module):
    """The update of the state of one part by one of its switches, as a reset map."""

    part: int = eqx.field(static=True)
    switch: PartSwitch

    def __call__(self, model, t, q, v, parts):
        assert self.switch.update is not None
        states = list(parts)
        states[self.part] = self.switch.update(model, t, q, v, states[self.part])
        return q, v, tuple(states)


def switching_events(system: Model | System) -> tuple[Event, ...]:
    """Events at the instants at which the parts of a system switch, for `simulate(system, ..., events=)`.

    With these events steps end where a contact closes and opens, and results have the derivatives of the instants.
    `simulate` evaluates the conditions with the parts of its own system, so that derivatives with respect to
    the numbers of a contact are complete wherever the events were made.

    Arguments:

    * `system`: a system some of whose parts are an `AbstractSwitchingPart`, such as a `CompliantContact`.

    Returns one event for each switch, in the order of the parts.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import CompliantContact, Gap, KelvinVoigt, Plane, Point
    from jaxdyn.simulation import switching_events
    from jaxdyn.spatial import point_mass

    b = jd.ModelBuilder()
    ball = b.add_link("ball", "world", jd.joints.Prismatic([0, 0, 1]), point_mass(1.0)).build()
    floor = CompliantContact(Gap("ball", Point(), "world", Plane()), KelvinVoigt(1e4, 10.0))
    system = jd.System(ball, (floor,))
    ts = jnp.array([0.0, 0.5])
    drop = jd.simulate(system, jnp.ones(1), jnp.zeros(1), ts, events=switching_events(system))
    assert abs(drop.events.time[0] - (2 / 9.81) ** 0.5) < 1e-9  # the ball touches the floor
    ```
    """
    system = as_system(system)
    check_model(system.model)
    return tuple(
        _event(k, i, switch)
        for k, part in enumerate(system.parts)
        if isinstance(part, AbstractSwitchingPart)
        for i, switch in enumerate(part.switches())
    )


def _event(part: int, index: int, switch: PartSwitch) -> Event:
    update = None if switch.update is None else SwitchUpdate(part, switch)
    return Event(
        SwitchCondition(part, index, switch),
        update,
        direction=switch.direction,
        sees_parts=True,
        resets_parts=update is not None,
    )


def bind_switches(events: Sequence[Event], system: System) -> tuple[Event, ...]:
    """The events, those of switches with the numbers of the system's own parts.

    Raises `ModelError` if a part has a discrete state and the events of its switches are missing.
    """
    own = {(e.condition.part, e.condition.index): e for e in switching_events(system)}
    given = set()
    bound = []
    for event in events:
        if isinstance(event.condition, SwitchCondition):
            key = event.condition.part, event.condition.index
            if key not in own:
                raise ModelError(
                    f"an event belongs to switch {key[1]} of part {key[0]}, which the system does not have; make the "
                    "events of the system that is simulated, by jaxdyn.simulation.switching_events(system)"
                )
            given.add(key)
            event = own[key]
        bound.append(event)
    for key, event in own.items():
        if event.reset is not None and key not in given:
            raise ModelError(
                f"{type(system.parts[key[0]]).__name__} changes its discrete state at events, which are missing; give "
                "simulate(system, ..., events=jaxdyn.simulation.switching_events(system)), or a part without a "
                "discrete state, such as CompliantContact(..., located=False)"
            )
    return tuple(bound)
