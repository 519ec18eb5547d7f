"""The ten inertial parameters of a rigid body."""

from jaxdyn._numerics import namespace


def ten_parameters(mass, com, inertia):
    """`(m, m c_x, m c_y, m c_z, Ixx, Ixy, Ixz, Iyy, Iyz, Izz)` about the origin of the frame of `com`, `(..., 10)`.

    `I_o = (I + I^T) / 2 + m (|c|^2 1 - c c^T)`. Arguments:

    * `mass`: `(...)`, kg
    * `com`: centre of mass c, `(..., 3)`, m
    * `inertia`: I about the centre of mass, `(..., 3, 3)`, kg m^2

    Bodies may be stacked along leading axes. The result is a numpy array for known numbers and a JAX array for traced
    ones.
    """
    xp = namespace((mass, com, inertia))
    mass, com, inertia = (xp.asarray(x) for x in (mass, com, inertia))
    square = xp.sum(com * com, axis=-1)[..., None, None] * xp.eye(3, dtype=com.dtype)
    steiner = mass[..., None, None] * (square - com[..., :, None] * com[..., None, :])
    about_origin = (inertia + xp.swapaxes(inertia, -1, -2)) / 2 + steiner
    six = [about_origin[..., i, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
    return xp.stack([mass, *(mass * com[..., k] for k in range(3)), *six], axis=-1)
