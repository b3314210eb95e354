// What is drawn over the bodies: contacts, joint axes, centers of mass, trails, targets.

const ACCENT = 0x2f6fed,
  WARM = 0xf08c2e,
  POINT = 0xe5484d,
  MARK = 0x12a594;

class Overlays {
  constructor(stage, content, views) {
    Object.assign(this, { stage, content, views });
    this.shown = { contacts: true, joints: false, com: false, targets: true };
    this.root = new THREE.Group();
    stage.scene.add(this.root);
    const most = content.live?.contacts ?? views.reduce((sum, view) => sum + mostContacts(view.take), 0);
    this.weight = content.bodies.reduce((sum, body) => sum + (body.mass ?? 0), 0) * 9.81;
    if (most) {
      const s = stage.size;
      this.points = this.instanced(new THREE.SphereGeometry(0.008 * s, 12, 8), POINT, most);
      this.shafts = this.instanced(
        new THREE.CylinderGeometry(0.0045 * s, 0.0045 * s, 1, 10).translate(0, 0.5, 0),
        WARM,
        most,
      );
      this.heads = this.instanced(
        new THREE.ConeGeometry(0.014 * s, 0.04 * s, 14).translate(0, 0.02 * s, 0),
        WARM,
        most,
      );
    }
    this.joints = new THREE.Group();
    this.frames = content.joints.map((joint) => this.jointFrame(joint));
    this.root.add(this.joints);
    this.centers = views.map(() => this.centerMark());
    this.trails = new Map();
    this.targets = content.targets.map((target) => this.targetMark(target));
  }

  instanced(geometry, color, count) {
    const material = new THREE.MeshBasicMaterial({
      color,
      transparent: true,
      opacity: 0.95,
      depthTest: false,
      toneMapped: false,
    });
    const mesh = new THREE.InstancedMesh(geometry, material, count);
    mesh.frustumCulled = false;
    mesh.renderOrder = 5;
    mesh.count = 0;
    this.root.add(mesh);
    return mesh;
  }

