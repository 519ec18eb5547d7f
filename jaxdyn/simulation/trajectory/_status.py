"""The outcome of a simulation."""

from jaxdyn._status import Status


class SimulationStatus(Status):
    """How a simulation ended."""

    FINISHED = 0, "the last time was reached"
    EVENT = 1, "a terminal event happened before the last time"
    MAX_EVENTS = 2, "the number of events reached `max_events` before the last time"
    MAX_STEPS = 3, "the number of steps reached `max_steps` before the last time"
    NOT_FINITE = 4, "a state contains a number that is not finite"
    FAILED = (
        5,
        "a step failed: an implicit solve or the location of an event did not converge, or adapted steps shrank "
        "below the resolution of time, for example because accelerations are not finite",
    )
    HELD = (
        6,
        "the robot rests against an event that would have to hold it, or is beyond a barrier, before the last time",
    )
    OFF_CONSTRAINT = 7, "the initial or the final state violates the constraints"
    INDETERMINATE = (
        8,
        "contact forces do not exist or are not unique, as in Painleve's paradox; `phases.culprit` is the contact",
    )
    IMPACT_LIMIT = 9, "impacts at one instant did not end"
    NOT_SOLVED = 10, "the complementarity problem of contact forces was not solved"
