"""The quantities that the columns of a log hold: of the joints of a robot, and of the actuators of a system."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from jaxdyn._errors import ModelError, format_names
from jaxdyn.identification.logs._columns import CONVENTIONS, Columns, Source, all_column_names
from jaxdyn.identification.logs._logged_inputs import has_logged_inputs
from jaxdyn.identification.logs.tables import LogError, Table
from jaxdyn.model import Model
from jaxdyn.simulation import System, coordinate_names, effort_names, velocity_names
from jaxdyn.simulation.system import as_system, has_free_inputs, input_names, measurement_units

#: SI units of the inputs of actuators by quantity; others are numbers without a unit
_INPUT_UNITS = {"voltage": "V", "current": "A", "torque": "N m", "field_angle": "rad"}


class Quantity(NamedTuple):
    """One quantity with a column for each of some joints."""

    #: for messages and channels, such as `q` or `voltage`
    name: str
    source: Source
    joints: tuple[str, ...]
    #: SI unit of each joint
    units: tuple[str, ...]
    #: array of the log, and the entry of each joint in it
    array: str
    entries: tuple[int, ...]
    #: power of the gear in the conversion
    gear_power: int = 0

    def channel(self, k: int) -> str:
        """Quantity and joint, such as `q.elbow`."""
        return f"{self.name}.{self.joints[k]}"


def list_quantities(system: Model | System, columns: Columns) -> tuple[list[Quantity], dict[str, int], tuple[str, ...]]:
    """The quantities of a log, the number of columns of each array, and the names of the measurements."""
    system = as_system(system)
    effort = columns.effort
    if effort is None:
        if not system.num_inputs:
            raise ModelError(
                "Columns have no effort, and the robot has no actuator with inputs; give Columns(effort=Source(...)), "
                "or a System with its actuators"
            )
        effort = Source({}, missing=0.0)
    sources = {"q": columns.position, "v": columns.velocity, "a": columns.acceleration, "effort": effort}
    quantities, sizes = [], {}
    for name, source in sources.items():
        if source is not None:
            named = _coordinate_names(system.model, name)
            sizes[name] = len(named)
            joints, units = zip(*named, strict=True)
            power = 1 if name == "effort" else -1
            quantities.append(Quantity(name, source, joints, units, name, tuple(range(len(named))), power))
    inputs = _inputs(system, columns.inputs)
    measured, names = _measurements(system, columns.measured)
    sizes |= {"inputs": system.num_inputs} if inputs else {}
    sizes |= {"measured": len(names)} if names else {}
    return [*quantities, *inputs, *measured], sizes, names


def choose_columns(tables: Sequence[Table], system: Model | System) -> Columns:
    """The columns of a run by the names that jaxdyn and ROS write."""
    system, present = as_system(system), set(all_column_names(tables))
    is_present = lambda source: any(c.startswith(str(source.pattern).partition("{")[0]) for c in present)
    for convention in CONVENTIONS:
        needed = [x for x in (convention.position, convention.effort) if x is not None]
        needed = needed[:1] if system.num_inputs else needed
        if convention.time in present and all(map(is_present, needed)):
            optional = {x: getattr(convention, x) for x in ("effort", "velocity")}
            logged = {name: source if is_present(source) else None for name, source in optional.items()}
            return replace(convention, **logged, **_conventional_sources(system, present))
    raise LogError(
        f"{tables[0].name}: has columns {format_names(all_column_names(tables))}; expected t, q.<joint> and "
        "effort.<joint>, or time, position.<joint> and effort.<joint>; for other names pass columns=Columns(...)"
    )


def _conventional_sources(system: System, present: set[str]) -> dict[str, dict[str, Source]]:
    """Sources of inputs, and of the measurements that have columns, named as in "voltage.elbow"."""
    wanted = _by_quantity(input_names(system)) if _takes_inputs(system) else {}
    inputs = {name: Source(f"{name}.{{joint}}") for name in wanted}
    measured = {}
    for name, joints in _by_quantity(tuple(measurement_units(system))).items():
        columns = {joint: f"{name}.{joint}" for joint, _ in joints if f"{name}.{joint}" in present}
        if columns and name not in inputs:  # a column named after an input is the commanded quantity
            measured[name] = Source(columns)
    return {"inputs": inputs, "measured": measured}


def _coordinate_names(model: Model, quantity: str) -> tuple[tuple[str, str], ...]:
    if quantity == "q":
        return coordinate_names(model)
    if quantity == "effort":
        return effort_names(model)
    suffix = "/s" if quantity == "a" else ""
    return tuple(
        (name, {"rad/s/s": "rad/s^2", "m/s/s": "m/s^2"}.get(unit + suffix, unit))
        for name, unit in velocity_names(model)
    )


def _by_quantity(names: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    """Joints and positions of names such as "voltage.elbow", by quantity."""
    found: dict[str, list[tuple[str, int]]] = {}
    for k, name in enumerate(names):
        quantity, _, joint = name.partition(".")
        found.setdefault(quantity, []).append((joint, k))
    return found


def _takes_inputs(system: System) -> bool:
    return has_free_inputs(system) or any(map(has_logged_inputs, system.parts))


def _inputs(system: System, sources: Mapping[str, Source]) -> list[Quantity]:
    """The inputs of all actuators."""
    if not _takes_inputs(system):
        if sources:
            raise ModelError(
                f"Columns have inputs {format_names(sources)}, and the system has no actuator that takes inputs from a "
                "log; leave them out, or give prepare a System with its actuators and without a controller"
            )
        return []
    wanted = _by_quantity(input_names(system))
    unknown, lacking = (sorted(a - b) for a, b in ((set(sources), set(wanted)), (set(wanted), set(sources))))
    if unknown or lacking:
        raise ModelError(
            f"Columns have inputs {format_names(sources)}, and the actuators of the system take "
            f"{format_names(wanted)}; give Columns(inputs=) one Source for each of these"
        )
    return [
        Quantity(
            name,
            sources[name],
            tuple(joint for joint, _ in named),
            (_INPUT_UNITS.get(name, ""),) * len(named),
            "inputs",
            tuple(k for _, k in named),
        )
        for name, named in wanted.items()
    ]


def _measurements(system: System, sources: Mapping[str, Source]) -> tuple[list[Quantity], tuple[str, ...]]:
    """The measurements of actuators that have columns, and the names of all of them."""
    units = measurement_units(system)
    known = _by_quantity(tuple(units))
    unknown = [name for name in sources if name not in known]
    if unknown:
        raise ModelError(
            f"Columns have measured {format_names(unknown)}, which no actuator of the system has; expected some of "
            f"{format_names(known) if known else 'none: give prepare a System with its actuators'}"
        )
    quantities, names = [], []
    for name, source in sources.items():
        joints = tuple(joint for joint, _ in known[name])
        if isinstance(source.pattern, Mapping) and set(source.pattern) <= set(joints):
            joints = tuple(joint for joint in joints if joint in source.pattern)  # other joints are not measured
        entries = tuple(range(len(names), len(names) + len(joints)))
        names += [f"{name}.{joint}" for joint in joints]
        quantities.append(Quantity(name, source, joints, tuple(units[names[k]] for k in entries), "measured", entries))
    return quantities, tuple(names)
