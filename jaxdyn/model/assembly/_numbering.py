"""Depth-first numbering of links, groups of joints, mimics, and the topology made of these."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.joints import AbstractJoint, has_vector_rate
from jaxdyn.model.assembly._checks import check_unique
from jaxdyn.model.assembly._entries import LinkEntry
from jaxdyn.recursion import Topology


def make_topology(links: list[LinkEntry], frames, groups, sizes, mimics) -> Topology:
    """Names and tree of the links, in depth-first order."""
    number = {link.name: i for i, link in enumerate(links)}
    return Topology(
        link_names=tuple(link.name for link in links),
        joint_names=tuple(link.joint_name for link in links),
        frame_names=tuple(f[0] for f in frames),
        parents=tuple(number.get(link.parent, -1) for link in links),
        groups=tuple(groups),
        group_sizes=tuple(sizes),
        frame_links=tuple(_link_of_frame(f, number) for f in frames),
        mimics=tuple(pair[:2] for pair in mimics),
    )


def order_depth_first(links: list[LinkEntry]) -> list[LinkEntry]:
    """Depth first, children in the order in which they were added."""
    check_unique([link.name for link in links], "link")
    check_unique([link.joint_name for link in links], "joint")
    names = {link.name for link in links}
    parents = names | {"world"}
    if "world" in names:
        raise ModelError("a link is called 'world', which is the name of the fixed world; choose another name")
    children: dict[str, list[LinkEntry]] = {}
    for link in links:
        if link.parent not in parents:
            raise ModelError(
                f"link {link.name!r} has the unknown parent {link.parent!r}; expected 'world' or one of {sorted(names)}"
            )
        children.setdefault(link.parent, []).append(link)
    out: list[LinkEntry] = []
    stack = list(reversed(children.get("world", [])))
    while stack:
        link = stack.pop()
        out.append(link)
        stack.extend(reversed(children.get(link.name, [])))
    if len(out) < len(links):
        lost = sorted(names - {link.name for link in out})
        raise ModelError(f"links {lost} form a cycle; one of them must have the parent 'world'")
    return out


def group_joints(links: list[LinkEntry]):
    """Groups the joints of one type and parameter shape, so that one call evaluates a group.

    Returns the group of each link (-1 for a fixed joint), the joints of each group, and `(nq, nv, translates)` of each.
    """
    keys: list[Any] = []
    groups: list[int] = []
    members: list[list[AbstractJoint]] = []
    sizes: list[tuple[int, int, bool]] = []
    for link in links:
        joint = link.joint
        if joint.nv == 0:
            groups.append(-1)
            continue
        leaves, tree = jax.tree.flatten(joint)
        key = (tree, tuple(jnp.shape(x) for x in leaves))
        if key not in keys:
            keys.append(key)
            members.append([])
            sizes.append((joint.nq, joint.nv, joint.translates))
        groups.append(keys.index(key))
        members[groups[-1]].append(joint)
    return groups, members, sizes


def mimic_pairs(mimics, links: list[LinkEntry]):
    """Checks the mimics, and returns `(joint, source, ratio, offset)` with the joints by number."""
    number = {link.joint_name: i for i, link in enumerate(links)}
    pairs = []
    followers = {m[0] for m in mimics}
    for joint, source, ratio, offset in mimics:
        for name in (joint, source):
            if name not in number:
                raise ModelError(
                    f"mimic of {joint!r}: there is no joint called {name!r}; expected one of {sorted(number)}"
                )
            if links[number[name]].joint.nv != 1 or links[number[name]].joint.nq != 1:
                raise ModelError(
                    f"mimic of {joint!r}: {name!r} does not have exactly one coordinate, as mimic joints "
                    "and their sources must"
                )
            if not has_vector_rate(links[number[name]].joint):
                raise ModelError(
                    f"mimic of {joint!r}: the velocity of {name!r} is not the rate of its coordinate, as a mimic "
                    "needs; derive its joint from AbstractVectorJoint"
                )
        if joint == source or source in followers:
            raise ModelError(
                f"mimic of {joint!r}: its source {source!r} mimics a joint itself; "
                "give a source with an independent coordinate"
            )
        given = sorted(links[number[joint]].properties)
        if given:
            raise ModelError(
                f"joint {joint!r} mimics {source!r} and has no independent coordinate, but has {', '.join(given)}; "
                f"give these to {source!r}, reflected through the ratio"
            )
        pairs.append((number[joint], number[source], ratio, offset))
    check_unique([m[0] for m in mimics], "mimicking joint")
    return pairs


def _link_of_frame(frame, number) -> int:
    name, link, _, _ = frame
    if link not in number:
        raise ModelError(f"frame {name!r} is fixed to {link!r}, which is not a link of this model")
    return number[link]
