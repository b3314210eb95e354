// One motion: groups of meshes, one group for each body, posed at a time.

class TakeView {
  constructor(stage, content, take, number) {
    Object.assign(this, { stage, content, take, number });
    this.root = new THREE.Group();
    this.bodies = content.bodies.map(() => new THREE.Group());
    this.statics = new THREE.Group();
    this.root.add(this.statics, ...this.bodies);
    this.meshes = [];
    this.moving = [];
    this.ghost = take.ghost;
    for (const drawable of content.drawables) this.add(drawable);
    stage.scene.add(this.root);
    this.duration = take.times[take.frames - 1] - take.times[0];
    this.frame = -1;
  }

  add(drawable) {
    if (drawable.takes && !drawable.takes.includes(this.number)) return;
    if (["surface", "cloud", "curves"].includes(drawable.kind)) return this.addPoints(drawable);
    if (isGround(drawable)) return;
    const mesh = new THREE.Mesh(
      (drawable.geometry ??= makeGeometry(drawable, this.content.meshes)),
      makeMaterial(drawable, this.ghost),
    );
    mesh.matrixAutoUpdate = false;
    mesh.matrix.fromArray(drawable.matrix);
    mesh.castShadow = !this.ghost;
    mesh.receiveShadow = !this.ghost;
    mesh.userData = { drawable, take: this };
    (drawable.body < 0 ? this.statics : this.bodies[drawable.body]).add(mesh);
    this.meshes.push(mesh);
  }

  addPoints(drawable) {
    const series = this.take.points[drawable.path];
    if (!series) return;
    const count = series.channels / 3;
    const geometry = new THREE.BufferGeometry();
    const position = new THREE.BufferAttribute(new Float32Array(3 * count), 3);
    position.setUsage(THREE.DynamicDrawUsage);
    geometry.setAttribute("position", position);
    let mesh;
    if (drawable.kind === "surface") {
      geometry.setIndex(new THREE.BufferAttribute(new Uint32Array(drawable.indices), 1));
      mesh = new THREE.Mesh(geometry, makeMaterial(drawable, this.ghost));
      mesh.castShadow = mesh.receiveShadow = !this.ghost;
    } else if (drawable.kind === "cloud") {
      mesh = new THREE.InstancedMesh(
        new THREE.SphereGeometry(drawable.radius, count > 5000 ? 6 : 14, count > 5000 ? 4 : 10),
        makeMaterial(drawable, this.ghost),
        count,
      );
      mesh.castShadow = !this.ghost;
    } else {
      geometry.setIndex(segmentsOf(drawable.counts));
      mesh = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: linearColor(drawable.color) }));
    }
    mesh.frustumCulled = false;
    mesh.userData = { drawable, take: this };
    this.root.add(mesh);
    this.meshes.push(mesh);
    this.moving.push({ drawable, series, mesh, position });
  }

  // Frames around a time, s from the take's start, and the share of the way between them.
  between(time) {
    const times = this.take.times,
      last = this.take.frames - 1;
    const t = times[0] + Math.min(Math.max(time, 0), this.duration);
    let [low, high] = [0, last];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle;
      else high = middle;
    }
    if (last === 0) return [0, 0, 0];
    const share = (t - times[low]) / (times[high] - times[low]);
    return share >= 1 ? [high, high, 0] : [low, high, share];
  }

  nearest(time) {
    const [low, high, share] = this.between(time);
    return share < 0.5 ? low : high;
  }

  pose(body, time, position, rotation) {
    if (this.live) {
      const [x, y, z, w, i, j, k] = this.live.poses.subarray(7 * body, 7 * body + 7);
      position.set(x, y, z);
      rotation.set(i, j, k, w);
      return;
    }
    const { positions, rotations } = this.take;
    const [low, high, share] = this.between(time);
    const mix = (series, channel) => series.at(low, channel) * (1 - share) + series.at(high, channel) * share;
    position.set(mix(positions, 3 * body), mix(positions, 3 * body + 1), mix(positions, 3 * body + 2));
    // Signs never jump from one frame to the next, so the mean of two quaternions is halfway between them.
    const [w, x, y, z] = [0, 1, 2, 3].map((k) => mix(rotations, 4 * body + k));
    rotation.set(x, y, z, w).normalize();
  }

  // The longest edge of the box around everywhere a body has been.
  reach(body) {
    let longest = 0;
    for (let axis = 0; axis < 3; axis++) {
      let [low, high] = [Infinity, -Infinity];
      for (let frame = 0; frame < this.take.frames; frame++) {
        const value = this.take.positions.at(frame, 3 * body + axis);
        [low, high] = [Math.min(low, value), Math.max(high, value)];
      }
      longest = Math.max(longest, high - low);
    }
    return longest;
  }

  update(time) {
    for (let b = 0; b < this.bodies.length; b++) this.pose(b, time, this.bodies[b].position, this.bodies[b].quaternion);
    const [low, high, share] = this.between(time);
    for (const [number, { drawable, series, mesh, position }] of this.moving.entries()) {
      const out = position.array;
      if (this.live) out.set(this.live.points[number]);
      else for (let c = 0; c < series.channels; c++) out[c] = series.at(low, c) * (1 - share) + series.at(high, c) * share;
      if (drawable.kind === "cloud") {
        const matrix = new THREE.Matrix4();
        for (let i = 0; i < series.channels / 3; i++)
          mesh.setMatrixAt(i, matrix.makeTranslation(out[3 * i], out[3 * i + 1], out[3 * i + 2]));
        mesh.instanceMatrix.needsUpdate = true;
      } else {
        position.needsUpdate = true;
        if (drawable.kind === "surface") mesh.geometry.computeVertexNormals();
      }
      mesh.geometry.boundingSphere = null; // picking asks for it anew
      if (mesh.isInstancedMesh) mesh.boundingSphere = null;
    }
  }

  show(visible, statics, looks) {
    this.root.visible = visible;
    this.statics.visible = statics;
    for (const mesh of this.meshes) {
      const { visual, collider } = mesh.userData.drawable;
      mesh.visible = visual === undefined || (looks === "colliders" ? collider : visual);
    }
  }
}

function isGround(drawable) {
  return drawable.kind === "plane" && drawable.body < 0 && drawable.size[0] > ENDLESS;
}

function segmentsOf(counts) {
  const index = [];
  let first = 0;
  for (const count of counts) {
    for (let i = 0; i + 1 < count; i++) index.push(first + i, first + i + 1);
    first += count;
  }
  return index;
}