  jointFrame(joint) {
    const group = new THREE.Group(),
      s = 0.05 * this.stage.size;
    const one = joint.kind === "hinge" || joint.kind === "slide";
    const arms = one
      ? [[new THREE.Vector3(...joint.axis), joint.kind === "hinge" ? ACCENT : MARK]]
      : [
          [1, 0, 0, 0xe5484d],
          [0, 1, 0, 0x30a46c],
          [0, 0, 1, 0x3e63dd],
        ].map(([x, y, z, color]) => [new THREE.Vector3(x, y, z), color]);
    for (const [axis, color] of arms) {
      const material = new THREE.MeshBasicMaterial({
        color,
        depthTest: false,
        transparent: true,
        opacity: 0.9,
        toneMapped: false,
      });
      const rod = new THREE.Mesh(
        new THREE.CylinderGeometry(0.05 * s, 0.05 * s, one ? 2 * s : s, 8).translate(0, one ? 0 : s / 2, 0),
        material,
      );
      const tip = new THREE.Mesh(new THREE.ConeGeometry(0.14 * s, 0.35 * s, 12).translate(0, s, 0), material);
      for (const part of [rod, tip]) {
        part.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), axis.clone().normalize());
        part.renderOrder = 6;
        group.add(part);
      }
    }
    this.joints.add(group);
    return group;
  }

  // The drafting sign: a ball in quarters of two colors.
  centerMark() {
    const group = new THREE.Group(),
      radius = 0.022 * this.stage.size;
    for (let k = 0; k < 8; k++) {
      const dark = (k & 1) ^ ((k >> 1) & 1) ^ ((k >> 2) & 1);
      const part = new THREE.SphereGeometry(
        radius,
        8,
        8,
        ((k & 3) * Math.PI) / 2,
        Math.PI / 2,
        k & 4 ? Math.PI / 2 : 0,
        Math.PI / 2,
      );
      const material = new THREE.MeshBasicMaterial({
        color: dark ? 0x16181d : 0xf5d90a,
        depthTest: false,
        transparent: true,
        toneMapped: false,
      });
      const mesh = new THREE.Mesh(part.rotateX(Math.PI / 2), material);
      mesh.renderOrder = 7;
      group.add(mesh);
    }
    this.root.add(group);
    return group;
  }

  targetMark(target) {
    const size = Math.max(target.tolerance ?? 0, 0.022 * this.stage.size);
    const group = new THREE.Group();
    const material = new THREE.MeshBasicMaterial({
      color: MARK,
      depthTest: false,
      transparent: true,
      opacity: 0.9,
      toneMapped: false,
    });
    for (const turn of [
      [0, 0],
      [Math.PI / 2, 0],
      [0, Math.PI / 2],
    ]) {
      const ring = new THREE.Mesh(new THREE.TorusGeometry(size, 0.0012 * this.stage.size, 8, 64), material);
      ring.rotation.set(turn[0], turn[1], 0);
      ring.renderOrder = 6;
      group.add(ring);
    }
    const line = thickLine(2, { color: MARK, opacity: 0.9, pixels: 2, dash: 9, over: true });
    line.renderOrder = 6;
    const label = document.createElement("div");
    label.className = "label";
    label.textContent = shortName(target.name);
    this.stage.element.appendChild(label);
    this.root.add(group, line);
    return { target, group, line, label };
  }

  // A line through everywhere a body's origin has been; what is still to come is faint.
  toggleTrail(body) {
    if (this.trails.has(body)) {
      for (const line of this.trails.get(body)) line.removeFromParent();
      this.trails.delete(body);
      return false;
    }
    const lines = [];
    for (const view of this.views) {
      const n = view.take.frames,
        place = new Float32Array(3 * n);
      for (let f = 0; f < n; f++)
        for (let a = 0; a < 3; a++) place[3 * f + a] = view.take.positions.at(f, 3 * body + a);
      const color = view.ghost ? 0x7d8ba3 : WARM;
      for (const [faint, opacity, pixels] of [
        [false, 1, view.ghost ? 2 : 3.5],
        [true, 0.35, 2],
      ]) {
        const line = thickLine(n, { color, opacity, pixels });
        line.place(place);
        line.userData = { view, faint };
        view.root.add(line);
        lines.push(line);
      }
    }
    this.trails.set(body, lines);
    return true;
  }

  update(time) {
    if (this.points) this.updateContacts(time);
    const main =
      this.views.find((view) => view.root.visible && !view.ghost) ?? this.views.find((view) => view.root.visible);
    this.joints.visible = this.shown.joints && !!main;
    if (this.joints.visible)
      this.content.joints.forEach((joint, k) => {
        const body = main.bodies[joint.body],
          frame = this.frames[k];
        const anchor =
          joint.kind === "free" || joint.kind === "slide" ? new THREE.Vector3() : new THREE.Vector3(...joint.anchor);
        frame.position.copy(anchor).applyQuaternion(body.quaternion).add(body.position).add(main.root.position);
        frame.quaternion.copy(body.quaternion);
      });
    this.views.forEach((view, k) => this.updateCenter(view, this.centers[k]));
    for (const lines of this.trails.values())
      for (const line of lines) {
        const { view, faint } = line.userData,
          now = view.nearest(time);
        if (faint) line.showPart(now, view.take.frames - 1);
        else line.showPart(0, now);
      }
    for (const mark of this.targets) this.updateTarget(mark, main, time);
  }

  updateContacts(time) {
    let count = 0;
    const [up, start, force, turn, matrix, one] = [
      new THREE.Vector3(0, 1, 0),
      new THREE.Vector3(),
      new THREE.Vector3(),
      new THREE.Quaternion(),
      new THREE.Matrix4(),
      new THREE.Vector3(1, 1, 1),
    ];
    for (const view of this.shown.contacts ? this.views : []) {
      const contacts = view.take.contacts;
      if (!contacts || !view.root.visible || view.ghost) continue;
      const unit = (0.4 * this.stage.size) / (contacts.usual || 1);
      const frame = view.nearest(time);
      for (let k = contacts.starts[frame]; k < contacts.starts[frame + 1]; k++) {
        start.set(...[0, 1, 2].map((a) => contacts.points.at(k, a))).add(view.root.position);
        force.set(...[0, 1, 2].map((a) => contacts.forces.at(k, a)));
        const length = Math.min(force.length() * unit, 0.5 * this.stage.size);
        this.points.setMatrixAt(count, matrix.makeTranslation(start.x, start.y, start.z));
        turn.setFromUnitVectors(up, length > 0 ? force.normalize() : up);
        this.shafts.setMatrixAt(count, matrix.compose(start, turn, new THREE.Vector3(1, Math.max(length, 1e-9), 1)));
        const tip = start.clone().addScaledVector(force, length);
        this.heads.setMatrixAt(
          count,
          matrix.compose(tip, turn, length > 0.01 * this.stage.size ? one : new THREE.Vector3(1e-6, 1e-6, 1e-6)),
        );
        count++;
      }
    }
    for (const mesh of [this.points, this.shafts, this.heads]) {
      mesh.count = count;
      mesh.instanceMatrix.needsUpdate = true;
    }
    this.contactCount = count;
  }

  updateCenter(view, mark) {
    mark.visible = this.shown.com && view.root.visible && this.weight > 0;
    if (!mark.visible) return;
    let mass = 0;
    mark.position.set(0, 0, 0);
    this.content.bodies.forEach((body, b) => {
      if (!body.mass) return;
      const place = new THREE.Vector3(...(body.com ?? [0, 0, 0]))
        .applyQuaternion(view.bodies[b].quaternion)
        .add(view.bodies[b].position);
      mark.position.addScaledVector(place, body.mass);
      mass += body.mass;
    });
    mark.position.divideScalar(mass).add(view.root.position);
  }

  updateTarget(mark, main, time) {
    const { target, group, line, label } = mark;
    const shown = this.shown.targets && !!main;
    group.visible = shown;
    line.visible = shown && target.subject !== null;
    label.hidden = !shown;
    if (!shown) return;
    const place = along(target.times, target.positions, time).add(main.root.position);
    group.position.copy(place);
    if (line.visible) {
      const body = main.bodies[target.subject];
      const from = new THREE.Vector3(...(target.offset ?? [0, 0, 0]))
        .applyQuaternion(body.quaternion)
        .add(body.position)
        .add(main.root.position);
      line.place([...from.toArray(), ...place.toArray()]);
    }
    mark.place = place;
  }

  // Labels follow the camera, so they are placed when a picture is drawn.
  placeLabels() {
    const taken = [];
    for (const { label, place } of this.targets) {
      if (label.hidden || !place) continue;
      const seen = place.clone().project(this.stage.camera);
      label.style.display = seen.z > 1 ? "none" : "";
      const x = ((seen.x + 1) / 2) * this.stage.element.clientWidth + 12;
      let y = ((1 - seen.y) / 2) * this.stage.element.clientHeight - 26;
      while (taken.some(([a, b]) => Math.abs(a - x) < 90 && Math.abs(b - y) < 20)) y -= 21; // one above another
      taken.push([x, y]);
      label.style.transform = `translate(${x}px, ${y}px)`;
    }
  }
}

function mostContacts(take) {
  let most = 0;
  if (take.contacts)
    for (let f = 0; f < take.frames; f++) most = Math.max(most, take.contacts.starts[f + 1] - take.contacts.starts[f]);
  return most;
}

// Linear between keyframes, still before the first and after the last.
function along(times, places, time) {
  let k = 0;
  while (k + 2 < times.length && times[k + 1] <= time) k++;
  const a = new THREE.Vector3(...places[k]);
  if (places.length < 2) return a;
  const share = Math.min(Math.max((time - times[k]) / (times[k + 1] - times[k]), 0), 1);
  return a.lerp(new THREE.Vector3(...places[k + 1]), share);
}

function shortName(path) {
  return path.split("/").pop();
}
