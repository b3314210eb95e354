// A page that follows a running simulation: states in, wishes out. `warpsim/view/live` has the other end.

class Live {
  constructor(viewer) {
    Object.assign(this, { viewer, info: viewer.content.live, frames: 0, time: 0, paused: false, pulled: null, news: null });
    this.makePanels();
    this.makePull();
    this.connect();
  }

  connect() {
    const token = new URLSearchParams(location.search).get("token") ?? "";
    this.socket = new WebSocket(`ws://${location.host}/socket?token=${encodeURIComponent(token)}`);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.tell("live");
      this.socket.send("ready");
    };
    this.socket.onclose = () => this.tell("ended");
    this.socket.onmessage = (event) => {
      if (typeof event.data === "string") this.takeStatus(JSON.parse(event.data));
      else this.news = event.data;
    };
  }

  send(wish) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(wish));
  }

  takeStatus({ edition, paused, label, sliders, losses }) {
    if (edition !== this.info.edition) return location.reload();
    this.paused = paused;
    this.label.textContent = label;
    this.playButton.innerHTML = icon(paused ? "play" : "pause");
    sliders.forEach((value, k) => this.sliders[k].show(value));
    if (losses.length) this.showLosses(losses);
  }

  // A search: its losses so far instead of sliders, which it does not listen to.
  showLosses(losses) {
    if (!this.lossCard) {
      this.searchState = make("span", { className: "sub" });
      this.lossCard = make(
        "div",
        { className: "card loss" },
        make("div", { className: "row" }, make("h2", { textContent: "Loss" }), this.searchState),
      );
      document.getElementById("ui").append(this.lossCard);
      if (this.sliderCard) this.sliderCard.hidden = true;
      this.viewer.resetView();
    }
    this.searchState.textContent = this.paused ? "search paused: → goes on by one iteration" : "";
    this.lossCard.querySelector("svg")?.remove();
    const [iteration, loss] = losses[losses.length - 1];
    const curve = { iterations: losses.map((each) => each[0]), losses: losses.map((each) => each[1]) };
    if (curve.losses.some((value) => value !== null))
      new LossPlot(this.lossCard, curve, [{ take: { iteration, loss }, number: 0 }], () => {}).update(0);
    this.iterations = losses.length;
  }

  // Once per picture: the newest state, and word that the next may come, so that none wait in a queue. Where pictures
  // take long, without a graphics card, the next one comes late enough to leave time for the mouse.
  tick(seconds) {
    if (!this.news) return;
    this.takeState(this.news);
    this.news = null;
    setTimeout(() => this.socket.send("ready"), seconds > 0.03 ? 2000 * seconds : 0);
  }

  // Layout in `states.py`.
  takeState(buffer) {
    const { viewer } = this,
      head = new DataView(buffer),
      touching = head.getUint32(8, true);
    this.time = head.getFloat64(0, true);
    const numbers = new Float32Array(buffer, 16);
    const bodies = viewer.content.bodies.length;
    let at = 7 * bodies * viewer.views.length;
    viewer.views.forEach((view, world) => {
      const poses = numbers.subarray(7 * bodies * world, 7 * bodies * (world + 1));
      const points = view.moving.map(({ series }) => numbers.subarray(at, (at += series.channels)));
      view.live = { poses, points };
    });
    const contacts = numbers.subarray(at, at + 7 * touching);
    viewer.views.forEach((view, world) => {
      const own = [];
      for (let k = 0; k < touching; k++) if (contacts[7 * k] === world) own.push(7 * k);
      const part = (first) => ({ at: (k, axis) => contacts[own[k] + first + axis] });
      const usual = viewer.overlays.weight || 1;
      view.take.contacts = { starts: [0, own.length], points: part(1), forces: part(4), usual };
    });
    this.frames++;
    this.clock.textContent = `${this.time.toFixed(2)} s`;
    viewer.update();
    this.placePull();
  }

  tell(state) {
    this.state = state;
    this.dot.dataset.state = state;
    this.dot.title = state === "live" ? "connected" : "the simulation has ended";
  }

  makePanels() {
    const root = document.getElementById("ui");
    this.dot = make("span", { className: "dot" });
    this.playButton = button("pause", "Pause or go on (Space)", () => this.send({ kind: "pause", on: !this.paused }));
    this.clock = make("span", { className: "clock" });
    this.label = make("span", { className: "sub grow" });
    root.append(
      make(
        "div",
        { className: "card bar live" },
        this.dot,
        this.playButton,
        button("forward", "One frame (→)", () => this.send({ kind: "step", frames: 1 })),
        button("reset", "Back to the start (Home)", () => this.send({ kind: "reset" })),
        this.clock,
        this.label,
      ),
    );
    this.sliders = [];
    if (!this.info.sliders.length) return;
    const card = make("div", { className: "card sliders" });
    let group = null;
    this.info.sliders.forEach((slider, number) => {
      if (slider.group !== group) card.append(make("h2", { textContent: (group = slider.group) }));
      card.append(this.makeSlider(slider, number));
    });
    root.append(card);
    this.sliderCard = card;
  }

  makeSlider({ name, low, high, value, unit }, number) {
    const shown = make("output");
    const input = make("input", {
      type: "range",
      min: low,
      max: high,
      step: "any",
      className: "scrub",
      ariaLabel: name,
      oninput: () => {
        show(Number(input.value));
        this.send({ kind: "slide", slider: number, value: Number(input.value) });
      },
    });
    const show = (now) => {
      if (document.activeElement !== input || Math.abs(now - input.value) > 1e-3 * (high - low)) input.value = now;
      input.style.setProperty("--done", `${(100 * (now - low)) / (high - low)}%`);
      shown.textContent = `${shortNumber(now)} ${unit}`;
    };
    show(value);
    this.sliders.push({ input, show });
    return make("label", { title: name }, make("span", { textContent: shortName(name) }), input, shown);
  }

  // A body under the mouse is pulled; anywhere else a drag turns the view.
  makePull() {
    if (!this.info.drag) return;
    const { stage } = this.viewer,
      element = stage.element;
    this.string = thickLine(2, { color: WARM, pixels: 3, over: true });
    Object.assign(this.string, { renderOrder: 8, visible: false });
    stage.scene.add(this.string);
    const begin = (event) => {
      const picked = event.button === 0 && !event.shiftKey ? this.viewer.pick(event.clientX, event.clientY) : null;
      if (!picked || !(picked.drawable.body >= 0)) return;
      stage.controls.enabled = false;
      const group = picked.take.bodies[picked.drawable.body];
      this.pulled = {
        view: picked.take,
        body: picked.drawable.body,
        local: group.worldToLocal(picked.point.clone()),
        normal: stage.camera.getWorldDirection(new THREE.Vector3()),
        start: picked.point.clone(),
        target: picked.point.clone(),
      };
    };
    element.addEventListener("pointerdown", begin, true);
    element.addEventListener("pointermove", (event) => this.pull(event), true);
    window.addEventListener("pointerup", () => this.release());
    window.addEventListener("blur", () => this.release());
  }

  pull(event) {
    if (!this.pulled) return;
    const { view, body, local, normal, start, target } = this.pulled;
    // Where the ray through the mouse meets the plane across the view through the point that was taken hold of.
    const { origin, direction } = this.viewer.rayAt(event.clientX, event.clientY).ray;
    const distance = start.clone().sub(origin).dot(normal) / direction.dot(normal);
    target.copy(origin).addScaledVector(direction, distance);
    const place = target.clone().sub(view.root.position);
    this.send({ kind: "drag", world: view.number, body, point: local.toArray(), target: place.toArray() });
    this.placePull();
  }

  placePull() {
    if (!this.string) return;
    this.string.visible = !!this.pulled;
    if (this.pulled) {
      const { view, body, local, target } = this.pulled;
      view.bodies[body].updateWorldMatrix(true, false);
      const from = view.bodies[body].localToWorld(local.clone());
      this.string.place([...from.toArray(), ...target.toArray()]);
    }
    this.viewer.stage.dirty = true;
  }

  release() {
    if (!this.pulled) return;
    this.pulled = null;
    this.viewer.stage.controls.enabled = true;
    this.send({ kind: "release" });
    this.placePull();
  }
}
