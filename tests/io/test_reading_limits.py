"""Files from elsewhere: they open nothing outside their folder, no address, and ask for no more than memory holds."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pxr import Sdf, Usd, UsdGeom, UsdPhysics

from collision_meshes import cube
from warpsim.cli.main import main
from warpsim.core.errors import InputError, SceneError, WarpsimError
from warpsim.io.load import load_scene
from warpsim.io.mjcf import read_mjcf

_IN_OPEN, _IN_NONBLOCK = 0x20, 0x800


class Opened:
    """Which files of a folder this process opens, by the kernel's word."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.inotify_init1(_IN_NONBLOCK)
        assert self._libc.inotify_add_watch(self._handle, os.fsencode(folder), _IN_OPEN) >= 0

    def names(self) -> set[str]:
        found = set()
        try:
            data = os.read(self._handle, 1 << 16)
        except BlockingIOError:
            return found
        while data:
            _watch, _mask, _cookie, length = struct.unpack_from("iIII", data)
            found.add(data[16 : 16 + length].rstrip(b"\0").decode())
            data = data[16 + length :]
        return found


@pytest.fixture
def listener() -> Iterator[tuple[str, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield f"127.0.0.1:{server.getsockname()[1]}", server


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """(the scene's folder, one outside with files that could be opened)."""
    monkeypatch.delenv("WARPSIM_ALLOW", raising=False)
    inside, outside = tmp_path / "scene", tmp_path / "elsewhere"
    inside.mkdir()
    outside.mkdir()
    mesh = cube((0.1, 0.1, 0.1))
    lines = [f"v {x} {y} {z}" for x, y, z in mesh.vertices] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in mesh.faces]
    (outside / "cube.obj").write_text("\n".join(lines))
    (outside / "body.xml").write_text('<mujoco><worldbody><geom size=".1"/></worldbody></mujoco>')
    write_body(outside / "part.usda", "Part")
    return inside, outside


def mjcf(asset: str = "", world: str = '<geom size=".1"/>', compiler: str = "", top: str = "") -> str:
    return f"<mujoco>{compiler}{top}<asset>{asset}</asset><worldbody>{world}</worldbody></mujoco>"


MESH_GEOM = '<body><freejoint/><geom type="mesh" mesh="cube"/></body>'
URDF = """<robot name="r">{compiler}<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
ixz="0" iyz="0"/></inertial><collision><geometry><mesh filename="{file}"/></geometry></collision></link></robot>"""


def usda(arc: str, *, top: str = "") -> str:
    head = f'#usda 1.0\n(\n    defaultPrim = "World"\n{top}\n)\n'
    return head + f'def Xform "World"\n{{\n    def "Part" (\n{arc}\n    )\n    {{\n    }}\n}}\n'


def references(outside: str) -> dict[str, tuple[str, str, str]]:
    """Way to refer → (name of the scene file, its text, the file meant); `outside` leads to the folder."""
    return {
        "mesh": ("a.xml", mjcf(f'<mesh name="cube" file="{outside}/cube.obj"/>', MESH_GEOM), "cube.obj"),
        "mesh by entity": (
            "a.xml",
            mjcf(f'<mesh name="cube" file="{outside.replace("/", "&#47;")}&#x2F;cube.obj"/>', MESH_GEOM),
            "cube.obj",
        ),
        "mesh behind CDATA": (
            "a.xml",
            mjcf(f'<![CDATA[ <!-- ]]><mesh name="cube" file="{outside}/cube.obj"/><![CDATA[ --> ]]>', MESH_GEOM),
            "cube.obj",
        ),
        "meshdir": (
            "a.xml",
            mjcf('<mesh file="cube.obj"/>', MESH_GEOM, f'<compiler meshdir="{outside}"/>'),
            "cube.obj",
        ),
        "assetdir": (
            "a.xml",
            mjcf('<mesh file="cube.obj"/>', MESH_GEOM, f"<compiler assetdir='{outside}'/>"),
            "cube.obj",
        ),
        "texture": ("a.xml", mjcf(f'<texture name="t" type="2d" file="{outside}/cube.obj"/>'), "cube.obj"),
        "hfield": ("a.xml", mjcf(f'<hfield name="h" size="1 1 1 1" file="{outside}/cube.obj"/>'), "cube.obj"),
        "include": ("a.xml", mjcf(top=f'<include file="{outside}/body.xml"/>'), "body.xml"),
        "model": ("a.xml", mjcf(f'<model name="m" file="{outside}/body.xml"/>'), "body.xml"),
        "URDF meshdir": (
            "a.urdf",
            URDF.format(file="cube.obj", compiler=f'<mujoco><compiler meshdir="{outside}"/></mujoco>'),
            "cube.obj",
        ),
        "URDF path": (
            "a.urdf",
            URDF.format(file=f"{outside}/cube.obj", compiler='<mujoco><compiler strippath="false"/></mujoco>'),
            "cube.obj",
        ),
        "reference": ("a.usda", usda(f"        references = @{outside}/part.usda@"), "part.usda"),
        "payload": ("a.usda", usda(f"        payload = @{outside}/part.usda@"), "part.usda"),
        "sublayer": ("a.usda", usda("", top=f"    subLayers = [@{outside}/part.usda@]"), "part.usda"),
        "variant": (
            "a.usda",
            usda('        variants = { string v = "x" }\n        prepend variantSets = "v"\n').replace(
                "    {\n    }",
                f'    {{\n variantSet "v" = {{ "x" ( references = @{outside}/part.usda@ ) {{ }} }}\n    }}',
            ),
            "part.usda",
        ),
        "clips": (
            "a.usda",
            usda(
                "        clips = { dictionary default = { asset[] assetPaths = [@" + outside + "/part.usda@]\n"
                'string primPath = "/Part"\n double2[] active = [(0, 0)]\n double2[] times = [(0, 0)] } }'
            ),
            "part.usda",
        ),
    }


WAYS = tuple(references("x"))


@pytest.mark.parametrize("how", ["relative", "absolute", "link"])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_outside_is_opened(folders, way, how):
    inside, outside = folders
    (inside / "link").symlink_to(outside)
    lead = {"relative": "../elsewhere", "absolute": str(outside), "link": "link"}[how]
    name, text, _meant = references(lead)[way]
    (inside / name).write_text(text)
    opened = Opened(outside)
    with pytest.raises(SceneError, match="WARPSIM_ALLOW=") as caught:
        load_scene(inside / name, strict=False)
    assert opened.names() == set(), caught.value


@pytest.mark.parametrize("way", [w for w in WAYS if w not in ("texture", "hfield", "clips", "model")])
def test_what_is_allowed_is_opened(folders, monkeypatch, way):
    inside, outside = folders
    name, text, meant = references("../elsewhere")[way]
    (inside / name).write_text(text)
    monkeypatch.setenv("WARPSIM_ALLOW", f"{inside / 'none'}{os.pathsep}{outside}")
    opened = Opened(outside)
    load_scene(inside / name, strict=False)
    assert meant in opened.names()


def test_the_working_directory_is_trusted(folders, monkeypatch):
    inside, _outside = folders
    (inside / "a.xml").write_text(mjcf(top='<include file="../elsewhere/body.xml"/>'))
    monkeypatch.chdir(inside.parent)
    assert len(load_scene("scene/a.xml").shapes) == 2
    monkeypatch.setenv("HOME", str(inside.parent))  # all of the user's files: no
    with pytest.raises(SceneError, match="lies outside"):
        load_scene("scene/a.xml")


def test_the_own_tree_is_open(folders):
    inside, outside = folders
    (inside / "assets").mkdir()
    for file in outside.iterdir():
        (inside / "assets" / file.name).write_bytes(file.read_bytes())
    commented = '<!-- <mesh file="/etc/passwd"/> ---- -->'
    (inside / "a.xml").write_text(
        mjcf(f'{commented}<mesh file="cube.obj"/>', MESH_GEOM, '<compiler meshdir="assets"/>')
    )
    (inside / "a.usda").write_text(usda("        references = @./assets/part.usda@"))
    assert len(load_scene(inside / "a.xml").shapes) == 1
    assert len(load_scene(inside / "a.usda").bodies) == 1


ADDRESSES = {
    "mesh": ("a.xml", lambda url: mjcf(f'<mesh name="cube" file="{url}/cube.obj"/>', MESH_GEOM)),
    "include": ("a.xml", lambda url: mjcf(top=f'<include file="{url}/body.xml"/>')),
    "texture": ("a.xml", lambda url: mjcf(f'<texture name="t" type="2d" file="{url}/a.png"/>')),
    "URDF": ("a.urdf", lambda url: URDF.format(file=f"{url}/cube.obj", compiler="")),
    "reference": ("a.usda", lambda url: usda(f"        references = @{url}/part.usda@")),
    "payload": ("a.usda", lambda url: usda(f"        payload = @{url}/part.usda@")),
    "sublayer": ("a.usda", lambda url: usda("", top=f"    subLayers = [@{url}/part.usda@]")),
}


@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "omniverse", "HTTP"])
@pytest.mark.parametrize("way", ADDRESSES)
def test_no_address_is_ever_opened(folders, listener, monkeypatch, way, scheme):
    address, server = listener
    monkeypatch.setenv("WARPSIM_ALLOW", "/")  # not even then
    name, make = ADDRESSES[way]
    path = folders[0] / name
    path.write_text(make(f"{scheme}://{address}"))
    with pytest.raises(SceneError, match="addresses are never opened"):
        load_scene(path, strict=False)
    with pytest.raises(BlockingIOError):
        server.accept()


