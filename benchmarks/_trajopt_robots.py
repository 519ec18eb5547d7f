"""Robots for `trajopt.py`: a five-link biped's step, and a 7-joint arm between poses under limits of its motors.

jaxdyn has the robots as models. CasADi gets equations derived apart from it: the biped's from a symbolic Lagrangian of
Kelly's coordinates, the arm's by the Newton-Euler recursion on the model's numbers, both as scalar expressions with the
linear systems factorised symbolically. Transcription, guess, bounds and tolerance are the same for both.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.kinematics import WORLD_ALIGNED, frame_pose, jacobian
from jaxdyn.model import ModelBuilder, attach
from jaxdyn.trajopt import Bounds, Guess, PathConstraint, Problem, Robot, quintic, solve

STEP_LENGTH, STEP_TIME, CLEARANCE = 0.5, 0.7, 0.05
_SUM = np.tril(np.ones((5, 5)))  # from relative to absolute angles
_FLIP = np.linalg.solve(_SUM, np.eye(5)[::-1] @ _SUM)  # the same posture with the legs' names exchanged


class Case(NamedTuple):
    """A problem for both: bounds, limits, guess and given states are read from jaxdyn's."""

    name: str
    problem: Problem
    #: CasADi's: the rate at (x, u), rows of path constraints at (t, x, u), what vanishes at (x0, xT)
    theirs: Callable[[], tuple[Any, Any, Any]]
    intervals: int
    published: str = ""


# Costs


def effort(t, x, u):
    """The integrand of the cost."""
    return u @ u


# The biped


class Step(eqx.Module):
    """What a periodic step of `jaxdyn.robots.walking_biped` has to fulfil."""

    pinned: jd.Model
    floating: jd.Model
    length: Any = STEP_LENGTH
    duration: Any = STEP_TIME

    def foot(self, r):
        """Position of the swing foot, x and z."""
        return frame_pose(self.pinned, r, "swing_foot").translation[jnp.array([0, 2])]

    def clearance(self, t, x, u):
        """Height of the swing foot less that of an arc."""
        return self.foot(x[:5])[1] - CLEARANCE * jnp.sin(jnp.pi * t / self.duration)

    def landed(self, x):
        """The swing foot is one step ahead, on the ground."""
        return self.foot(x[:5]) - jnp.stack([jnp.asarray(self.length, x.dtype), jnp.zeros((), x.dtype)])

    def struck(self, r, w):
        """Rates of the joints after an impulse at the swing foot that stops it, those before being w.

        `N^T M (N w+ - v-) = 0`, where columns of N are the motions about the swing foot: the angular momentum of the
        whole about it, and of the links beyond each joint about that joint, are kept (Kelly 2017, appendix).
        """
        q = jnp.concatenate([jnp.zeros(2, r.dtype), r])
        swing = jacobian(self.floating, q, "swing_foot", reference=WORLD_ALIGNED)[jnp.array([3, 5])]
        motions = jnp.concatenate([-swing[:, 2:], jnp.eye(5, dtype=r.dtype)])
        momenta = motions.T @ jd.mass_matrix(self.floating, q)
        return jnp.linalg.solve(momenta @ motions, momenta[:, 2:] @ w)

    def repeated(self, x0, xT):
        """The start follows from the end by the impact, the legs exchanged."""
        return x0 - jnp.concatenate([_FLIP @ xT[:5], _FLIP @ self.struck(xT[:5], xT[5:])])


