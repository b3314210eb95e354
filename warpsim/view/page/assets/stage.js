// Renderer, camera, light, sky and ground.

const THEMES = {
  light: {
    zenith: 0x6f9fd8,
    horizon: 0xe9eff6,
    nadir: 0xcfd6dd,
    ground: 0xb8c6d8,
    line: 0x7f8a98,
    sun: 3.0,
    sky: 0.22,
    environment: 0.36,
    exposure: 0.9,
    shade: 0.92,
    check: 0.1,
  },
  dark: {
    zenith: 0x0a0d13,
    horizon: 0x232b37,
    nadir: 0x12161c,
    ground: 0x1b222d,
    line: 0x52627a,
    sun: 2.6,
    sky: 0.18,
    environment: 0.3,
    exposure: 1.0,
    shade: 0.95,
    check: 0.22,
  },
};

// The automatic camera, as the ray caster's (`warpsim/view/items/camera.py`): degrees, and window over what must fit.
const AZIMUTH = -60,
  ELEVATION = 22,
  STEEP_ELEVATION = 45,
  MARGIN = 1.2;

class Stage {
  constructor(element) {
    this.element = element;
    this.renderer = new THREE.WebGLRenderer({ antialias: true, powerPreference: "high-performance" });
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.renderer.toneMapping = THREE.NeutralToneMapping;
    element.appendChild(this.renderer.domElement);
    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(35, 1, 0.01, 1000);
    this.camera.up.set(0, 0, 1);
    this.controls = new THREE.OrbitControls(this.camera, this.renderer.domElement);
    Object.assign(this.controls, {
      enableDamping: true,
      dampingFactor: 0.12,
      zoomToCursor: true,
      screenSpacePanning: true,
    });
    this.dirty = true;
    this.controls.addEventListener("change", () => (this.dirty = true));
    this.sun = new THREE.DirectionalLight(0xfff4e5, 2.4);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    this.sun.shadow.radius = 5;
    this.hemisphere = new THREE.HemisphereLight(0xdfeaf7, 0xb9b2a8, 0.6);
    this.scene.add(this.sun, this.sun.target, this.hemisphere);
    this.sky = this.makeSky();
    this.scene.add(this.sky);
    this.scene.environment = this.makeEnvironment();
    this.grounds = [];
    this.covered = () => 0;
    this.resize();
    new ResizeObserver(() => this.resize()).observe(element);
  }

  makeSky() {
    const material = new THREE.ShaderMaterial({
      side: THREE.BackSide,
      depthWrite: false,
      depthTest: false,
      fog: false,
      toneMapped: false,
      uniforms: {
        zenith: { value: new THREE.Color() },
        horizon: { value: new THREE.Color() },
        nadir: { value: new THREE.Color() },
      },
      vertexShader:
        "varying vec3 way; void main() { way = position; vec4 p = modelViewMatrix * vec4(position, 0.0); gl_Position = projectionMatrix * vec4(p.xyz, 1.0); gl_Position.z = gl_Position.w * 0.9999; }",
      fragmentShader: `varying vec3 way; uniform vec3 zenith, horizon, nadir;
        void main() {
          float h = normalize(way).z;
          vec3 c = h > 0.0 ? mix(horizon, zenith, pow(h, 0.6)) : mix(horizon, nadir, pow(min(-h * 3.0, 1.0), 0.7));
          gl_FragColor = vec4(c, 1.0);
          #include <colorspace_fragment>
        }`,
    });
    const sky = new THREE.Mesh(new THREE.SphereGeometry(1, 32, 24), material);
    sky.frustumCulled = false;
    sky.renderOrder = -10;
    return sky;
  }

  // A plain studio: a bright ceiling, a dim floor and two soft boxes, for reflections.
  makeEnvironment() {
    const studio = new THREE.Scene();
    const glow = (color, strength) =>
      new THREE.MeshBasicMaterial({ color: new THREE.Color(color).multiplyScalar(strength), side: THREE.DoubleSide });
    const dome = new THREE.Mesh(
      new THREE.SphereGeometry(10, 24, 16),
      new THREE.ShaderMaterial({
        side: THREE.BackSide,
        vertexShader:
          "varying vec3 way; void main() { way = position; gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }",
        fragmentShader:
          "varying vec3 way; void main() { float h = normalize(way).z; gl_FragColor = vec4(mix(vec3(0.32, 0.31, 0.30), vec3(0.95, 0.98, 1.05), smoothstep(-0.25, 0.7, h)), 1.0); }",
      }),
    );
    studio.add(dome);
    for (const [x, y, z, w, strength] of [
      [5, -4, 5, 4, 5.0],
      [-6, 2, 4, 3, 2.5],
      [0, 6, 2, 3, 1.2],
    ]) {
      const box = new THREE.Mesh(new THREE.PlaneGeometry(w, w), glow(0xffffff, strength));
      box.position.set(x, y, z);
      box.lookAt(0, 0, 0);
      studio.add(box);
    }
    const generator = new THREE.PMREMGenerator(this.renderer);
    const texture = generator.fromScene(studio, 0.03).texture;
    generator.dispose();
    return texture;
  }

