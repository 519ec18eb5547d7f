"""Elements of URDF as texts."""

UNIT = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'


def inertial(*, mass: float = 1.0, moments=(1, 1, 1), origin: str = "") -> str:
    x, y, z = moments
    six = f'ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"'
    return f'<inertial>{origin}<mass value="{mass}"/><inertia {six}/></inertial>'


def robot(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


def link(name: str, mass: float = 1.5) -> str:
    body = inertial(mass=mass, moments=(0.3, 0.4, 0.5), origin='<origin xyz="0.1 -0.2 0.3"/>')
    return f'<link name="{name}">{body}</link>'


def joint(name: str, kind: str, parent: str, child: str, inside: str = "") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def arm(base: str, extra: str = "", *, world: bool = False) -> str:
    """Two joints on a base."""
    limit = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
    return robot(
        f'<link name="{base}"/>' if world else link(base),
        link("upper"),
        link("lower"),
        joint("shoulder", "revolute", base, "upper", f'<origin xyz="0 0 1"/><axis xyz="0 1 0"/>{limit}'),
        joint("elbow", "revolute", "upper", "lower", f'<origin xyz="0 0 -0.5"/><axis xyz="1 0 0"/>{limit}'),
        extra,
    )