def biped_case(intervals: int) -> Case:
    """Kelly's step on feet that are points (no effort at the stance ankle), 5 cm of clearance in the middle."""
    model = jd.robots.walking_biped()
    step = Step(model, jd.robots.walking_biped(floating=True))
    first, last = (np.linalg.solve(_SUM, q) for q in ([-0.3, 0.7, 0.0, -0.5, -0.6], [-0.6, -0.5, 0.0, 0.7, -0.3]))
    speed = (last - first) / STEP_TIME
    x = np.stack([np.r_[first, speed], np.r_[last, speed]])
    low, high = np.full(10, -np.inf), np.full(10, np.inf)
    low[1], high[4] = 0.0, 0.0  # knees bend one way
    dynamics = Robot(model, ("stance_knee", "stance_hip", "swing_hip", "swing_knee"))
    problem = Problem(
        dynamics,
        STEP_TIME,
        end=step.landed,
        coupling=step.repeated,
        running=effort,
        bounds=Bounds(low, high, -100.0, 100.0),
        path=(PathConstraint("clearance", step.clearance, -0.001),),
        guess=Guess(jnp.array([0.0, 1.0]), jnp.asarray(x), jnp.zeros((2, 4))),
    )
    return Case("five-link biped, a step", problem, biped_of_casadi, intervals)


def biped_of_casadi():
    """The same from a Lagrangian, for a foot that may move; the pinned one has it at the origin, at rest."""
    import casadi as ca

    lengths, masses, centers, inertias = (0.4, 0.4, 0.625), (3.2, 6.8, 20.0), (0.128, 0.163, 0.2), (0.93, 1.08, 2.22)
    kinds = (0, 1, 2, 1, 0)
    base, r, base_rate, w, u = (ca.SX.sym(n, k) for n, k in (("p", 2), ("r", 5), ("pd", 2), ("w", 5), ("u", 4)))
    z, rate = ca.vertcat(base, r), ca.vertcat(base_rate, w)
    up = [ca.vertcat(-ca.sin(a), ca.cos(a)) for a in ca.vertsplit(_SUM @ r)]
    knee = base + lengths[0] * up[0]
    hip = knee + lengths[1] * up[1]
    other = hip - lengths[1] * up[3]
    foot = other - lengths[0] * up[4]
    tops = (knee, hip, hip + lengths[2] * up[2], hip, other)
    kinetic, potential = 0, 0
    for kind, top, e, turn in zip(kinds, tops, up, ca.vertsplit(_SUM @ w), strict=True):
        center = top - centers[kind] * e
        speed = ca.jtimes(center, z, rate)
        kinetic += (masses[kind] * ca.sumsqr(speed) + inertias[kind] * turn**2) / 2
        potential += masses[kind] * 9.81 * center[1]
    pinned = lambda e: ca.substitute(e, ca.vertcat(base, base_rate), ca.DM.zeros(4))
    energy, height = pinned(kinetic), pinned(potential)
    matrix, momentum = ca.hessian(energy, w)[0], ca.gradient(energy, w)
    bias = ca.jtimes(momentum, r, w) - ca.gradient(energy, r) + ca.gradient(height, r)
    acceleration = ca.ldl_solve(ca.vertcat(0, u) - bias, *ca.ldl(matrix))
    x, t = ca.vertcat(r, w), ca.SX.sym("t")
    at = pinned(foot)
    row = at[1] - CLEARANCE * ca.sin(ca.pi * t / STEP_TIME)
    swing = ca.jacobian(foot, r)
    motions = ca.vertcat(-swing, ca.SX.eye(5))
    momenta = ca.mtimes(motions.T, ca.hessian(kinetic, rate)[0])
    after = ca.ldl_solve(pinned(ca.mtimes(momenta[:, 2:], w)), *ca.ldl(pinned(ca.mtimes(momenta, motions))))
    struck = ca.Function("struck", [r, w], [after])
    landing = ca.Function("foot", [r], [at])
    x0, xT = ca.SX.sym("x0", 10), ca.SX.sym("xT", 10)
    again = ca.vertcat(_FLIP @ xT[:5], _FLIP @ struck(xT[:5], xT[5:]))
    ends = ca.vertcat(landing(xT[:5]) - ca.DM([STEP_LENGTH, 0]), x0 - again)
    return (
        ca.Function("f", [x, u], [ca.vertcat(w, acceleration)]),
        ca.Function("rows", [t, x, u], [row]),
        ca.Function("ends", [x0, xT], [ends]),
    )


# The arm

