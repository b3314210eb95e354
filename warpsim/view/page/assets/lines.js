// Lines that are some pixels thick: WebGL's own are one pixel wide. Each segment is a rectangle that faces the camera.

const LINE_VERTEX = `
  attribute vec3 other; attribute vec2 corner;
  uniform vec2 view; uniform float pixels, near; varying float along;
  void main() {
    vec4 here = modelViewMatrix * vec4(position, 1.0), there = modelViewMatrix * vec4(other, 1.0);
    // What lies behind the camera is cut off.
    if (here.z > -near && there.z < -near) here = mix(here, there, (here.z + near) / (here.z - there.z));
    else if (there.z > -near && here.z < -near) there = mix(there, here, (there.z + near) / (there.z - here.z));
    vec4 a = projectionMatrix * here, b = projectionMatrix * there;
    float end = corner.x * 2.0 - 1.0;
    vec2 way = (a.xy / a.w - b.xy / b.w) * view * end;
    float size = length(way);
    vec2 to = size > 1e-6 ? way / size : vec2(1.0, 0.0);
    along = corner.x * 0.5 * size;
    // Ends reach out by a little, so that bends have no gaps.
    a.xy += (vec2(-to.y, to.x) * corner.y + 0.4 * end * to) * pixels / view * a.w;
    gl_Position = a;
  }`;
const LINE_FRAGMENT = `
  uniform vec3 color; uniform float opacity, dash; varying float along;
  void main() {
    if (dash > 0.0 && mod(along, 2.0 * dash) > dash) discard;
    gl_FragColor = vec4(color, opacity);
    #include <colorspace_fragment>
  }`;

// A line through `count` points, as a mesh with `place` and `showPart`; `dash` is for lines of two points. CSS pixels.
function thickLine(count, { color, opacity = 1, pixels = 3, dash = 0, over = false }) {
  const values = { color: new THREE.Color(color), opacity, pixels, dash, near: 0.01, view: new THREE.Vector2(1, 1) };
  const uniforms = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]));
  const material = new THREE.ShaderMaterial({
    uniforms,
    vertexShader: LINE_VERTEX,
    fragmentShader: LINE_FRAGMENT,
    transparent: opacity < 1 || over,
    depthTest: !over,
    depthWrite: !over && opacity === 1,
    side: THREE.DoubleSide,
    toneMapped: false,
  });
  const geometry = segmentRectangles(Math.max(count - 1, 0));
  const mesh = new THREE.Mesh(geometry, material);
  mesh.frustumCulled = false;
  mesh.onBeforeRender = (renderer, scene, camera) => {
    renderer.getSize(uniforms.view.value);
    uniforms.near.value = camera.near;
  };
  // x, y, z of each point.
  mesh.place = (places) => {
    const { position, other } = geometry.attributes;
    for (let s = 0; s < count - 1; s++)
      for (let k = 0; k < 4; k++)
        for (let a = 0; a < 3; a++) {
          const ends = [places[3 * s + a], places[3 * s + 3 + a]];
          position.array[12 * s + 3 * k + a] = ends[k >> 1];
          other.array[12 * s + 3 * k + a] = ends[1 - (k >> 1)];
        }
    position.needsUpdate = other.needsUpdate = true;
  };
  // Segments from `first` to before `last`.
  mesh.showPart = (first, last) => geometry.setDrawRange(6 * first, 6 * Math.max(last - first, 0));
  return mesh;
}

function segmentRectangles(segments) {
  const geometry = new THREE.BufferGeometry(),
    corners = new Float32Array(8 * segments),
    index = [];
  for (let s = 0; s < segments; s++) {
    corners.set([0, 1, 0, -1, 1, 1, 1, -1], 8 * s);
    index.push(4 * s, 4 * s + 1, 4 * s + 2, 4 * s + 2, 4 * s + 1, 4 * s + 3);
  }
  for (const name of ["position", "other"])
    geometry.setAttribute(name, new THREE.BufferAttribute(new Float32Array(12 * segments), 3));
  geometry.setAttribute("corner", new THREE.BufferAttribute(corners, 2));
  geometry.setIndex(index);
  return geometry;
}