  // An endless plane: a wide disk with a grid that fades with distance.
  makeGround(color, matrix, size) {
    const step = niceStep(size / 6);
    const material = new THREE.MeshStandardMaterial({ roughness: 0.95, metalness: 0 });
    const uniforms = {
      lineColor: { value: new THREE.Color() },
      step: { value: step },
      reach: { value: 9 * size },
      check: { value: 0 },
    };
    material.onBeforeCompile = (shader) => {
      Object.assign(shader.uniforms, uniforms);
      shader.vertexShader = shader.vertexShader
        .replace("#include <common>", "#include <common>\nvarying vec2 gridPlace; varying vec3 gridView;")
        .replace(
          "#include <project_vertex>",
          "#include <project_vertex>\ngridPlace = position.xy; gridView = mvPosition.xyz;",
        );
      shader.fragmentShader = shader.fragmentShader
        .replace(
          "#include <common>",
          `#include <common>
          varying vec2 gridPlace; varying vec3 gridView;
          uniform vec3 lineColor; uniform float step, reach, check;
          float gridLine(vec2 p, float width) {
            vec2 d = fwidth(p);
            vec2 g = abs(fract(p - 0.5) - 0.5);
            vec2 a = smoothstep(d * (width + 0.6), d * max(width - 0.6, 0.0), g) * (1.0 - smoothstep(0.25, 0.6, d));
            return max(a.x, a.y);
          }`,
        )
        .replace(
          "#include <color_fragment>",
          `#include <color_fragment>
          float away = length(gridView) / reach;
          float veil = 1.0 - smoothstep(0.25, 1.0, away);
          float fine = gridLine(gridPlace / step, 0.5) * 0.16;
          float coarse = gridLine(gridPlace / (step * 5.0), 0.7) * 0.4;
          // Checks whose edges are smooth over a pixel: far away they run into each other instead of flickering.
          vec2 cell = gridPlace / (step * 5.0);
          vec2 wave = clamp((abs(fract(0.5 * cell + 0.25) * 2.0 - 1.0) - 0.5) / max(fwidth(cell), 1e-6), -0.5, 0.5);
          float checker = (0.5 - 2.0 * wave.x * wave.y) * check * veil;
          diffuseColor.rgb = mix(diffuseColor.rgb * (1.0 - checker), lineColor, max(fine, coarse) * veil);`,
        );
    };
    const ground = new THREE.Mesh(new THREE.CircleGeometry(60 * size, 96), material);
    ground.receiveShadow = true;
    ground.matrixAutoUpdate = false;
    ground.matrix.copy(matrix);
    ground.userData = { color, uniforms };
    this.scene.add(ground);
    this.grounds.push(ground);
    return ground;
  }

  setTheme(name) {
    const theme = THEMES[name];
    document.documentElement.dataset.theme = name;
    for (const part of ["zenith", "horizon", "nadir"]) this.sky.material.uniforms[part].value.set(theme[part]);
    this.sun.intensity = theme.sun;
    this.hemisphere.intensity = theme.sky;
    this.scene.environmentIntensity = theme.environment;
    this.renderer.toneMappingExposure = theme.exposure;
    this.sun.shadow.intensity = theme.shade;
    if (this.scene.fog) this.scene.fog.color.set(theme.horizon);
    for (const ground of this.grounds) {
      const own = ground.userData.color;
      ground.material.color.set(theme.ground);
      if (own) ground.material.color.lerp(own, name === "dark" ? 0.04 : 0.25);
      ground.userData.uniforms.lineColor.value.set(theme.line);
      ground.userData.uniforms.check.value = theme.check;
    }
    this.theme = name;
    this.dirty = true;
  }

  // Fits camera, light and haze to a box; `size` is its longest edge.
  frame(box, size, elevation) {
    this.box = box;
    this.size = size;
    const reach = 60 * size;
    this.camera.near = size / 500;
    this.camera.far = 3 * reach;
    this.controls.maxDistance = 20 * size;
    this.controls.minDistance = size / 100;
    this.scene.fog = new THREE.Fog(0xffffff, 1, 2);
    this.setHaze();
    this.lookFrom(elevation);
    this.moveLight(this.center());
  }