def test_the_listener_would_notice(listener):
    address, server = listener
    host, port = address.split(":")
    with socket.create_connection((host, int(port))):
        server.accept()[0].close()


def test_expressions_for_paths_are_refused(folders):
    path = folders[0] / "a.usda"
    path.write_text(usda('        references = @`"./part.usda"`@'))
    with pytest.raises(SceneError, match="an expression"):
        load_scene(path)


BOMBS = {
    "replicate": mjcf(world='<replicate count="10000000" offset="1 0 0"><geom size=".1"/></replicate>'),
    "nested replicate": mjcf(
        world='<replicate count="1000"><replicate count="1000"><body><geom size=".1"/></body></replicate></replicate>'
    ),
    "huge count": mjcf(world='<replicate count="1e300"><geom size=".1"/></replicate>'),
    "flexcomp": mjcf(world='<flexcomp name="f" type="grid" count="1000 1000 1000" spacing="1 1 1"/>'),
    "deep": "<mujoco><worldbody>" + "<body>" * 5000 + "</body>" * 5000 + "</worldbody></mujoco>",
}


@pytest.mark.parametrize("name", BOMBS)
def test_mjcf_bombs_are_refused_before_mujoco_sees_them(name):
    with pytest.raises(SceneError, match=r"WARPSIM_MAX_OBJECTS=\d+|within each other"):
        read_mjcf(BOMBS[name])


