"""The beams of the links: checks of the argument `beams`, and rows of results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ArgumentError, check_instance, describe, format_names
from jaxdyn._types import Array, Int
from jaxdyn.beams import Beam
from jaxdyn.model import Model

#: beams by the name of the link; several beams of a link follow each other from its joint outwards
Beams = Mapping[str, Beam | Sequence[Beam]]

_REMEDY = 'give beams by the names of their links, {"forearm": Beam(...)}'


class LinkBeams(eqx.Module):
    """The beams of one link in order, from its joint outwards, and the rows of what is attached to the link."""

    beams: tuple[Beam, ...]
    link: Int[Array, ""]
    children: Int[Array, " children"]
    frames: Int[Array, " frames"]


def link_beams(model: Model, beams: Any) -> dict[str, LinkBeams]:
    """The beams of each link in the order of the links, since transformations of JAX sort the keys of mappings.

    Raises for unknown links and for other objects than beams.
    """
    t = model.topology
    rows = sorted((model.link_index(name), name, row) for name, row in _by_link(beams))
    rows_of = lambda parents, link: jnp.asarray([k for k, parent in enumerate(parents) if parent == link], int)
    return {
        name: LinkBeams(row, jnp.asarray(link), rows_of(t.parents, link), rows_of(t.frame_links, link))
        for link, name, row in rows
    }


def row_names(links: dict[str, LinkBeams]) -> tuple[str, ...]:
    """The link of each beam."""
    return tuple(name for name, link in links.items() for _ in link.beams)


def map_links(f: Callable[[LinkBeams], Any], links: dict[str, LinkBeams]) -> list[Any]:
    """`f` of each link. Links of equal structure are stacked and evaluated once, which shortens programs."""
    items = list(links.values())
    keys = [(jax.tree.structure(x), *(leaf.shape for leaf in jax.tree.leaves(x))) for x in items]
    results: dict[int, Any] = {}
    for key in dict.fromkeys(keys):
        places = [k for k, other in enumerate(keys) if other == key]
        stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *(items[k] for k in places))
        values = jax.vmap(f)(stacked)
        results.update({k: jax.tree.map(lambda x, i=i: x[i], values) for i, k in enumerate(places)})
    return [results[k] for k in range(len(items))]


def list_beams(beams: Any, links: tuple[str, ...]) -> tuple[Beam, ...]:
    """The beams of the rows of a result, whose links are `links`; raises if there are others."""
    rows = dict(_by_link(beams))
    found = tuple(beam for name in dict.fromkeys(links) for beam in rows.get(name, ()))
    if sorted(rows) != sorted(set(links)) or len(found) != len(links):
        raise ArgumentError(
            f"there are {sum(map(len, rows.values()))} beams on the links {format_names(rows)}, and the loads are "
            f"those of {len(links)} beams on {format_names(dict.fromkeys(links))}; give the beams of the loads"
        )
    return found


def _by_link(beams: Any) -> list[tuple[str, tuple[Beam, ...]]]:
    if not isinstance(beams, Mapping) or not beams:
        given = "empty" if isinstance(beams, Mapping) else describe(beams)
        raise ArgumentError(f"beams is {given}, expected a mapping with at least one entry; {_REMEDY}")
    rows = []
    for name, row in beams.items():
        row = (row,) if isinstance(row, Beam) else tuple(row) if isinstance(row, Sequence) else row
        if row == ():
            raise ArgumentError(f"the link {name!r} has an empty sequence of beams, expected at least one; remove it")
        for beam in row if isinstance(row, tuple) else (row,):
            check_instance(f"beams[{name!r}]", beam, Beam, _REMEDY)
        rows.append((name, row))
    return rows


def at_sections(f: Callable[..., Any], beams: Any, loads: Any, *arrays: jax.Array) -> jax.Array:
    """`f(beam, section, s, *rows)` at all sections of a result, with the axes `(*batch, beams, sections, ...)`.

    The rows are those of the arrays, `(*batch, beams, sections, ...)`.
    """
    batch, axes = loads.s.shape[:-2], loads.s.ndim

    def on(k: int, beam: Beam) -> jax.Array:
        s, *rows = (x[(..., k, slice(None), *[slice(None)] * (x.ndim - axes))] for x in (loads.s, *arrays))
        flat = [x.reshape(-1, *x.shape[axes - 1 :]) for x in (s, *rows)]
        values = jax.vmap(lambda s, *xs: f(beam, beam.section_at(s), s, *xs))(*flat)
        return values.reshape(*batch, -1, *values.shape[1:])

    return jnp.stack([on(k, beam) for k, beam in enumerate(list_beams(beams, loads.links))], axes - 2)
