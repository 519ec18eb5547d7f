"""The robots of docs/robots.md, by the names of its table."""

from collections.abc import Callable

from jaxdyn import robots
from jaxdyn.model import Model

ROBOTS: dict[str, Callable[[], Model]] = {
    name: getattr(robots, name)
    for name in (
        "pendulum double_pendulum acrobot cart_pole two_tr scara stanford_arm puma560 ur5 panda humanoid quadruped "
        "five_link_biped walking_biped compass_gait rimless_wheel four_bar slider_crank five_bar bricard delta"
    ).split()
}
ROBOTS["chain"] = lambda: robots.chain(10)
ROBOTS["planar_chain"] = lambda: robots.planar_chain(10)
ROBOTS["n_four_bar"] = lambda: robots.n_four_bar(2)
CLOSED = ("four_bar", "slider_crank", "five_bar", "n_four_bar", "bricard", "delta")

#: robots as functions of some dimensions, and the point of differentiation
DIMENSIONS: dict[str, tuple[Callable[..., Model], tuple[float, ...]]] = {
    "pendulum": (robots.pendulum, (0.7, 1.2)),
    "double_pendulum": (lambda a, b, m: robots.double_pendulum((a, b), (1.0, m)), (0.7, 0.8, 1.2)),
    "acrobot": (lambda a, b, m: robots.acrobot((a, b), (1.0, m)), (0.7, 0.8, 1.2)),
    "cart_pole": (lambda m, l: robots.cart_pole((1.0, m), l), (0.3, 0.5)),
    "chain": (lambda l, m, r: robots.chain(3, l, m, r), (0.2, 0.3, 0.02)),
    "two_tr": (lambda m, arm, i: robots.two_tr((4.0, 3.0, m), arm, i), (2.0, 0.4, 0.05)),
    "scara": (lambda a, b, h: robots.scara((a, b), h), (0.3, 0.2, 0.4)),
    "stanford_arm": (lambda a, b: robots.stanford_arm(d1=a, d2=b), (0.4, 0.15)),
    "puma560": (lambda a, d: robots.puma560(a2=a, d4=d), (0.43, 0.44)),
    "ur5": (lambda a, d: robots.ur5(a2=a, d5=d), (-0.42, 0.09)),
    "quadruped": (lambda a, b: robots.quadruped(upper=a, lower=b), (0.16, 0.17)),
    "five_link_biped": (lambda l, c: robots.five_link_biped((0.63, l, 0.4), centers=(c, 0.11, 0.24)), (0.4, 0.24)),
    "walking_biped": (lambda l, c: robots.walking_biped((l, 0.4, 0.625), centers=(c, 0.163, 0.2)), (0.4, 0.128)),
    "compass_gait": (lambda a, b, m: robots.compass_gait(a, b, m), (0.4, 0.5, 4.0)),
    "rimless_wheel": (lambda l, i: robots.rimless_wheel(8, l, 1.0, i), (1.0, 0.1)),
    "four_bar": (lambda a, b, c, d, t: robots.four_bar((a, b, c, d), crank=t), (1.1, 0.5, 1.2, 0.75, 1.0)),
    "slider_crank": (lambda r, l, t: robots.slider_crank((r, l), crank=t), (0.2, 0.5, 1.0)),
    "five_bar": (lambda g, a, b, t: robots.five_bar((g, a, b), cranks=(2.0, t)), (0.3, 0.25, 0.4, 1.0)),
    "delta": (lambda a, b, l, t: robots.delta((a, b), (0.3, l), angle=t), (0.2, 0.05, 0.8, 0.5)),
    "bricard": (lambda l, m: robots.bricard(l, m), (1.0, 1.0)),
}
