"""Present names of classes, functions and fields that files may name by a former one.

Files name public classes by the folder that exports them, and others by their module. A class that only moved within
its top-level folder needs no entry (`Names.find` searches the folder): the table lists classes that were renamed, that
moved to another folder, or whose name occurs in several modules of the folder.
"""

_MOVED = {
    "actuators._drive:Law": "_numerics._conversion:Function",
    "simulation._function:Function": "_numerics._conversion:Function",
    "constraints.Moving": "constraints.KinematicState",
    "constraints.Placed": "constraints.Configuration",
    "control.Along": "control.PathReference",
    "control.Desired": "control.DesiredMotion",
    "control._task:Wanted": "kinematics._desired_frame:DesiredFrameMotion",
    "identification.Bounds": "identification.MotionLimits",
    "identification._slots:Entries": "identification.parameters._slots:LeafEntries",
    "identification._slots:Turn": "identification.parameters._slots:SmallRotation",
    "identification._windows:Held": "identification.methods._windows:UniformPath",
    "simulation.MomentumForm": "simulation.CanonicalMomenta",
    "simulation._inputs:_Clamped": "simulation.system._inputs:_ClampedPath",
    "simulation._manifold:_Interpolations": "simulation.solvers._manifold:_ChartInterpolations",
    "simulation._momentum:Momenta": "simulation.solvers._canonical_momenta:MomentumState",
    "simulation._momentum:_Interpolations": "simulation.solvers._canonical_momenta:_MomentumInterpolations",
    "simulation._state:Charted": "simulation.system._state:ChartedState",
    "simulation._system:Held": "simulation.system._system:SampledState",
    "simulation._variational:StraightInterpolation": "simulation.solvers._variational:ConstantVelocityInterpolation",
    "trajopt._ilqr:Iterate": "trajopt.ilqr._algorithm:Iterate",
    "trajopt._ilqr_stage:Multipliers": "trajopt.ilqr._stage:Multipliers",
    "trajopt._interior_point:Loop": "trajopt.interior_point._algorithm:LoopState",
    "trajopt._interior_point_barrier:Iterate": "trajopt.interior_point._barrier:Iterate",
    "trajopt._interior_point_program:Ranged": "trajopt.interior_point._lagrangian:Bounded",
    "trajopt._interior_point_program:Weights": "trajopt.interior_point._lagrangian:Multipliers",
    "trajopt._interior_point_solve:Discretised": "trajopt.interior_point._solve:TranscriptionDetails",
}

#: present names of fields by the class, then by their former names
_FIELDS = {
    "constraints.KinematicState": {"placed": "configuration"},
    "trajopt.interior_point._algorithm:LoopState": {
        "regular": "regularisation",
        "least": "least_regularisation",
        "fresh": "needs_multipliers",
    },
    "trajopt.interior_point._lagrangian:Multipliers": {"ranged": "bounded"},
    "trajopt.interior_point._lagrangian:Values": {"ranged": "bounded"},
    "trajopt.interior_point._restoration:Restoration": {
        "on": "is_active",
        "near": "proximity",
        "worst": "largest_violation",
    },
}

PRESENT_FIELDS = {f"jaxdyn.{name}": fields for name, fields in _FIELDS.items()}
PRESENT_NAMES = {f"jaxdyn.{former}": f"jaxdyn.{present}" for former, present in _MOVED.items()}
