"""Impacts at one contact or at several contacts at once."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Bool, Float
from jaxdyn.contact.laws import Newton, Poisson
from jaxdyn.contact.rigid._complementarity import ContactProblem, solve_complementarity
from jaxdyn.contact.rigid._contact import Contact
from jaxdyn.contact.rigid._forces import Cones, friction_cones, zero_speed
from jaxdyn.contact.rigid._layout import Layout, contact_layout, gather_groups
from jaxdyn.contact.rigid._planar_impact import planar_impact, smooth_impact
from jaxdyn.contact.rigid._spatial_impact import spatial_impact


class Impact(NamedTuple):
    """Impulses along all rows, and whether the equations were solved and the sequence of impacts ended."""

    impulses: Float[Array, " rows"]
    is_solved: Bool[Array, ""]
    is_ended: Bool[Array, ""]


class Encounter(NamedTuple):
    """The data of an impact."""

    contacts: tuple[Contact, ...]
    delassus: Float[Array, "rows rows"]
    #: rates before the impact
    rate: Float[Array, " rows"]
    #: 1 for contacts without gap
    touching: Float[Array, " contacts"]
    #: rebound velocity below which an impact is plastic
    rest_speed: Float[Array, ""]


class AbstractImpactSequence(eqx.Module):
    """Contract of the order of impacts that happen at the same instant."""

    @abc.abstractmethod
    def check(self, contacts: tuple[Contact, ...]) -> None:
        """Raises `ModelError` where the order does not fit the laws of the contacts."""

    @abc.abstractmethod
    def resolve(self, encounter: Encounter) -> Impact:
        """Impulses after which no touching contact has an approach velocity."""


def single_impact(encounter: Encounter, i) -> Float[Array, " rows"]:
    """The impulses of a single impact at contact i, without impulses of rolling and spinning friction."""
    layout, cones = contact_layout(encounter.contacts), friction_cones(encounter.contacts, encounter.rate.dtype)
    kinds = [_Kind.of(c) for c in encounter.contacts]
    distinct = list(dict.fromkeys(kinds))
    own = jnp.asarray([distinct.index(kind) for kind in kinds])[i]
    branches = [lambda i, kind=kind: _impact_of_kind(kind, kinds, layout, cones, encounter, i) for kind in distinct]
    return jax.lax.switch(own, branches, i) if len(branches) > 1 else branches[0](i)


class _Kind(NamedTuple):
    rows: int
    law: type

    @classmethod
    def of(cls, contact: Contact):
        return cls(1 + (contact.dimensions[0] if contact.dimensions else 0), type(contact.restitution))


def _impact_of_kind(kind: _Kind, kinds, layout: Layout, cones: Cones, x: Encounter, i):
    members = [k for k, own in enumerate(kinds) if own == kind]
    table = np.array(
        [
            layout.normal[k] + np.arange(kind.rows) if k in members else np.zeros(kind.rows, int)
            for k in range(len(kinds))
        ]
    )
    rows = jnp.asarray(table)[i]
    g, c = x.delassus[rows[:, None], rows], x.rate[rows]
    law: type = kind.law
    e = _restitution(x)[i]
    if kind.rows == 1:
        p = smooth_impact(law(), e, g, c)
    else:
        group = np.array([int(np.argmax(layout.contact == k)) for k in range(len(kinds))])  # the first one slides
        own = jnp.asarray(group)[i]
        solve = planar_impact if kind.rows == 2 else spatial_impact
        p = solve(law(), e, cones.sticking[own], cones.sliding[own], g, c)
    return jnp.zeros_like(x.rate).at[rows].set(p)


def _restitution(x: Encounter) -> Float[Array, " contacts"]:
    """The coefficients of restitution of all contacts, zero for rebounds below the rest speed."""
    e = jnp.stack([jnp.asarray(c.restitution.e, x.rate.dtype) for c in x.contacts])
    normal = x.rate[contact_layout(x.contacts).normal]
    return jnp.where(-e * normal < x.rest_speed, 0, e)


class AllAtOnce(AbstractImpactSequence):
    """Simultaneous impacts are resolved together by one complementarity problem for all impulses.

    Newton's law holds at all touching contacts, or Poisson's law after a common compression (Glocker and Pfeiffer
    1995); friction opposes the slip after the impact, or after each of its two phases.

    Arguments:

    * `path`: whether an impact at a single touching contact follows the exact impact path, with friction against the
      slip at each instant; False for the law of several contacts there too, as in time-stepping methods (Moreau 1988).

    ```python
    from jaxdyn.contact import AllAtOnce

    order = AllAtOnce()
    ```
    """

    path: bool = eqx.field(static=True, default=True)

    def check(self, contacts):
        names = [c.name for c in contacts if not isinstance(c.restitution, Newton | Poisson)]
        if names and (len(contacts) > 1 or not self.path):
            raise ModelError(
                f"the restitution of the contacts {names} is a law of single impacts; give "
                "ContactMotion(..., impacts=OneAfterAnother()), or Newton or Poisson as their law"
            )

    def resolve(self, encounter):
        i = jnp.argmax(encounter.touching)
        alone = lambda: (single_impact(encounter, i), jnp.asarray(True))
        if not self.path:
            impulses, is_solved = self._together(encounter)
        elif len(encounter.contacts) == 1:
            impulses, is_solved = alone()
        else:
            several = lambda: self._together(encounter)
            impulses, is_solved = jax.lax.cond(jnp.sum(encounter.touching) == 1, alone, several)
        return Impact(impulses, is_solved, jnp.asarray(True))

    def _together(self, x: Encounter):
        layout, cones = contact_layout(x.contacts), friction_cones(x.contacts, x.rate.dtype)
        is_newton = np.array([isinstance(c.restitution, Newton) for c in x.contacts])
        e = _restitution(x)
        normal = x.rate[layout.normal]
        bias = x.rate.at[layout.normal].add(jnp.where(is_newton, e * jnp.minimum(normal, 0), 0))
        slips = jnp.sum(gather_groups(layout, x.rate) ** 2, axis=1) > zero_speed(x.rate) ** 2
        mu = jnp.where(slips, cones.sliding, cones.sticking)
        free = jnp.zeros_like(mu), jnp.zeros_like(x.rate)
        problem = ContactProblem(x.delassus, bias, x.touching, jnp.zeros_like(normal), mu, *free)
        first = solve_complementarity(layout, problem)
        if is_newton.all():
            return first.forces, first.is_solved
        least = jnp.where(is_newton, 0, e * first.forces[layout.normal])
        second = solve_complementarity(layout, problem._replace(bias=first.rates, least=least))
        return first.forces + second.forces, first.is_solved & second.is_solved


class OneAfterAnother(AbstractImpactSequence):
    """Simultaneous impacts are resolved sequentially, the fastest approach first, until no contact approaches.

    Each of them is a single impact, exact for its law. If the sequence does not end, as for plastic impacts between two
    walls, the simulation ends with status `IMPACT_LIMIT` after `limit` impacts.

    ```python
    from jaxdyn.contact import OneAfterAnother

    cradle = OneAfterAnother(limit=50)
    ```
    """

    limit: int = eqx.field(static=True, default=100)

    def check(self, contacts):
        return None

    def resolve(self, encounter):
        layout = contact_layout(encounter.contacts)

        def approach(impulses):
            rate = encounter.rate + encounter.delassus @ impulses
            return rate, jnp.where(encounter.touching > 0, rate[layout.normal], 0)

        def collide(_, impulses):
            rate, normal = approach(impulses)
            i = jnp.argmin(normal)
            hit = lambda: impulses + single_impact(encounter._replace(rate=rate), i)
            return jax.lax.cond(normal[i] < -zero_speed(encounter.rate), hit, lambda: impulses)

        # a loop of fixed length, differentiable in both modes; finished sequences skip the work
        impulses = jax.lax.scan(lambda p, _: (collide(0, p), None), jnp.zeros_like(encounter.rate), None, self.limit)[0]
        is_ended = jnp.min(approach(impulses)[1]) >= -zero_speed(encounter.rate)
        return Impact(impulses, jnp.asarray(True), is_ended)
