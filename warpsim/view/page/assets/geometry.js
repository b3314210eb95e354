// Shapes and their materials.

const ENDLESS = 1e5; // m: planes wider than this have no rim

function makeGeometry(drawable, meshes) {
  const [a, b, c] = drawable.size;
  switch (drawable.kind) {
    case "sphere":
      return new THREE.SphereGeometry(a, 48, 32);
    case "box":
      return new THREE.BoxGeometry(2 * a, 2 * b, 2 * c);
    case "capsule":
      return new THREE.CapsuleGeometry(a, 2 * b, 12, 32, 1).rotateX(Math.PI / 2);
    case "tapered":
      return new THREE.CylinderGeometry(b, a, 2 * c, 48, 1).rotateX(Math.PI / 2);
    case "plane":
      return new THREE.PlaneGeometry(2 * Math.min(a, ENDLESS), 2 * Math.min(b, ENDLESS));
    default:
      return meshGeometry(meshes[drawable.mesh]);
  }
}

function meshGeometry(mesh) {
  if (!mesh.geometry) {
    mesh.geometry = new THREE.BufferGeometry();
    mesh.geometry.setAttribute("position", new THREE.BufferAttribute(mesh.position, 3));
    mesh.geometry.setAttribute("normal", new THREE.BufferAttribute(mesh.normal, 3));
    if (mesh.uv) mesh.geometry.setAttribute("uv", new THREE.BufferAttribute(mesh.uv, 2));
    mesh.geometry.setIndex(new THREE.BufferAttribute(mesh.index, 1));
  }
  return mesh.geometry;
}

async function loadTextures(content) {
  const maps = await Promise.all(
    content.textures.map(async (url) => {
      const image = new Image();
      image.src = url;
      await image.decode();
      const map = new THREE.Texture(image);
      Object.assign(map, {
        colorSpace: THREE.SRGBColorSpace,
        wrapS: THREE.RepeatWrapping,
        wrapT: THREE.RepeatWrapping,
        anisotropy: 4,
        needsUpdate: true,
      });
      return map;
    }),
  );
  for (const drawable of content.drawables) drawable.map = maps[drawable.texture] ?? null;
}

function linearColor(rgb) {
  return new THREE.Color().setRGB(rgb[0], rgb[1], rgb[2], THREE.LinearSRGBColorSpace);
}

// Ghosts are tinted a little toward the accent so that they read as "the other one" in both themes.
function makeMaterial(drawable, ghost) {
  const color = linearColor(drawable.color);
  const material = new THREE.MeshStandardMaterial({
    color,
    roughness: drawable.roughness ?? 0.5,
    metalness: drawable.metallic ?? 0,
    side:
      drawable.kind === "surface" || drawable.kind === "mesh" || drawable.kind === "plane"
        ? THREE.DoubleSide
        : THREE.FrontSide,
  });
  if (drawable.map) {
    material.map = drawable.map;
    color.set(0xffffff);
    material.color.copy(color);
  }
  const opacity = drawable.opacity ?? 1;
  if (ghost) {
    color.lerp(new THREE.Color(0x6f8fd8), 0.35);
    material.color.copy(color);
    Object.assign(material, { transparent: true, opacity: 0.28 * opacity, depthWrite: false });
  } else if (opacity < 1) Object.assign(material, { transparent: true, opacity, depthWrite: false });
  return material;
}
