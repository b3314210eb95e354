// Cards and controls around the picture.

const ICONS = {
  play: '<path d="M7 4.5v15l12-7.5z" fill="currentColor" stroke="none"/>',
  pause: '<path d="M7 5h3.6v14H7zM13.4 5H17v14h-3.6z" fill="currentColor" stroke="none"/>',
  back: '<path d="M17 5.5v13L8 12zM6 5.5v13"/>',
  forward: '<path d="M7 5.5v13l9-6.5zM18 5.5v13"/>',
  loop: '<path d="M17 3l3 3-3 3M4 11V9a3 3 0 0 1 3-3h13M7 21l-3-3 3-3M20 13v2a3 3 0 0 1-3 3H4"/>',
  theme: '<circle cx="12" cy="12" r="8.2"/><path d="M12 3.8a8.2 8.2 0 0 1 0 16.4z" fill="currentColor" stroke="none"/>',
  layers: '<path d="M12 3.5l8.5 4.7L12 13 3.5 8.2zM3.5 12L12 16.8 20.5 12M3.5 15.8L12 20.5l8.5-4.7"/>',
  home: '<path d="M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5"/><circle cx="12" cy="12" r="2.2"/>',
  help: '<circle cx="12" cy="12" r="8.5"/><path d="M9.6 9.5a2.5 2.5 0 1 1 3.6 2.2c-.9.5-1.2 1-1.2 2M12 16.7v.1"/>',
  reset: '<path d="M5 12a7 7 0 1 0 2.3-5.2M5 4.5V9h4.5"/>',
  close: '<path d="M6 6l12 12M18 6L6 18"/>',
};

const KEYS = [
  ["Space", "play, pause"],
  ["← →", "one frame (with Shift: ten)"],
  ["Home End", "start, end"],
  ["[ ]", "slower, faster"],
  ["L", "loop"],
  ["F", "follow the selected body"],
  ["T", "trail of the selected body"],
  ["G", "ghosts"],
  ["S", "side by side"],
  ["C", "colliders"],
  ["V", "contacts"],
  ["J", "joint axes"],
  ["M", "center of mass"],
  ["X", "targets"],
  ["D", "dark, light"],
  ["R", "reset the view"],
  ["Esc", "deselect"],
];

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "html") element.innerHTML = value;
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function icon(name) {
  return `<svg viewBox="0 0 24 24" class="icon">${ICONS[name]}</svg>`;
}

function button(name, title, onclick) {
  return make("button", { html: icon(name), title, ariaLabel: title, onclick, className: "tool" });
}

class Panels {
  constructor(viewer) {
    this.viewer = viewer;
    this.root = document.getElementById("ui");
    this.root.append(
      this.makeHead(),
      this.makeTools(),
      this.makeInfo(),
      this.makeBar(),
      this.makeHelp(),
      this.makeTip(),
    );
    if (viewer.content.loss && viewer.learning.length) this.root.append(this.makeLoss());
  }

  makeHead() {
    const { content, viewer } = { content: this.viewer.content, viewer: this.viewer };
    const seconds = viewer.fullDuration;
    const facts = [`${content.bodies.length} ${content.bodies.length === 1 ? "body" : "bodies"}`];
    if (seconds > 0) facts.push(`${shortNumber(seconds)} s`);
    this.subtitle = make("div", { className: "sub", textContent: facts.join(" · ") });
    const head = make(
      "div",
      { className: "card head" },
      make("h1", { textContent: content.title, title: content.title }),
      this.subtitle,
    );
    this.takeList = make("div", { className: "takes" });
    const compared = viewer.views.filter((view) => view.take.iteration === null);
    this.chips = new Map();
    if (compared.length > 1) {
      for (const view of compared) {
        const chip = make("button", {
          className: "chip",
          textContent: view.take.name,
          title: "show or hide",
          onclick: () => viewer.toggleTake(view.number),
        });
        if (view.ghost) chip.classList.add("ghost");
        this.chips.set(view.number, chip);
        this.takeList.append(chip);
      }
      this.side = make("button", {
        className: "chip wide",
        textContent: "side by side",
        title: "S",
        onclick: () => viewer.setLayout(!viewer.sideBySide),
      });
      this.takeList.append(this.side);
      head.append(this.takeList);
    }
    if (content.notes.length) {
      const list = make(
        "ul",
        { className: "notes" },
        ...content.notes.map((line) => make("li", { textContent: line })),
      );
      head.append(
        make("details", { open: content.notes.length < 6 }, make("summary", { textContent: "Result" }), list),
      );
    }
    return head;
  }

