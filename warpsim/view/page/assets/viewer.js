// The viewer: puts the parts together, and what keys and the mouse do.

const TALL_CARD = 130; // pixels: lower ones stay within the margin of the first view

class Viewer {
  constructor(content) {
    this.content = content;
    this.stage = new Stage(document.getElementById("view"));
    this.views = content.takes.map((take, number) => new TakeView(this.stage, content, take, number));
    this.learning = this.views
      .filter((view) => view.take.iteration !== null)
      .sort((a, b) => a.take.iteration - b.take.iteration);
    this.options = {
      ghosts: true,
      contacts: true,
      targets: true,
      joints: false,
      com: false,
      colliders: false,
      shadows: true,
    };
    this.hidden = new Set();
    Object.assign(this, { selected: null, followed: null, sideBySide: false, iteration: null, watching: false });
    this.arrangeStage();
    this.overlays = new Overlays(this.stage, content, this.views);
    this.player = new Player(() => this.update());
    this.fullDuration = Math.max(...this.views.map((view) => view.duration));
    this.panels = new Panels(this);
    this.live = content.live ? new Live(this) : null;
    this.stage.covered = () => this.covered();
    const worlds = this.views.filter((view) => view.take.iteration === null && !view.ghost);
    this.arrange();
    this.stage.lookFrom(this.elevation);
    const tracked = this.fullDuration > 0 ? this.trackedBodies(worlds[0] ?? this.views[0]) : [];
    const small = tracked.length && tracked.every((body) => 2 * this.radius(body) < 0.12 * this.stage.size);
    if (worlds.length > 1 && !(small && content.bodies.length === 1)) this.setLayout(true);
    for (const body of tracked) this.overlays.toggleTrail(body);
    this.update();
    this.listen();
  }

  arrangeStage() {
    const { low, high, enclosed } = this.content.focus;
    const box = new THREE.Box3(new THREE.Vector3(...low), new THREE.Vector3(...high));
    const extent = box.getSize(new THREE.Vector3());
    this.box = box;
    this.elevation = enclosed ? STEEP_ELEVATION : ELEVATION;
    const size = Math.max(extent.x, extent.y, extent.z, 1e-3);
    const planes = this.content.drawables.filter(isGround);
    for (const plane of planes) {
      const ground = this.stage.makeGround(linearColor(plane.color), new THREE.Matrix4().fromArray(plane.matrix), size);
      ground.userData.drawable = plane;
    }
    if (!planes.length)
      this.stage.makeGround(null, new THREE.Matrix4().makeTranslation(0, 0, box.min.z - 0.02 * size), size);
    this.stage.frame(box, size, this.elevation);
  }

  // Pixels on the left of a wide window that tall cards stand on.
  covered() {
    const tall = [...document.querySelectorAll(".head, .loss, .sliders")]
      .map((card) => card.getBoundingClientRect())
      .filter((area) => area.height > TALL_CARD);
    const right = Math.max(0, ...tall.map((area) => area.right));
    return right < 0.4 * this.stage.width ? right : 0;
  }

  // Bodies that leave a trail from the start: those a target is for, or the few that fly farther than they are large.
  trackedBodies(view) {
    const subjects = [...new Set(this.content.targets.map((target) => target.subject))].filter((body) => body !== null);
    if (subjects.length) return subjects;
    const flying = this.content.joints.filter((joint) => joint.kind === "free").map((joint) => joint.body);
    return flying.length > 3 ? [] : flying.filter((body) => view.reach(body) > 3 * this.radius(body));
  }

  // Of a body's shapes about its origin, roughly.
  radius(body) {
    const own = this.views[0].meshes.filter((mesh) => mesh.userData.drawable.body === body);
    return Math.max(
      0,
      ...own.map((mesh) => {
        mesh.geometry.computeBoundingSphere();
        const away = new THREE.Vector3().setFromMatrixPosition(mesh.matrix).length();
        return away + mesh.geometry.boundingSphere.radius * mesh.matrix.getMaxScaleOnAxis();
      }),
    );
  }