REACH_TIME = 0.6
_REACH = ((-0.6, 0.4, 0.0, -1.8, 0.0, 2.2, 0.0), (0.3, 0.9, 0.2, -1.1, 0.2, 1.8, 0.4))
_POST = (np.array([0.55, 0.0]), 0.2)  # an upright post: where it stands, radius


def loaded_panda(load: float = 3.0) -> jd.Model:
    """The Panda of the shelf with a ball in its flange, kg."""
    ball = ModelBuilder().add_link("load", inertia=jd.spatial.sphere(0.05, mass=load)).build()
    return attach(jd.robots.panda(), ball, "link7", translation=(0.0, 0.0, 0.157))


class Post(eqx.Module):
    """Distance of the middle of the load from the surface of an upright post."""

    model: jd.Model

    def __call__(self, t, x, u):
        at = frame_pose(self.model, x[:7], "load").translation[:2]
        away = at - _POST[0]
        return away @ away - _POST[1] ** 2


def arm_problem(model: jd.Model, post: bool) -> Problem:
    """From pose to pose in 0.6 s at the least integral of squared efforts, within all limits of the Panda."""
    dynamics = Robot(model)
    return Problem(
        dynamics,
        REACH_TIME,
        start=np.r_[_REACH[0], np.zeros(7)],
        end=np.r_[_REACH[1], np.zeros(7)],
        running=effort,
        bounds=Bounds.of(dynamics),
        path=(PathConstraint("post", Post(model), 0.0),) if post else (),
    )


def arm_case(intervals: int, post: bool) -> Case:
    """The arm, beginning with the smooth motion on a straight line between the poses and its efforts."""
    model = loaded_panda()
    motion = quintic(jnp.asarray(_REACH[0]), jnp.asarray(_REACH[1]), REACH_TIME)

    @eqx.filter_jit
    def along(model, t):
        q, v, a = motion(t)
        return jnp.concatenate([q, v]), jd.rnea(model, q, v, a) - jd.passive_forces(model, q, v)

    s = jnp.linspace(0.0, 1.0, 9)
    x, u = eqx.filter_vmap(along, in_axes=(None, 0))(model, REACH_TIME * s)
    name = "7-joint arm past a post" if post else "7-joint arm"
    problem = arm_problem(model, post).with_guess(Guess(s, x, u))
    return Case(name, problem, lambda: arm_of_casadi(model, post), intervals)


def arm_of_casadi(model: jd.Model, post: bool):
    """Newton's and Euler's equations of a chain of revolute and fixed joints, from the numbers of the model."""
    import casadi as ca

    n = model.nv
    q, v, a, u, t = (ca.SX.sym(s, k) for s, k in (("q", n), ("v", n), ("a", n), ("u", n), ("t", 1)))
    torque, places = newton_euler(model, ca.vertsplit(q), ca.vertsplit(v), ca.vertsplit(a))
    matrix = ca.jacobian(torque, a)
    p = model.properties
    friction = [
        float(f) * ca.tanh(v[k] / float(s))
        for k, (f, s) in enumerate(zip(p.friction, p.friction_velocity, strict=True))
    ]
    bias = ca.substitute(torque, a, ca.DM.zeros(n)) + ca.vertcat(*friction)
    acceleration = ca.ldl_solve(u - bias, *ca.ldl(matrix))
    x = ca.vertcat(q, v)
    rows = ca.sumsqr(places["load"][:2] - ca.DM(_POST[0])) - _POST[1] ** 2 if post else ca.SX(0, 1)
    x0, xT = ca.SX.sym("x0", 2 * n), ca.SX.sym("xT", 2 * n)
    return (
        ca.Function("f", [x, u], [ca.vertcat(v, acceleration)]),
        ca.Function("rows", [t, x, u], [rows]),
        ca.Function("ends", [x0, xT], [ca.SX(0, 1)]),
    )


