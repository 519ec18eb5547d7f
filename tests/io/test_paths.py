"""Meshes are found only inside the allowed folders."""

import os
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn import FileAccessError, FileFormatError
from jaxdyn.io import resolve_mesh
from tests.io._texts import robot


@pytest.fixture
def folders(tmp_path) -> Path:
    """`robots/arm/{urdf,meshes}` with a mesh in the latter, a secret beside `robots`, and links to both."""
    for name in ("robots/arm/urdf", "robots/arm/meshes", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "robots/arm/meshes/link.stl").write_text("mesh")
    (tmp_path / "elsewhere/secret").write_text("secret")
    (tmp_path / "robots/arm/meshes/out.stl").symlink_to(tmp_path / "elsewhere/secret")
    (tmp_path / "robots/arm/urdf/in.stl").symlink_to(tmp_path / "robots/arm/meshes/link.stl")
    (tmp_path / "robots/arm/loop").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    return tmp_path


@pytest.mark.parametrize(
    ("mesh", "packages"),
    [
        ("package://arm/meshes/link.stl", ["robots"]),
        ("model://arm/meshes/link.stl", ["elsewhere", "robots"]),
        ("package://arm/meshes/link.stl", ["robots/arm"]),
        ("package://arm/urdf/../meshes/link.stl", ["robots"]),
        ("../meshes/link.stl", ["robots"]),
        ("arm/meshes/link.stl", ["robots"]),
        ("in.stl", ["robots"]),
    ],
)
def test_found(folders, mesh, packages):
    found = resolve_mesh(mesh, base=folders / "robots/arm/urdf", package_dirs=[folders / x for x in packages])
    assert found == Path(os.path.realpath(folders / "robots/arm/meshes/link.stl"))


@pytest.mark.parametrize(
    "mesh",
    [
        "../../../elsewhere/secret",
        "package://arm/../../elsewhere/secret",
        "package://../elsewhere/secret",
        "package://arm/meshes/out.stl",
        "package://arm/loop/secret",
        "../meshes/out.stl",
    ],
)
def test_names_that_leave_the_folders_are_refused(folders, mesh):
    with pytest.raises(FileFormatError, match="lies outside the allowed folders"):
        resolve_mesh(mesh, base=folders / "robots/arm/urdf", package_dirs=[folders / "robots"])


def test_without_package_dirs_only_base_is_searched(folders):
    with pytest.raises(FileFormatError, match="lies outside"):
        resolve_mesh("../meshes/link.stl", base=folders / "robots/arm/urdf")
    with pytest.raises(FileAccessError, match="no folder was given"):
        resolve_mesh("link.stl")


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_absolute_paths_on_request(folders, form):
    mesh = form.format(folders / "elsewhere/secret")
    with pytest.raises(FileFormatError, match="absolute paths are not followed; pass allow_absolute=True"):
        resolve_mesh(mesh, package_dirs=[folders])
    assert resolve_mesh(mesh, allow_absolute=True).read_text() == "secret"
    with pytest.raises(FileAccessError, match="no such file"):
        resolve_mesh(f"{mesh}s", allow_absolute=True)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ("http://example.org/a.stl", "http:// is not supported"),
        ("C:\\secret", "absolute paths"),
        ("\\\\server\\share\\x", "absolute paths"),
        ("", "is not a path"),
        ("a\0b", "is not a path"),
    ],
)
def test_other_names_are_refused(folders, mesh, message):
    with pytest.raises(FileFormatError, match=message):
        resolve_mesh(mesh, base=folders, package_dirs=[folders])


@pytest.mark.parametrize("mesh", ["package://arm/missing.stl", "missing.stl", "package://arm/meshes", "a" * 5000])
def test_not_found(folders, mesh):
    with pytest.raises(FileAccessError, match="not found"):
        resolve_mesh(mesh, base=folders / "robots", package_dirs=[folders / "robots"])


def urdf(folders: Path, mesh: str) -> Path:
    path = folders / "robots/arm/urdf/arm.urdf"
    path.write_text(robot(f'<link name="a"><visual><geometry><mesh filename="{mesh}"/></geometry></visual></link>'))
    return path


def test_loading_needs_no_meshes(folders):
    assert jd.load_urdf(urdf(folders, "package://nobody/x.stl")).shapes[0].mesh == "package://nobody/x.stl"
    assert jd.load_urdf(urdf(folders, "/etc/passwd")).shapes[0].mesh == "/etc/passwd"


def test_loading_resolves_meshes_on_request(folders):
    packages = [folders / "robots"]
    shape = jd.load_urdf(urdf(folders, "package://arm/meshes/link.stl"), package_dirs=packages).shapes[0]
    assert Path(shape.mesh).read_text() == "mesh"
    model = jd.load_urdf(urdf(folders, "package://arm/missing.stl"), package_dirs=packages)
    assert model.shapes[0].mesh == "package://arm/missing.stl"
    assert any("not found" in note.what for note in model.report)
    for mesh in ("package://arm/loop/secret", "/etc/passwd", "file:///etc/passwd"):
        with pytest.raises(FileFormatError, match="lies outside|absolute paths"):
            jd.load_urdf(urdf(folders, mesh), package_dirs=packages)
    secret = folders / "elsewhere/secret"
    assert jd.load_urdf(urdf(folders, f"file://{secret}"), allow_absolute=True).shapes[0].mesh == os.path.realpath(
        secret
    )


def test_refused_meshes_name_file_and_line(folders):
    path = urdf(folders, "package://arm/../../secret.stl")
    with pytest.raises(
        FileFormatError, match=r"arm.urdf, line 1, .*<mesh>: mesh .* lies outside the allowed folders"
    ) as error:
        jd.load_urdf(path, package_dirs=[folders / "robots"])
    assert str(path) in str(error.value)