  // Which takes are shown, and where.
  arrange() {
    const shown = this.views.filter((view) => {
      if (this.hidden.has(view.number)) return false;
      if (view.ghost) return this.options.ghosts && this.iteration === null;
      return this.iteration === null ? view.take.iteration === null : view.number === this.iteration;
    });
    const first = shown.find((view) => !view.ghost) ?? shown[0];
    const extent = this.box.getSize(new THREE.Vector3());
    // A take that stays with another one has that one's place, as long as it is shown.
    const host = (view) => {
      const other = this.views[view.take.over ?? -1];
      return other && shown.includes(other) ? other : view;
    };
    const apart = shown.filter((view) => host(view) === view);
    // Two stand beside each other across what is long; more of them fill a square.
    const gap = (apart.length > 2 ? 0.2 : 0.35) * this.stage.size;
    const [dx, dy] = [extent.x + gap, extent.y + gap];
    const square = Math.max(1, Math.round(Math.sqrt((apart.length * dy) / dx)));
    const columns = apart.length === 2 ? (extent.x > extent.y ? 1 : 2) : square;
    const rows = Math.ceil(apart.length / columns);
    for (const view of this.views) {
      const place = shown.includes(view) ? apart.indexOf(host(view)) : -1;
      const own = host(view) === view;
      view.show(place >= 0, view === first || (this.sideBySide && own), this.options.colliders ? "colliders" : "visuals");
      const [column, row] = [place % columns, Math.floor(place / columns)];
      if (this.sideBySide && place >= 0)
        view.root.position.set((column - (columns - 1) / 2) * dx, -(row - (rows - 1) / 2) * dy, 0);
      else view.root.position.set(0, 0, 0);
    }
    this.shown = shown;
    this.player.duration = Math.max(0, ...shown.map((view) => view.duration));
    this.player.times = first?.take.times;
    this.player.time = Math.min(this.player.time, this.player.duration);
    this.update();
  }

  update() {
    const time = this.live ? this.live.time : this.player.shownTime;
    for (const view of this.views) if (view.root.visible) view.update(time);
    this.overlays.update(time);
    if (this.followed) this.follow();
    this.panels.refresh();
    this.stage.dirty = true;
  }

  follow() {
    const { view, body, last } = this.followed;
    const now = view.bodies[body].position.clone().add(view.root.position);
    const moved = now.clone().sub(last);
    this.stage.camera.position.add(moved);
    this.stage.controls.target.add(moved);
    last.copy(now);
    this.stage.moveLight(this.stage.controls.target);
  }

  setLayout(sideBySide) {
    this.sideBySide = sideBySide;
    this.arrange();
    const box = new THREE.Box3();
    for (const view of this.shown) box.union(this.box.clone().translate(view.root.position));
    if (box.isEmpty()) return;
    this.stage.box = box;
    this.stage.setHaze();
    this.stage.lookFrom(sideBySide && this.shown.filter((view) => !view.ghost).length > 2 ? Math.max(this.elevation, 32) : this.elevation);
    this.stage.moveLight(this.stage.center());
  }

  toggleTake(number) {
    if (this.iteration !== null) this.showIteration(null);
    else if (this.views[number].ghost && !this.options.ghosts) {
      this.options.ghosts = true;
      this.hidden.delete(number);
    } else if (this.hidden.has(number)) this.hidden.delete(number);
    else this.hidden.add(number);
    this.arrange();
  }

  setOption(name, on) {
    this.options[name] = on;
    if (name === "shadows") this.stage.sun.castShadow = on;
    if (name in this.overlays.shown) this.overlays.shown[name] = on;
    this.arrange();
  }

  showIteration(number) {
    if (number === null) this.watching = false;
    this.iteration = number;
    this.player.time = 0;
    this.arrange();
    if (number !== null && !this.player.playing) this.player.play();
  }

  // Every iteration in turn, each played to its end.
  watch(on) {
    this.watching = on;
    this.player.onEnd = on ? () => this.nextIteration() : null;
    this.showIteration(on ? this.learning[0].number : null);
    if (on) this.player.play();
  }

  nextIteration() {
    if (this.player.time < this.player.duration + 0.4 * this.player.speed) {
      this.update();
      return true;
    }
    const place = this.learning.findIndex((view) => view.number === this.iteration);
    this.showIteration(this.learning[(place + 1) % this.learning.length].number);
    return true;
  }

  setSpeed(speed) {
    this.player.speed = speed;
    this.update();
  }

  setLoop(on) {
    this.player.loop = on;
    this.update();
  }

  toggleTheme() {
    this.stage.setTheme(this.stage.theme === "dark" ? "light" : "dark");
  }

  resetView() {
    this.followed = null;
    this.setLayout(this.sideBySide);
  }

  rayAt(x, y) {
    const area = this.stage.renderer.domElement.getBoundingClientRect();
    const at = new THREE.Vector2(((x - area.left) / area.width) * 2 - 1, 1 - ((y - area.top) / area.height) * 2);
    const caster = new THREE.Raycaster();
    caster.setFromCamera(at, this.stage.camera);
    return caster;
  }

  // The nearest surface under a point of the window: { drawable, take, point }, or null.
  pick(x, y) {
    const caster = this.rayAt(x, y);
    caster.params.Line.threshold = 0.01 * this.stage.size;
    const meshes = this.shown
      .filter((view) => !view.ghost)
      .flatMap((view) =>
        view.meshes.filter((mesh) => mesh.visible && (mesh.parent !== view.statics || view.statics.visible)),
      );
    const ghosts = this.shown
      .filter((view) => view.ghost)
      .flatMap((view) => view.meshes.filter((mesh) => mesh.visible && mesh.parent !== view.statics));
    const grounds = this.stage.grounds.filter((ground) => ground.userData.drawable);
    const hit = caster.intersectObjects([...meshes, ...ghosts, ...grounds], false)[0];
    return hit
      ? {
          drawable: hit.object.userData.drawable,
          take: hit.object.userData.take ?? this.shown[0],
          point: hit.point,
          mesh: hit.object,
        }
      : null;
  }