  makeTools() {
    const viewer = this.viewer,
      options = make("div", { className: "card options", hidden: true });
    const has = {
      contacts: viewer.content.live?.contacts || viewer.views.some((view) => view.take.contacts),
      joints: viewer.content.joints.length,
      targets: viewer.content.targets.length,
      com: viewer.overlays.weight > 0,
      ghosts: viewer.views.some((view) => view.ghost),
      colliders: viewer.content.drawables.some((d) => d.collider && !d.visual),
    };
    this.switches = {};
    for (const [name, text, key] of [
      ["ghosts", "Ghosts", "G"],
      ["contacts", "Contacts and forces", "V"],
      ["targets", "Targets", "X"],
      ["joints", "Joint axes", "J"],
      ["com", "Center of mass", "M"],
      ["colliders", "Colliders", "C"],
      ["shadows", "Shadows", ""],
    ]) {
      if (name !== "shadows" && !has[name]) continue;
      const box = make("input", { type: "checkbox", onchange: () => viewer.setOption(name, box.checked) });
      this.switches[name] = box;
      options.append(
        make(
          "label",
          {},
          box,
          make("span", { className: "switch" }),
          make("span", { textContent: text }),
          make("kbd", { textContent: key }),
        ),
      );
    }
    this.options = options;
    const tools = make(
      "div",
      { className: "card tools" },
      button("layers", "What is shown", () => (options.hidden = !options.hidden)),
      button("home", "Reset the view (R)", () => viewer.resetView()),
      button("theme", "Dark or light (D)", () => viewer.toggleTheme()),
      button("help", "Keys (?)", () => (this.help.hidden = !this.help.hidden)),
    );
    return make("div", { className: "corner" }, tools, options);
  }

  makeInfo() {
    this.info = make("div", { className: "card info", hidden: true });
    return this.info;
  }

  makeBar() {
    const viewer = this.viewer,
      player = viewer.player;
    this.playButton = button("play", "Play or pause (Space)", () => player.toggle());
    this.scrub = make("input", {
      type: "range",
      min: 0,
      max: 1,
      step: "any",
      value: 0,
      className: "scrub",
      ariaLabel: "time",
      oninput: () => {
        const share = Number(this.scrub.value);
        player.pause();
        player.seek(share * player.duration);
      },
    });
    this.clock = make("span", { className: "clock" });
    this.speed = make(
      "select",
      { title: "Speed", ariaLabel: "speed", onchange: () => viewer.setSpeed(Number(this.speed.value)) },
      ...SPEEDS.map((s) => make("option", { value: s, textContent: `${s}×` })),
    );
    this.loop = button("loop", "Loop (L)", () => viewer.setLoop(!player.loop));
    this.bar = make(
      "div",
      { className: "card bar" },
      button("back", "Back one frame (←)", () => player.stepBy(-1)),
      this.playButton,
      button("forward", "Forward one frame (→)", () => player.stepBy(1)),
      this.scrub,
      this.clock,
      this.speed,
      this.loop,
    );
    this.bar.hidden = viewer.fullDuration <= 0;
    return this.bar;
  }

  makeHelp() {
    const rows = KEYS.map(([key, text]) =>
      make("div", {}, make("kbd", { textContent: key }), make("span", { textContent: text })),
    );
    const mouse = [
      ["drag", "orbit"],
      ["right drag", "pan"],
      ["wheel", "zoom"],
      ["click", "select"],
      ["double click", "look at"],
    ].map(([key, text]) => make("div", {}, make("kbd", { textContent: key }), make("span", { textContent: text })));
    this.help = make(
      "div",
      { className: "card help", hidden: true, onclick: () => (this.help.hidden = true) },
      make("h2", { textContent: "Keys and mouse" }),
      make("div", { className: "keys" }, ...mouse, ...rows),
    );
    return this.help;
  }

  makeTip() {
    this.tip = make("div", { className: "tip", hidden: true });
    return this.tip;
  }

  makeLoss() {
    const viewer = this.viewer;
    this.learnButton = make("button", {
      className: "primary",
      textContent: "Watch it learn",
      onclick: () => viewer.watch(!viewer.watching),
    });
    this.learnLabel = make("span", { className: "sub" });
    const card = make(
      "div",
      { className: "card loss" },
      make("div", { className: "row" }, make("h2", { textContent: "Loss" }), this.learnLabel, this.learnButton),
    );
    this.lossPlot = new LossPlot(card, viewer.content.loss, viewer.learning, (number) => viewer.showIteration(number));
    return card;
  }