  // What is shown stands before the haze, however many worlds there are.
  setHaze() {
    const size = Math.max(...this.box.getSize(new THREE.Vector3()).toArray(), this.size);
    Object.assign(this.scene.fog, { near: 5 * size, far: 18 * size });
    for (const ground of this.grounds) ground.userData.uniforms.reach.value = 9 * size;
  }

  center() {
    return this.box.getCenter(new THREE.Vector3());
  }

  moveLight(at) {
    const radius = Math.min(0.5 * this.box.getSize(new THREE.Vector3()).length() * 1.25, 4 * this.size);
    const camera = this.sun.shadow.camera;
    Object.assign(camera, {
      left: -radius,
      right: radius,
      top: radius,
      bottom: -radius,
      near: 0.1 * radius,
      far: 6 * radius,
    });
    camera.updateProjectionMatrix();
    // Surfaces must not shade themselves: the offset covers the blurred texels, or flat meshes show stripes.
    this.sun.shadow.normalBias = (1.5 * this.sun.shadow.radius * 2 * radius) / this.sun.shadow.mapSize.x;
    this.sun.shadow.bias = -0.0004;
    this.sun.target.position.copy(at);
    this.sun.position.copy(at).add(new THREE.Vector3(0.45, -0.55, 1.15).normalize().multiplyScalar(3 * radius));
    this.dirty = true;
  }

  // The nearest three-quarter view of the whole box, degrees above the horizon; `fit_camera` has the equations.
  lookFrom(elevation) {
    const [a, e] = [(AZIMUTH * Math.PI) / 180, (elevation * Math.PI) / 180];
    const outward = new THREE.Vector3(Math.cos(e) * Math.cos(a), Math.cos(e) * Math.sin(a), Math.sin(e));
    const right = new THREE.Vector3(-outward.y, outward.x, 0).normalize();
    const up = new THREE.Vector3().crossVectors(outward, right);
    const corners = [];
    for (let k = 0; k < 8; k++) {
      const [low, high] = [this.box.min, this.box.max];
      corners.push(new THREE.Vector3(k & 1 ? high.x : low.x, k & 2 ? high.y : low.y, k & 4 ? high.z : low.z));
    }
    const tangent = Math.tan((this.camera.fov * Math.PI) / 360);
    const extent = this.box.getSize(new THREE.Vector3());
    const nearest = Math.min(...corners.map((corner) => -corner.dot(outward)));
    let back = nearest - 0.5 * Math.max(extent.x, extent.y, extent.z);
    const place = new THREE.Vector3();
    for (const [axis, reach] of [
      [right, (tangent * this.camera.aspect * (1 - this.covered() / this.width)) / MARGIN],
      [up, tangent / MARGIN],
    ]) {
      let [a, b] = [-Infinity, -Infinity];
      for (const corner of corners) {
        const [across, depth] = [corner.dot(axis), -corner.dot(outward)];
        a = Math.max(a, across - reach * depth);
        b = Math.max(b, -across - reach * depth);
      }
      place.addScaledVector(axis, 0.5 * (a - b));
      back = Math.min(back, (-0.5 * (a + b)) / reach);
    }
    this.camera.position.copy(place).addScaledVector(outward, -back);
    // Orbits go about the point of the view's axis that is nearest to the box's middle.
    const distance = this.camera.position.clone().sub(this.center()).dot(outward);
    this.controls.target.copy(this.camera.position).addScaledVector(outward, -Math.max(distance, 1e-6));
    this.centerView();
    this.controls.update();
    this.camera.updateMatrixWorld();
    this.dirty = true;
  }

  get width() {
    return this.element.clientWidth || 1;
  }

  // The view's axis goes through the middle of what cards leave free: `covered()` pixels on the left are not.
  centerView() {
    const [width, height] = [this.width, this.element.clientHeight || 1];
    this.camera.setViewOffset(width, height, -0.5 * this.covered(), 0, width, height);
  }

  resize() {
    const [width, height] = [this.width, this.element.clientHeight || 1];
    this.renderer.setSize(width, height);
    this.camera.aspect = width / height;
    this.centerView();
    this.dirty = true;
  }

  render() {
    this.renderer.render(this.scene, this.camera);
    this.dirty = false;
  }
}

// 1, 2 or 5 times a power of ten, nearest below.
function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const share = value / power;
  return power * (share >= 5 ? 5 : share >= 2 ? 2 : 1);
}