def newton_euler(model: jd.Model, q, v, a):
    """Torques and the links' origins in the world, by the recursion in link axes (Luh, Walker and Paul 1980)."""
    import casadi as ca

    links, count = [], iter(range(model.nv))
    for i, name in enumerate(model.link_names):
        parent = links[model.topology.parents[i]] if model.topology.parents[i] >= 0 else _ground(model)
        turn, at = (
            ca.DM(_matrix(np.asarray(model.placements.rotation[i]))),
            ca.DM(np.asarray(model.placements.translation[i])),
        )
        moving = model.joint(model.joint_names[i]).v
        k = next(count) if moving.stop > moving.start else None
        axis, (angle, rate, gain) = ca.DM([0, 0, 1]), (0, 0, 0) if k is None else (q[k], v[k], a[k])
        s, c = (0, 1) if k is None else (ca.sin(angle), ca.cos(angle))
        R = ca.mtimes(turn, ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1)))
        omega, spun = parent["w"], parent["wd"]
        origin = ca.mtimes(R.T, parent["a"] + ca.cross(spun, at) + ca.cross(omega, ca.cross(omega, at)))
        turned = ca.mtimes(R.T, omega)
        w = turned + axis * rate
        wd = ca.mtimes(R.T, spun) + axis * gain + ca.cross(turned, axis * rate)
        mass, com = float(model.links.mass[i]), ca.DM(np.asarray(model.links.com[i]))
        own = ca.DM(np.asarray(model.links.inertia[i]))
        force = mass * (origin + ca.cross(wd, com) + ca.cross(w, ca.cross(w, com)))
        moment = ca.mtimes(own, wd) + ca.cross(w, ca.mtimes(own, w)) + ca.cross(com, force)
        world = ca.mtimes(parent["R"], R)
        place = parent["p"] + ca.mtimes(parent["R"], at)
        links.append(
            {
                "name": name,
                "w": w,
                "wd": wd,
                "a": origin,
                "f": force,
                "m": moment,
                "k": k,
                "R": world,
                "p": place,
                "up": parent,
                "own": R,
                "at": at,
            }
        )
    torque = [0] * model.nv
    for link in reversed(links):
        if link["k"] is not None:
            torque[link["k"]] = link["m"][2]
        force = ca.mtimes(link["own"], link["f"])
        link["up"]["f"] += force
        link["up"]["m"] += ca.mtimes(link["own"], link["m"]) + ca.cross(link["at"], force)
    return ca.vertcat(*torque), {link["name"]: link["p"] for link in links}


def _ground(model):
    import casadi as ca

    zero = ca.SX.zeros(3)
    return {
        "w": zero,
        "wd": zero,
        "a": -ca.SX(ca.DM(np.asarray(model.gravity))),
        "f": zero,
        "m": zero,
        "R": ca.SX.eye(3),
        "p": zero,
    }