def test_a_bomb_by_inclusion_is_refused(folders):
    inside, _outside = folders
    (inside / "many.xml").write_text("<x>" + '<geom size=".1"/>' * 400 + "</x>")
    (inside / "a.xml").write_text(mjcf(world='<replicate count="1000"><include file="many.xml"/></replicate>'))
    with pytest.raises(SceneError, match="4e\\+05 bodies"):
        load_scene(inside / "a.xml")


def test_the_limit_can_be_raised_and_lowered(monkeypatch):
    text = mjcf(world='<replicate count="30" offset=".3 0 0"><geom size=".1"/></replicate>')
    assert len(read_mjcf(text).shapes) == 30
    monkeypatch.setenv("WARPSIM_MAX_OBJECTS", "29")
    with pytest.raises(SceneError, match="WARPSIM_MAX_OBJECTS=30"):
        read_mjcf(text)
    monkeypatch.setenv("WARPSIM_MAX_OBJECTS", "30")
    assert len(read_mjcf(text).shapes) == 30
    monkeypatch.setenv("WARPSIM_MAX_OBJECTS", "many")
    with pytest.raises(InputError, match="WARPSIM_MAX_OBJECTS='many'"):
        read_mjcf(text)


def write_body(path: Path, name: str) -> None:
    stage = Usd.Stage.CreateNew(str(path))
    body = UsdGeom.Xform.Define(stage, f"/{name}").GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(body)
    UsdPhysics.MassAPI.Apply(body).CreateMassAttr(1.0)
    stage.SetDefaultPrim(body)
    stage.Save()


