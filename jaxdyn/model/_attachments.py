"""Moving everything that is attached to a link to other links."""

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp

from jaxdyn._types import Vec3
from jaxdyn.model.assembly import ModelBuilder
from jaxdyn.model.structure import Closure

#: link that takes an attachment, and the origin of its frame in the axes and frame of the former link, m
Target = tuple[str, Vec3]


def move_attachments(builder: ModelBuilder, link: str, target: Callable[[str], Target]) -> tuple[str, ...]:
    """Attaches the child links, frames and closures of a link to other links, and makes the link massless.

    `target(name)` returns the new link of the child, frame or closure called `name`, whose axes are parallel to those
    of the former link, and its origin in the frame of the former link. Shapes stay on the link. Changes the builder and
    returns the names of what was attached.
    """
    moved = []

    def find(name: str) -> Target:
        moved.append(name)
        return target(name)

    for k, entry in enumerate(builder._links):
        if entry.parent == link:
            parent, origin = find(entry.name)
            builder._links[k] = dataclasses.replace(entry, parent=parent, translation=entry.translation - origin)
        elif entry.name == link:
            builder._links[k] = dataclasses.replace(entry, inertia=None)
    for k, (name, on, rotation, translation) in enumerate(builder._frames):
        if on == link:
            parent, origin = find(name)
            builder._frames[k] = (name, parent, rotation, translation - origin)
    for k, closure in enumerate(builder._closures):
        if isinstance(closure, Closure) and link in closure.links:
            builder._closures[k] = _move_closure(closure, link, *find(closure.name))
    return tuple(moved)


def _move_closure(closure: Closure, link: str, parent: str, origin: Vec3) -> Closure:
    shift = jnp.array([name == link for name in closure.links])[:, None] * origin
    first, second = (parent if name == link else name for name in closure.links)
    return dataclasses.replace(closure, links=(first, second), translations=closure.translations - shift)