  pathOf(picked) {
    if (!picked) return null;
    const body = picked.drawable.body;
    return body >= 0 ? this.content.bodies[body].path : picked.drawable.path;
  }

  select(picked) {
    for (const mesh of this.glowing ?? []) mesh.material.emissive?.setHex(0);
    this.selected = picked;
    const body = picked?.drawable.body;
    this.glowing = !picked
      ? []
      : picked.take.meshes.filter((mesh) => (body >= 0 ? mesh.userData.drawable.body === body : mesh === picked.mesh));
    for (const mesh of this.glowing) mesh.material.emissive?.setHex(0x14306b);
    if (!picked) this.followed = null;
    this.panels.showBody(picked);
    this.update();
  }

  selectPath(path) {
    const view = this.shown.find((each) => !each.ghost) ?? this.shown[0];
    const mesh = view?.meshes.find(
      (each) => this.pathOf({ drawable: each.userData.drawable }) === path || each.userData.drawable.path === path,
    );
    this.select(mesh ? { drawable: mesh.userData.drawable, take: view, mesh } : null);
    return !!mesh;
  }

  toggleFollow() {
    if (this.followed || !this.selected || !(this.selected.drawable.body >= 0)) this.followed = null;
    else {
      const { take: view, drawable } = this.selected;
      const last = view.bodies[drawable.body].position.clone().add(view.root.position);
      this.stage.controls.target.copy(last);
      this.followed = { view, body: drawable.body, last };
    }
    this.update();
  }

  toggleTrail() {
    if (!this.selected || !(this.selected.drawable.body >= 0)) return;
    this.overlays.toggleTrail(this.selected.drawable.body);
    this.update();
  }

  listen() {
    const canvas = this.stage.renderer.domElement;
    let down = null,
      hovered = 0;
    canvas.addEventListener("pointerdown", (event) => (down = [event.clientX, event.clientY]));
    canvas.addEventListener("pointerup", (event) => {
      if (down && event.button === 0 && Math.hypot(event.clientX - down[0], event.clientY - down[1]) < 4)
        this.select(this.pick(event.clientX, event.clientY));
      down = null;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons || performance.now() - hovered < 60) return;
      hovered = performance.now();
      const picked = this.pick(event.clientX, event.clientY);
      this.panels.showTip(this.pathOf(picked), event.clientX, event.clientY);
      canvas.style.cursor = picked ? "pointer" : "grab";
    });
    canvas.addEventListener("pointerleave", () => this.panels.showTip(null));
    canvas.addEventListener("dblclick", (event) => {
      const picked = this.pick(event.clientX, event.clientY);
      if (picked) {
        this.stage.controls.target.copy(picked.point);
        this.stage.dirty = true;
      }
    });
    window.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
    const frames = event.shiftKey ? 10 : 1;
    const flip = (name) => this.panels.switches[name] && this.setOption(name, !this.options[name]);
    const faster = (way) =>
      this.setSpeed(SPEEDS[Math.min(Math.max(SPEEDS.indexOf(this.player.speed) + way, 0), SPEEDS.length - 1)]);
    const actions = {
      " ": () => (this.live ? this.live.send({ kind: "pause", on: !this.live.paused }) : this.player.toggle()),
      ArrowLeft: () => this.player.stepBy(-frames),
      ArrowRight: () => (this.live ? this.live.send({ kind: "step", frames }) : this.player.stepBy(frames)),
      Home: () => (this.live ? this.live.send({ kind: "reset" }) : this.player.seek(0)),
      End: () => {
        this.player.pause();
        this.player.seek(this.player.duration);
      },
      "[": () => faster(-1),
      "]": () => faster(1),
      l: () => this.setLoop(!this.player.loop),
      f: () => this.toggleFollow(),
      t: () => this.toggleTrail(),
      g: () => flip("ghosts"),
      s: () => this.panels.side && this.setLayout(!this.sideBySide),
      c: () => flip("colliders"),
      v: () => flip("contacts"),
      j: () => flip("joints"),
      m: () => flip("com"),
      x: () => flip("targets"),
      d: () => this.toggleTheme(),
      r: () => this.resetView(),
      "?": () => (this.panels.help.hidden = !this.panels.help.hidden),
      h: () => (this.panels.help.hidden = !this.panels.help.hidden),
      Escape: () => {
        this.panels.help.hidden = true;
        this.select(null);
      },
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  run() {
    let before = performance.now();
    const tick = (now) => {
      const seconds = Math.min((now - before) / 1000, 0.25);
      this.player.advance(seconds);
      before = now;
      this.live?.tick(seconds);
      this.stage.controls.update();
      if (this.stage.dirty) {
        this.stage.render();
        this.overlays.placeLabels();
      }
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }
}