  // The card of a body or a shape that stands.
  showBody(picked) {
    this.plots = [];
    this.info.hidden = !picked;
    if (!picked) return;
    const { viewer } = this,
      { drawable, take: view } = picked;
    const moving = drawable.body >= 0 && drawable.body !== undefined;
    const body = moving ? viewer.content.bodies[drawable.body] : null;
    const rows = [];
    if (moving && body.path !== drawable.path) rows.push(["shape", drawable.path]);
    if (moving) rows.push(["mass", body.mass ? `${shortNumber(body.mass)} kg` : "from its shapes"]);
    if (viewer.views.length > 1) rows.push(["motion", view.take.name]);
    rows.push(["form", drawable.kind]);
    this.place = make("dd");
    this.info.replaceChildren(
      make(
        "div",
        { className: "row" },
        make("h2", { textContent: shortName(moving ? body.path : drawable.path) }),
        button("close", "Close (Esc)", () => viewer.select(null)),
      ),
      make("div", { className: "path", textContent: moving ? body.path : drawable.path }),
      make(
        "dl",
        {},
        ...rows.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]),
        make("dt", { textContent: "position" }),
        this.place,
      ),
    );
    if (!moving) {
      this.place.textContent = view.take.points[drawable.path] ? "changes its form" : "does not move";
      return;
    }
    this.followButton = make("button", {
      className: "chip",
      textContent: "follow",
      onclick: () => viewer.toggleFollow(),
    });
    this.trailButton = make("button", { className: "chip", textContent: "trail", onclick: () => viewer.toggleTrail() });
    this.info.append(make("div", { className: "takes" }, this.followButton, this.trailButton));
    if (view.take.frames > 1) this.addPlots(drawable.body, view);
    this.refreshBody();
  }

  addPlots(body, view) {
    const { viewer } = this,
      { take } = view,
      frames = [...take.times.keys()];
    const add = (title, curves, unit, limit) => {
      const legend = make(
        "div",
        { className: "legend" },
        make("b", { textContent: title }),
        ...curves.map((c) => make("span", { textContent: c.name, style: `color:${c.color}` })),
        make("i", { textContent: unit }),
      );
      this.info.append(legend);
      this.plots.push(
        new TimePlot(this.info, {
          times: take.times,
          curves,
          unit,
          limit,
          onSeek: (time) => {
            viewer.player.pause();
            viewer.player.seek(time);
          },
        }),
      );
    };
    for (const joint of viewer.content.joints) {
      if (joint.body !== body || joint.column === null || !take.values) continue;
      const turns = joint.kind === "hinge";
      const scale = turns ? 180 / Math.PI : 1;
      const values = frames.map((f) => take.values.at(f, joint.column) * scale);
      add(
        shortName(joint.path),
        [{ name: "", color: "var(--accent)", values }],
        turns ? "°" : "m",
        joint.limit?.map((bound) => (bound === null ? null : bound * scale)),
      );
    }
    const colors = ["#e5484d", "#30a46c", "#3e63dd"];
    add(
      "position",
      [0, 1, 2].map((a) => ({
        name: "xyz"[a],
        color: colors[a],
        values: frames.map((f) => take.positions.at(f, 3 * body + a)),
      })),
      "m",
    );
  }

  refreshBody() {
    const { viewer } = this;
    if (this.info.hidden || !viewer.selected || !(viewer.selected.drawable.body >= 0)) return;
    const place = viewer.selected.take.bodies[viewer.selected.drawable.body].position;
    this.place.textContent = `${place
      .toArray()
      .map((v) => v.toFixed(3))
      .join(", ")} m`;
    this.followButton.classList.toggle("on", viewer.followed !== null);
    this.trailButton.classList.toggle("on", viewer.overlays.trails.has(viewer.selected.drawable.body));
    for (const plot of this.plots) plot.update(Math.min(viewer.player.shownTime, viewer.selected.take.duration));
  }

  refresh() {
    const { viewer } = this,
      { player } = viewer;
    const time = player.shownTime;
    this.playButton.innerHTML = icon(player.playing ? "pause" : "play");
    this.scrub.value = player.duration ? time / player.duration : 0;
    this.scrub.style.setProperty("--done", `${100 * this.scrub.value}%`);
    this.clock.textContent = `${time.toFixed(2)} / ${player.duration.toFixed(2)} s`;
    this.speed.value = player.speed;
    this.loop.classList.toggle("on", player.loop);
    for (const [number, chip] of this.chips) chip.classList.toggle("on", viewer.views[number].root.visible);
    this.side?.classList.toggle("on", viewer.sideBySide);
    for (const [name, box] of Object.entries(this.switches)) box.checked = viewer.options[name];
    if (this.lossPlot) {
      const shown = viewer.iteration === null ? null : viewer.views[viewer.iteration].take;
      this.lossPlot.update(viewer.iteration);
      this.learnButton.textContent = viewer.watching ? "Stop" : "Watch it learn";
      this.learnLabel.textContent = shown
        ? `iteration ${shown.iteration} · ${shown.loss === null ? "failed" : shortNumber(shown.loss)}`
        : "";
    }
    this.refreshBody();
  }

  showTip(text, x, y) {
    this.tip.hidden = !text;
    if (!text) return;
    this.tip.textContent = text;
    const left = Math.min(x + 14, window.innerWidth - this.tip.offsetWidth - 8);
    this.tip.style.transform = `translate(${left}px, ${y + 16}px)`;
  }
}
