// Loads the page's parts, and hands out what scripts around it may use.

// What a script around the page may use.
function handleOf(viewer) {
  const { player, stage } = viewer;
  return {
    content: viewer.content,
    get time() {
      return player.shownTime;
    },
    get playing() {
      return player.playing;
    },
    get duration() {
      return player.duration;
    },
    play: () => player.play(),
    pause: () => player.pause(),
    seek: (time) => {
      player.pause();
      player.seek(time);
    },
    shown: () => viewer.shown.map((view) => view.take.name),
    setOption: (name, on) => viewer.setOption(name, on),
    setTheme: (name) => stage.setTheme(name),
    setLayout: (sideBySide) => viewer.setLayout(sideBySide),
    showIteration: (iteration) =>
      viewer.showIteration(
        iteration === null ? null : viewer.learning.find((view) => view.take.iteration === iteration).number,
      ),
    setCamera: (position, target) => {
      stage.camera.position.set(...position);
      stage.controls.target.set(...target);
      stage.controls.update();
      stage.camera.updateMatrixWorld();
      stage.dirty = true;
    },
    camera: () => [stage.camera.position.toArray(), stage.controls.target.toArray(), stage.camera.aspect],
    project: (point) => {
      const seen = new THREE.Vector3(...point).project(stage.camera);
      return [((seen.x + 1) / 2) * stage.element.clientWidth, ((1 - seen.y) / 2) * stage.element.clientHeight];
    },
    pick: (x, y) => viewer.pathOf(viewer.pick(x, y)),
    select: (path) => viewer.selectPath(path),
    selected: () => viewer.pathOf(viewer.selected),
    follow: () => viewer.toggleFollow(),
    trail: () => viewer.toggleTrail(),
    live: () => {
      const { frames, time, state, paused, iterations } = viewer.live;
      return { frames, time, state, paused, iterations };
    },
    contacts: () => viewer.overlays.contactCount ?? 0,
    pose: (take, body, time) => {
      const p = new THREE.Vector3(),
        q = new THREE.Quaternion();
      viewer.views[take].pose(body, time, p, q);
      return [...p.toArray(), q.w, q.x, q.y, q.z];
    },
    draw: () => {
      stage.controls.update();
      stage.render();
      viewer.overlays.placeLabels();
    },
  };
}

// Wishes in the address: #theme=dark&t=0.5&play=0&ui=0
function wishes() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

async function start() {
  const three = document.createElement("script");
  three.textContent = new TextDecoder().decode(await inflate("three"));
  document.head.appendChild(three);
  const content = unpack(await inflate("data"));
  await loadTextures(content);
  const wish = wishes();
  document.getElementById("ui").hidden = wish.ui === "0";
  const viewer = new Viewer(content);
  const dark = window.matchMedia?.("(prefers-color-scheme: dark)").matches;
  viewer.stage.setTheme(wish.theme ?? (dark ? "dark" : "light"));
  if (wish.t !== undefined) viewer.player.seek(Number(wish.t));
  if (wish.play !== "0") viewer.player.play();
  viewer.run();
  viewer.stage.render();
  document.getElementById("busy").remove();
  return handleOf(viewer);
}

window.warpsim = start();
window.warpsim.catch((error) => {
  const text = /WebGL/i.test(String(error))
    ? "This browser has no WebGL; switch it on, or open the page in another one."
    : `The page cannot be shown: ${error.message}`;
  document.getElementById("busy").replaceChildren(document.createTextNode(text));
  console.error(error);
});