def tower(folder: Path, levels: int, branches: int, *, own_files: bool) -> Path:
    """Layers of nested references to branches**levels bodies; no stage is open, which would compose them."""
    write_body(folder / "level0.usda", "Level0")
    layer = Sdf.Layer.FindOrOpen(str(folder / "level0.usda"))
    for level in range(1, levels + 1):
        below = f"./level{level - 1}.usda" if own_files else ""
        if own_files:
            layer.Save()
            layer = Sdf.Layer.CreateNew(str(folder / f"level{level}.usda"))
        spec = Sdf.CreatePrimInLayer(layer, f"/Level{level}")
        spec.specifier, spec.typeName = Sdf.SpecifierDef, "Xform"
        layer.defaultPrim = f"Level{level}"
        for branch in range(branches):
            child = Sdf.CreatePrimInLayer(layer, f"/Level{level}/b{branch}")
            child.specifier = Sdf.SpecifierDef
            child.referenceList.Prepend(
                Sdf.Reference(below, Sdf.Path() if own_files else Sdf.Path(f"/Level{level - 1}"))
            )
    layer.Save()
    return Path(layer.realPath)


@pytest.mark.parametrize("own_files", [True, False])
def test_bombs_of_nested_references_are_refused_before_they_are_composed(tmp_path, own_files):
    """10⁵ bodies, and 10³⁰, which no memory would hold."""
    for levels in (5, 30):
        folder = tmp_path / str(levels)
        folder.mkdir()
        path = tower(folder, levels, 10, own_files=own_files)
        with pytest.raises(SceneError, match=rf"1e\+{levels:02} bodies, colliders and joints.*WARPSIM_MAX_OBJECTS="):
            load_scene(path)


def test_the_count_is_of_what_is_composed(tmp_path, monkeypatch):
    path = tower(tmp_path, 3, 3, own_files=True)
    assert len(load_scene(path).bodies) == 27
    monkeypatch.setenv("WARPSIM_MAX_OBJECTS", "27")
    assert len(load_scene(path).bodies) == 27
    monkeypatch.setenv("WARPSIM_MAX_OBJECTS", "26")
    with pytest.raises(SceneError, match="27 bodies"):
        load_scene(path)


def test_circles_end(tmp_path):
    """USD breaks them, or says that it cannot; the count does not go round."""
    (tmp_path / "a.usda").write_text(usda("        references = @./a.usda@"))
    try:
        assert load_scene(tmp_path / "a.usda").bodies == []
    except WarpsimError as error:
        assert "a.usda" in str(error)


def test_a_percent_sign_in_a_class_does_not_end_the_process():
    """MuJoCo would print with it; in a process of its own, for it would end this one."""
    text = mjcf(world='<geom class="a%s%n" size=".1"/>')
    program = "import sys\nfrom warpsim.io.mjcf import read_mjcf\nread_mjcf(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", program, text], capture_output=True, text=True)
    assert done.returncode == 1 and "rename it" in done.stderr, done.stderr
    with pytest.raises(SceneError, match="childclass='a%n'.*rename it"):
        read_mjcf(mjcf(world='<body childclass="a%n"><geom size=".1"/></body>'))


def test_the_command_says_what_to_do(folders, capsys):
    inside, _outside = folders
    (inside / "a.xml").write_text(mjcf(top='<include file="../elsewhere/body.xml"/>'))
    assert main(["inspect", str(inside / "a.xml")]) == 1
    assert f"set WARPSIM_ALLOW={inside.parent / 'elsewhere'}" in capsys.readouterr().err


def test_a_working_directory_that_is_gone_is_no_reason_to_fail(tmp_path, monkeypatch):
    (tmp_path / "a.xml").write_text(mjcf())
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert len(load_scene(tmp_path / "a.xml").shapes) == 1
