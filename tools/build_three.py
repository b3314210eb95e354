"""Rebuilds the bundle of three.js that pages carry, from the npm registry; needs npm. `--check` only compares.

    python tools/build_three.py [--check]

The bundle holds what `ENTRY` names of the unmodified packages and nothing of ours. `three.json` beside it records which
versions it was made from, their integrity as the registry gives it, and the bundle's hash.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "warpsim" / "view" / "page" / "three"
PACKAGES = {"three": "0.187.0", "esbuild": "0.28.2"}
NAMES = """
    BackSide Box3 BoxGeometry BufferAttribute BufferGeometry CapsuleGeometry CircleGeometry Color ConeGeometry
    CylinderGeometry DirectionalLight DoubleSide DynamicDrawUsage Fog FrontSide Group HemisphereLight InstancedMesh
    LineBasicMaterial LineSegments LinearSRGBColorSpace Matrix4 Mesh MeshBasicMaterial
    MeshStandardMaterial NeutralToneMapping PCFShadowMap PMREMGenerator PerspectiveCamera PlaneGeometry Quaternion
    Raycaster RepeatWrapping SRGBColorSpace Scene ShaderMaterial SphereGeometry Texture TorusGeometry Vector2
    Vector3 WebGLRenderer
"""
ENTRY = f"""
export {{ {", ".join(NAMES.split())} }} from "three";
export {{ OrbitControls }} from "three/addons/controls/OrbitControls.js";
"""


def build(folder: Path) -> tuple[str, str, dict[str, object]]:
    """Installs the packages into a scratch folder and bundles them.

    Returns:
        The bundle, the license, and the record.
    """
    dependencies = {"private": True, "dependencies": PACKAGES}
    (folder / "package.json").write_text(json.dumps(dependencies), encoding="utf-8")
    subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (folder / "entry.js").write_text(ENTRY, encoding="utf-8")
    command = [
        "node_modules/.bin/esbuild",
        "entry.js",
        "--bundle",
        "--minify",
        "--format=iife",
        "--global-name=THREE",
        "--target=es2022",
        "--charset=ascii",
        "--legal-comments=inline",
        "--outfile=bundle.js",
        "--log-level=warning",
    ]
    subprocess.run(command, cwd=folder, check=True)
    bundle = (folder / "bundle.js").read_text(encoding="ascii")
    license_text = (folder / "node_modules" / "three" / "LICENSE").read_text(encoding="utf-8")
    lock = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    record = {
        "packages": {
            name: {"version": version, "integrity": lock[f"node_modules/{name}"]["integrity"]}
            for name, version in PACKAGES.items()
        },
        "license": "MIT",
        "sha256": hashlib.sha256(bundle.encode()).hexdigest(),
    }
    return bundle, license_text, record


def main() -> int:
    """Builds, and writes or compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="say whether the stored bundle is what would be built")
    check = parser.parse_args().check
    if shutil.which("npm") is None:
        print("build_three: npm is not installed", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        bundle, license_text, record = build(Path(scratch))
    files = {
        "three.min.js": bundle,
        "LICENSE": license_text,
        "three.json": json.dumps(record, indent=2, sort_keys=True) + "\n",
    }
    for name, text in files.items():
        path = FOLDER / name
        if check and (not path.is_file() or path.read_text(encoding="utf-8") != text):
            print(f"build_three: {path} is not what the packages give; run tools/build_three.py", file=sys.stderr)
            return 1
        if not check:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path} ({len(text)} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
