// Small line plots as SVG.

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, parent) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  parent?.appendChild(element);
  return element;
}

// Curves over time with a cursor; `curves` are { name, color, values }, all over the same `times`.
class TimePlot {
  constructor(parent, { times, curves, unit, onSeek, limit }) {
    const [width, height, left, bottom] = [268, 92, 38, 4];
    Object.assign(this, { times, curves, unit, width, height, left });
    this.root = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot" }, parent);
    let [low, high] = [Infinity, -Infinity];
    for (const { values } of curves)
      for (const value of values) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
    const pad = 0.08 * (high - low);
    [low, high] = [low - pad, high + pad];
    const end = times[times.length - 1] - times[0] || 1;
    this.x = (time) => left + ((time - times[0]) / end) * (width - left - 4);
    this.y = (value) => height - bottom - ((value - low) / (high - low)) * (height - bottom - 6);
    for (const mark of ticks(low, high, 3)) {
      svg("line", { x1: left, x2: width, y1: this.y(mark), y2: this.y(mark), class: "grid" }, this.root);
      svg("text", { x: left - 5, y: this.y(mark) + 3, class: "tick", "text-anchor": "end" }, this.root).textContent =
        shortNumber(mark);
    }
    for (const bound of limit ?? [])
      if (bound !== null && bound > low && bound < high)
        svg("line", { x1: left, x2: width, y1: this.y(bound), y2: this.y(bound), class: "limit" }, this.root);
    const every = Math.max(1, Math.floor(times.length / 400));
    for (const { values, color } of curves) {
      let path = "";
      for (let i = 0; i < times.length; i += every)
        path += `${path ? "L" : "M"}${this.x(times[i]).toFixed(1)} ${this.y(values[i]).toFixed(1)}`;
      svg("path", { d: path, class: "curve", stroke: color }, this.root);
    }
    this.cursor = svg("line", { y1: 0, y2: height, class: "cursor" }, this.root);
    const seek = (event) => {
      const box = this.root.getBoundingClientRect();
      const share = (((event.clientX - box.left) / box.width) * width - left) / (width - left - 4);
      onSeek(Math.min(Math.max(share, 0), 1) * end);
    };
    this.root.addEventListener("pointerdown", (event) => {
      this.root.setPointerCapture(event.pointerId);
      seek(event);
    });
    this.root.addEventListener("pointermove", (event) => event.buttons && seek(event));
  }

  update(time) {
    const at = this.x(this.times[0] + time);
    this.cursor.setAttribute("x1", at);
    this.cursor.setAttribute("x2", at);
  }
}

// Loss over iterations, logarithmic where it can be; dots are iterations that can be looked at.
class LossPlot {
  constructor(parent, loss, takes, onPick) {
    const [width, height, left, bottom] = [300, 132, 44, 18];
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot" }, parent);
    const seen = loss.iterations.map((i, k) => [i, loss.losses[k]]).filter(([, value]) => value !== null);
    const logarithmic = seen.every(([, value]) => value > 0);
    const scale = (value) => (logarithmic ? Math.log10(Math.max(value, 1e-300)) : value);
    let low = Math.min(...seen.map(([, value]) => scale(value))),
      high = Math.max(...seen.map(([, value]) => scale(value)));
    if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
    const last = Math.max(1, ...seen.map(([i]) => i));
    const x = (i) => left + (i / last) * (width - left - 12);
    const y = (value) => 8 + ((high - scale(value)) / (high - low)) * (height - bottom - 16);
    for (const mark of ticks(low, high, 4)) {
      const at = 8 + ((high - mark) / (high - low)) * (height - bottom - 16);
      svg("line", { x1: left, x2: width, y1: at, y2: at, class: "grid" }, root);
      svg("text", { x: left - 5, y: at + 3, class: "tick", "text-anchor": "end" }, root).textContent = logarithmic
        ? Number.isInteger(mark)
          ? `1e${mark}`
          : shortNumber(10 ** mark)
        : shortNumber(mark);
    }
    for (const mark of [...new Set(ticks(0, last, 5).map(Math.round))])
      svg("text", { x: x(mark), y: height - 4, class: "tick", "text-anchor": "middle" }, root).textContent = mark;
    svg(
      "path",
      {
        d: seen.map(([i, value], k) => `${k ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`).join(""),
        class: "curve",
        stroke: "var(--accent)",
      },
      root,
    );
    this.dots = new Map();
    for (const { take, number } of takes) {
      if (take.loss === null) continue;
      const dot = svg(
        "circle",
        { cx: x(take.iteration), cy: y(Math.min(take.loss, seen[0][1])), r: 4, class: "dot", tabindex: 0 },
        root,
      );
      svg("title", {}, dot).textContent = `iteration ${take.iteration}: loss ${shortNumber(take.loss)}`;
      dot.addEventListener("click", () => onPick(number));
      this.dots.set(number, dot);
    }
  }

  update(number) {
    for (const [each, dot] of this.dots) dot.classList.toggle("on", each === number);
  }
}

function ticks(low, high, count) {
  const step =
    [1, 2, 5, 10]
      .map((k) => k * 10 ** Math.floor(Math.log10((high - low) / count)))
      .find((s) => (high - low) / s <= count + 0.5) ?? high - low;
  const marks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
    marks.push(Number((k * step).toPrecision(12)));
  return marks;
}

function shortNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e4 || size < 1e-3 ? value.toExponential(1).replace("e+", "e") : String(Number(value.toPrecision(3)));
}
