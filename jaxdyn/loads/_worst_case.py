"""The largest value over sections and times, and where it occurs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn._numerics import is_concrete
from jaxdyn._types import Array, Float, Int
from jaxdyn.loads._deflections import Deflections
from jaxdyn.loads._internal_loads import InternalLoads
from jaxdyn.loads._stresses import Stresses


class WorstCase(eqx.Module):
    """The largest value of a quantity, with its beam, section and time."""

    #: in the unit of the quantity
    value: Float[Array, ""]
    #: s, NaN without times
    time: Float[Array, ""]
    #: distance from the start of the beam, m
    s: Float[Array, ""]
    #: row of the beam, of the section, and of the time
    beam: Int[Array, ""]
    section: Int[Array, ""]
    row: Int[Array, ""]
    #: link of each beam
    links: tuple[str, ...] = eqx.field(static=True)

    @property
    def link(self) -> str:
        """Link of the beam; for concrete values only."""
        return self.links[int(self.beam)]

    def __repr__(self) -> str:
        if not isinstance(self.beam, jax.Array | np.ndarray) or not is_concrete(self.beam) or self.beam.ndim:
            return super().__repr__()  # traced, abstract, or a batch
        when = "" if np.isnan(self.time) else f" at t = {float(self.time):.4g} s"
        number = self.links[: int(self.beam)].count(self.link)
        part = f", beam {number}" if self.links.count(self.link) > 1 else ""
        return f"WorstCase({float(self.value):.6g}{when}, link {self.link!r}{part}, s = {float(self.s):.4g} m)"


def worst_case(
    values: Float[Array, "*times beams sections"],
    rows: InternalLoads | Stresses | Deflections,
    times: Float[Array, " times"] | None = None,
) -> WorstCase:
    """The largest of the values at sections of beams, of one state or along a trajectory.

    Only saved times and sections are compared. The value has the derivative of the largest entry.

    Arguments:

    * `values`: for example `stresses(...).von_mises`, `stresses(...).utilisation` or `internal_loads(...).bending`
    * `rows`: the result from which the values follow
    * `times`: of the trajectory, s, such as `trajectory.t`

    Returns a `WorstCase`. Raises `ShapeError` if the shapes differ.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.beams import Beam, Material, Tube
    from jaxdyn.loads import internal_loads, worst_case

    tube = Beam(Tube(0.03, 0.026), Material.aluminium(), 0.8)
    arm = jd.ModelBuilder().add_link("arm", "world", inertia=tube.inertia()).build()
    none = jnp.zeros(0)
    loads = internal_loads(arm, {"arm": tube}, none, none, none)
    worst = worst_case(loads.bending, loads)
    assert worst.link == "arm" and worst.s == 0
    ```
    """
    expected = rows.s.shape
    if values.shape != expected or (times is not None and times.shape != expected[:-2]):
        given = "" if times is None else f" and times of shape {times.shape}"
        raise ShapeError(
            f"values of shape {values.shape}{given} were given for sections of shape {expected}; expected equal "
            "shapes, with one time for each row of a trajectory: worst_case(stress.von_mises, stress, trajectory.t)"
        )
    flat = jnp.argmax(values)
    row, rest = jnp.divmod(flat, expected[-2] * expected[-1])
    beam, section = jnp.divmod(rest, expected[-1])
    time = jnp.full((), jnp.nan, values.dtype) if times is None else times[row]
    return WorstCase(values.ravel()[flat], time, rows.s.ravel()[flat], beam, section, row, rows.links)
