// Time: playing, scrubbing, stepping.

class Player {
  constructor(onChange) {
    Object.assign(this, {
      time: 0,
      duration: 0,
      playing: false,
      speed: 1,
      loop: true,
      step: 1 / 60,
      onChange,
      onEnd: null,
    });
  }

  seek(time) {
    this.time = Math.min(Math.max(time, 0), this.duration);
    this.onChange();
  }

  play() {
    if (this.duration <= 0) return;
    if (this.time >= this.duration) this.time = 0;
    this.playing = true;
    this.onChange();
  }

  pause() {
    this.playing = false;
    this.onChange();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  // `frames` of the shown motion forward or back; lands on recorded frames.
  stepBy(frames) {
    this.pause();
    const at = this.times ?? [0];
    let nearest = 0;
    for (let k = 0; k < at.length; k++)
      if (Math.abs(at[k] - at[0] - this.time) < Math.abs(at[nearest] - at[0] - this.time)) nearest = k;
    const frame = Math.min(Math.max(nearest + frames, 0), at.length - 1);
    this.seek(at[frame] - at[0]);
  }

  advance(seconds) {
    if (!this.playing) return;
    this.time += seconds * this.speed;
    if (this.time >= this.duration) {
      if (this.onEnd?.()) return;
      if (this.loop && this.time >= this.duration + 0.6 * this.speed)
        this.time = 0; // after a rest at the end
      else if (!this.loop) {
        this.time = this.duration;
        this.playing = false;
      }
    }
    this.onChange();
  }

  get shownTime() {
    return Math.min(this.time, this.duration);
  }
}

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
