// Numbers out of the page: base64 → deflate → header and series. `warpsim/view/page/pack.py` writes what is read here.

async function inflate(id) {
  const element = document.getElementById(id);
  const raw = atob(element.textContent.trim());
  element.textContent = "";
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A copy, since parts do not begin where their type could be read in place.
function slice(data, Type, at, count) {
  return new Type(data.slice(at, at + count * Type.BYTES_PER_ELEMENT).buffer);
}

// Values over time: 16 bits each within a range, stored as zigzag second differences, low bytes before high bytes.
class Series {
  constructor(info, data) {
    const { frames, channels, ranges } = info;
    this.frames = frames;
    this.channels = channels;
    this.ranges = ranges;
    this.low = slice(data, Float64Array, info.low, ranges);
    this.step = slice(data, Float64Array, info.high, ranges).map((high, i) => (high - this.low[i]) / 65535);
    const size = frames * channels;
    const levels = new Uint16Array(size); // frame by frame, unlike the stored order
    for (let c = 0; c < channels; c++) {
      let value = 0,
        slope = 0;
      for (let f = 0; f < frames; f++) {
        const at = info.at + c * frames + f;
        const zigzag = data[at] | (data[at + size] << 8);
        const difference = (zigzag >> 1) ^ -(zigzag & 1);
        if (f === 0) value = difference;
        else {
          slope = f === 1 ? difference : slope + difference;
          value += slope;
        }
        levels[f * channels + c] = value; // modulo 2¹⁶
      }
    }
    this.levels = levels;
  }

  at(frame, channel) {
    const range = channel % this.ranges;
    return this.low[range] + this.step[range] * this.levels[frame * this.channels + channel];
  }
}

function unpack(block) {
  const length = new DataView(block.buffer, block.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(block.subarray(4, 4 + length)));
  const data = block.subarray(4 + length);
  const series = (info) => (info ? new Series(info, data) : null);
  for (const take of header.takes) {
    take.times = slice(data, Float64Array, take.times, take.frames);
    for (const name of ["positions", "rotations", "values"]) take[name] = series(take[name]);
    for (const path of Object.keys(take.points)) take.points[path] = series(take.points[path]);
    if (take.contacts) {
      const counts = slice(data, Uint16Array, take.contacts.counts, take.frames);
      const starts = new Uint32Array(take.frames + 1);
      for (let f = 0; f < take.frames; f++) starts[f + 1] = starts[f] + counts[f];
      Object.assign(take.contacts, {
        starts,
        points: series(take.contacts.points),
        forces: series(take.contacts.forces),
      });
    }
  }
  for (const drawable of header.drawables)
    if (drawable.kind === "surface") drawable.indices = slice(data, Int32Array, drawable.at, 3 * drawable.faces);
  header.meshes = header.meshes.map((info) => unpackMesh(info, data));
  return header;
}

// Positions (two planes of bytes, axis by axis), octahedral normals, differences of indices (four planes).
function unpackMesh(info, data) {
  const n = info.vertices,
    m = 3 * info.faces;
  const position = new Float32Array(3 * n),
    normal = new Float32Array(3 * n),
    index = new Uint32Array(m);
  const normals = info.at + 6 * n,
    indices = normals + 2 * n;
  for (let v = 0; v < n; v++) {
    for (let a = 0; a < 3; a++) {
      const level = data[info.at + a * n + v] | (data[info.at + 3 * n + a * n + v] << 8);
      position[3 * v + a] = info.low[a] + ((info.high[a] - info.low[a]) * level) / 65535;
    }
    let x = (data[normals + v] / 255) * 2 - 1,
      y = (data[normals + n + v] / 255) * 2 - 1;
    const z = 1 - Math.abs(x) - Math.abs(y);
    if (z < 0) [x, y] = [(1 - Math.abs(y)) * (x < 0 ? -1 : 1), (1 - Math.abs(x)) * (y < 0 ? -1 : 1)];
    const length = Math.hypot(x, y, z);
    normal.set([x / length, y / length, z / length], 3 * v);
  }
  let uv = null;
  if (info.uv) {
    const [low, high] = info.uv,
      at = indices + 4 * m;
    uv = new Float32Array(2 * n);
    for (let v = 0; v < n; v++)
      for (let a = 0; a < 2; a++)
        uv[2 * v + a] =
          low[a] + ((high[a] - low[a]) * (data[at + a * n + v] | (data[at + 2 * n + a * n + v] << 8))) / 65535;
  }
  let value = 0;
  for (let i = 0; i < m; i++) {
    const zigzag =
      data[indices + i] |
      (data[indices + m + i] << 8) |
      (data[indices + 2 * m + i] << 16) |
      (data[indices + 3 * m + i] << 24);
    value += (zigzag >>> 1) ^ -(zigzag & 1);
    index[i] = value;
  }
  return { position, normal, index, uv };
}