def _matrix(quaternion):
    w, *v = quaternion / np.linalg.norm(quaternion)
    v = np.array(v)
    hat = np.cross(v, np.eye(3)).T
    return (w * w - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * hat


# The solvers


def ours(case: Case, repetitions: int) -> dict:
    """jaxdyn's row."""
    first = solve(case.problem, intervals=case.intervals)
    seconds = min(solve(case.problem, intervals=case.intervals).run_seconds or 0.0 for _ in range(repetitions))
    return {
        "solver": "jaxdyn",
        "optimum": float(first.cost),
        "iterations": int(first.iterations),
        "status": int(first.status),
        "seconds": seconds,
        "compile s": first.compile_seconds,
    }


def theirs(case: Case, repetitions: int) -> dict:
    """The row of CasADi with IPOPT (MUMPS)."""
    start = time.perf_counter()
    call = casadi_solver(case)
    built = time.perf_counter() - start
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        optimum, stats, *_ = call()
        times.append(time.perf_counter() - start)
    return {
        "solver": "CasADi + IPOPT",
        "optimum": optimum,
        "iterations": int(stats["iter_count"]),
        "status": 0 if stats["success"] else 1,
        "seconds": min(times),
        "compile s": built,
    }


def casadi_solver(case: Case):
    """Hermite-Simpson's rule with the states of the middles for CasADi.

    A function without arguments, `-> (optimum, statistics, states, controls)`.
    """
    import casadi as ca

    problem, N = case.problem, case.intervals
    n, nu = problem.nx, problem.nu
    f, rows, ends = case.theirs()
    x, u, y, w = (ca.MX.sym(*a) for a in (("x", n, N + 1), ("u", nu, N + 1), ("y", n, N), ("w", nu, N)))
    h = float(problem.duration) / N
    fx, fm, lx, lm = f(x, u), f(y, w), ca.sum1(u * u), ca.sum1(w * w)
    f0, f1 = fx[:, :-1], fx[:, 1:]
    cost = h / 6 * ca.sum2(lx[:, :-1] + 4 * lm + lx[:, 1:])
    s = np.linspace(0, float(problem.duration), 2 * N + 1)
    limited = ca.horzcat(rows(s[None, ::2], x, u), rows(s[None, 1::2], y, w))
    equations = ca.veccat(
        y - (x[:, :-1] + x[:, 1:]) / 2 - h / 8 * (f0 - f1),
        x[:, 1:] - x[:, :-1] - h / 6 * (f0 + 4 * fm + f1),
        ends(x[:, 0], x[:, -1]),
    )
    low, high = (
        [float(getattr(c, side)) for c in problem.path for _ in range(limited.shape[0])] for side in ("lower", "upper")
    )
    nlp = {"x": ca.veccat(x, u, y, w), "f": cost, "g": ca.vertcat(equations, ca.vec(limited))}
    options = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-8, "ipopt.sb": "yes"}
    solver = ca.nlpsol("s", "ipopt", nlp, options)
    x0, u0 = (np.asarray(g) for g in problem.guess.at(jnp.linspace(0, 1, 2 * N + 1)))
    flat = lambda *parts: np.concatenate([np.ravel(p) for p in parts])
    given = {
        "x0": flat(x0[::2], u0[::2], x0[1::2], u0[1::2]),
        "lbx": flat(*_wide(problem, N, "lower", -np.inf)),
        "ubx": flat(*_wide(problem, N, "upper", np.inf)),
        "lbg": flat(np.zeros(equations.shape[0]), np.tile(low, 2 * N + 1)),
        "ubg": flat(np.zeros(equations.shape[0]), np.tile(high, 2 * N + 1)),
    }

    def call():
        out = solver(**given)
        values = np.array(out["x"]).ravel()
        states, controls = values[: n * (N + 1)].reshape(N + 1, n), values[n * (N + 1) :][: nu * (N + 1)]
        return float(out["f"]), solver.stats(), states, controls.reshape(N + 1, nu)

    return call


def _wide(problem: Problem, N: int, side: str, none: float):
    """Bounds of x, u and those of the middles; given states are bounds."""
    state, control = (np.asarray(getattr(problem.bounds, f"{side}_{kind}")) for kind in ("state", "control"))
    states = np.tile(state, (N + 1, 1))
    for row, end in ((0, problem.start), (-1, problem.end)):
        states[row] = np.where(end.fixed, end.value, states[row])
    return states, np.tile(control, (N + 1, 1)), np.tile(state, (N, 1)), np.tile(control, (N, 1))


def cases(quick: bool) -> tuple[Case, ...]:
    """The problems, on few intervals to try."""
    count = 8 if quick else 25
    return biped_case(count), arm_case(count, False), arm_case(count, True)


def rows(quick: bool = False, repetitions: int = 5) -> list[dict]:
    """Both solvers' rows of every case, printed as they are found."""
    found = []
    for case in cases(quick):
        pair = [ours(case, repetitions), theirs(case, repetitions)]
        same = abs(pair[0]["optimum"] - pair[1]["optimum"]) <= 1e-6 * abs(pair[1]["optimum"])
        for row in pair:
            note = "" if same else "optima differ"
            note = note if row["status"] == 0 else f"tolerance not met after {row['iterations']} iterations"
            head = {"problem": case.name, "intervals": case.intervals}
            found.append({**head, **row, "published": case.published, "note": note})
            print(found[-1], flush=True)
    return found
