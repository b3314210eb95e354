"""Finding what lies hidden in a membrane from its echoes: a wave equation of your own on the checkpointed tape.

Nothing here knows about robots. The step below is two Warp kernels for u_tt = c² ∇²u - σ u_t on a grid; `Membrane`
tells the tape which arrays they read and write, and that is all it takes to differentiate thousands of steps in a
fixed memory budget.

Each world is one shot: a tap at one place, recorded by microphones along the rim. The unknown is the squared wave
speed c² of every cell, the same in all shots. Starting from a uniform membrane, gradient descent on the difference
between recorded and simulated traces reveals the soft patch (seismologists call this full-waveform inversion).

    python examples/wave_equation.py --output found.html
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import warp as wp
from PIL import Image

from warpsim.tape import Arena, Arrays, CheckpointedTape, Field
from warpsim.view.page import Page, SurfaceDrawable, Take, write_page

TIME_STEP = wp.constant(wp.float64(0.4))
"""In units of a cell's width divided by the largest wave speed; stable below 1/√2."""


@wp.kernel
def _accelerate(
    speed2: wp.array3d(dtype=wp.float64),
    damping: wp.array2d(dtype=wp.float64),
    source: wp.array(dtype=wp.vec2i),
    u: wp.array3d(dtype=wp.float64),
    v: wp.array3d(dtype=wp.float64),
    tap: wp.array(dtype=wp.float64),
    v_next: wp.array3d(dtype=wp.float64),
):
    """One cell: velocity after the step; the rim (u = 0) stays at rest."""
    w, i, j = wp.tid()
    if i == 0 or j == 0 or i == u.shape[1] - 1 or j == u.shape[2] - 1:
        v_next[w, i, j] = wp.float64(0.0)
        return
    laplacian = u[w, i - 1, j] + u[w, i + 1, j] + u[w, i, j - 1] + u[w, i, j + 1] - wp.float64(4.0) * u[w, i, j]
    push = speed2[w, i, j] * laplacian - damping[i, j] * v[w, i, j]
    if i == source[w][0] and j == source[w][1]:
        push += tap[w]
    v_next[w, i, j] = v[w, i, j] + TIME_STEP * push


@wp.kernel
def _move(u: wp.array3d(dtype=wp.float64), v_next: wp.array3d(dtype=wp.float64), u_next: wp.array3d(dtype=wp.float64)):
    w, i, j = wp.tid()
    u_next[w, i, j] = u[w, i, j] + TIME_STEP * v_next[w, i, j]


@wp.kernel
def _listen(
    microphones: wp.array(dtype=wp.vec2i),
    u: wp.array3d(dtype=wp.float64),
    heard: wp.array2d(dtype=wp.float64),
):
    w, m = wp.tid()
    heard[w, m] = u[w, microphones[m][0], microphones[m][1]]


class Membrane:
    """A square membrane per world, tapped at one cell and heard at several."""

    def __init__(self, speed2: np.ndarray, sources: np.ndarray, microphones: np.ndarray) -> None:
        """Makes the program.

        Args:
            speed2: (size, size) squared wave speeds.
            sources: (worlds, 2) tapped cell of each shot.
            microphones: (microphones, 2) cells whose displacement is recorded.
        """
        shots, size = len(sources), len(speed2)
        self.device, self.worlds = wp.get_device("cpu"), shots
        grid = (shots, size, size)
        self.state = (Field("u", grid, wp.float64), Field("v", grid, wp.float64))
        self.inputs = (Field("tap", (shots,), wp.float64, differentiable=False),)
        self.outputs = (Field("heard", (shots, len(microphones)), wp.float64),)
        # one copy per world: gradients are summed over worlds in a fixed order, afterwards
        copies = np.repeat(speed2[None], shots, axis=0)
        self.parameters = {"speed2": wp.array(copies, dtype=wp.float64, requires_grad=True)}
        rim = np.minimum.reduce([*np.indices((size, size)), *(size - 1 - np.indices((size, size)))])
        self._damping = wp.array(0.6 * np.clip(1.0 - rim / 6.0, 0.0, None) ** 2, dtype=wp.float64)
        self._sources = wp.array(sources, dtype=wp.vec2i)
        self._microphones = wp.array(microphones, dtype=wp.vec2i)

    def make_work(self, arena: Arena) -> None:
        """Needs no intermediates: each kernel writes the next state."""

    def step(
        self, state: Arrays, inputs: Arrays, work: None, next_state: Arrays, outputs: Arrays, *, tape: wp.Tape | None
    ) -> None:
        """One time step, symplectic Euler."""
        grid = state.u.shape
        speed2 = self.parameters["speed2"]
        arguments = [speed2, self._damping, self._sources, state.u, state.v, inputs.tap]
        wp.launch(_accelerate, dim=grid, inputs=arguments, outputs=[next_state.v])
        wp.launch(_move, dim=grid, inputs=[state.u, next_state.v], outputs=[next_state.u])
        wp.launch(_listen, dim=outputs.heard.shape, inputs=[self._microphones, next_state.u], outputs=[outputs.heard])


def soft_patch(size: int) -> np.ndarray:
    """The membrane to be found, (size, size): c² is 1, and 0.7 within a patch off the center."""
    i, j = np.indices((size, size)) / (size - 1)
    return 1.0 - 0.3 * np.exp(-((((i - 0.55) ** 2 + (j - 0.42) ** 2) / 0.12**2) ** 2))


def layout(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the membrane is tapped and where it is heard, just inside the absorbing rim."""
    near, far = 7, size - 8
    middle = size // 2
    sources = np.array([(near, middle), (far, middle), (middle, near), (middle, far)])
    along = np.linspace(near, far, 8).round().astype(int)
    sides = [np.stack([along, np.full(8, edge)], axis=1) for edge in (near, far)]
    return sources, np.concatenate(sides + [side[:, ::-1] for side in sides])


def ricker(steps: int, shots: int) -> np.ndarray:
    """The tap of every shot, (steps, shots): a short wave packet."""
    x = (np.arange(steps) - 40.0) / 11.0
    return np.repeat(((1.0 - 2.0 * x**2) * np.exp(-(x**2)))[:, None], shots, axis=1)


def invert(size: int = 40, steps: int = 260, iterations: int = 40, memory: str = "24MB") -> dict[str, np.ndarray]:
    """Recovers the membrane.

    Args:
        size: Cells per side.
        steps: Time steps per shot.
        iterations: Gradient steps.
        memory: For the tape.

    Returns:
        `truth` and `found` (size, size), the `course` (iterations + 1, size, size) to the latter, and the `misfit`
        after each iteration.
    """
    sources, microphones = layout(size)
    program = Membrane(soft_patch(size), sources, microphones)
    tape = CheckpointedTape(program, steps=steps, memory=memory)
    print(tape.plan)
    at_rest = {name: np.zeros((len(sources), size, size)) for name in ("u", "v")}
    tap = {"tap": ricker(steps, len(sources))}
    recorded = tape.forward(at_rest, tap, keep_outputs=["heard"], differentiate=False).outputs.heard.numpy().copy()

    speed2 = np.ones((size, size))
    interior = np.zeros((size, size), dtype=bool)
    interior[9:-9, 9:-9] = True
    mean, square = np.zeros_like(speed2), np.zeros_like(speed2)
    misfits, course = [], [speed2]
    for iteration in range(1, iterations + 1):
        program.parameters["speed2"].assign(np.repeat(speed2[None], len(sources), axis=0))
        run = tape.forward(at_rest, tap, keep_outputs=["heard"])
        error = run.outputs.heard.numpy() - recorded
        misfits.append(float(0.5 * (error**2).sum()))
        tape.backward(run, output_seeds={"heard": error})
        gradient = np.where(interior, program.parameters["speed2"].grad.numpy().sum(axis=0), 0.0)
        mean = 0.9 * mean + 0.1 * gradient  # Adam (Kingma and Ba, 2015)
        square = 0.99 * square + 0.01 * gradient**2
        step = (mean / (1 - 0.9**iteration)) / (np.sqrt(square / (1 - 0.99**iteration)) + 1e-12)
        speed2 = speed2 - 0.02 * step * interior
        course.append(speed2)
    return {"truth": soft_patch(size), "found": speed2, "course": np.array(course), "misfit": np.array(misfits)}


def save_picture(path: Path, truth: np.ndarray, found: np.ndarray) -> None:
    """Writes both membranes side by side, soft places dark."""
    shades = np.clip((np.hstack([truth, found]) - 0.6) / 0.5, 0.0, 1.0) * 255
    image = Image.fromarray(shades.astype(np.uint8))
    image.resize((image.width * 8, image.height * 8), Image.Resampling.NEAREST).save(path)


def save_page(path: Path, truth: np.ndarray, course: np.ndarray) -> None:
    """Writes a page: the squared wave speed as a height, found beside true, ten iterations a second."""
    size = len(truth)
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, size), np.linspace(-0.5, 0.5, size), indexing="ij")

    def heights(speed2: np.ndarray, aside: float) -> np.ndarray:
        z = 0.5 * speed2
        return np.stack([np.broadcast_to(x + aside, z.shape), np.broadcast_to(y, z.shape), z], -1)

    corner = (np.arange(size - 1)[:, None] * size + np.arange(size - 1)).reshape(-1, 1)
    faces = np.concatenate([corner + [0, size, 1], corner + [1, size, size + 1]])
    frames = len(course)
    points = {
        "/found": heights(course, -0.6).reshape(frames, -1, 3),
        "/truth": np.repeat(heights(truth, 0.6).reshape(1, -1, 3), frames, axis=0),
    }
    colors = {"/found": np.array([0.7, 0.3, 0.08]), "/truth": np.array([0.1, 0.3, 0.7])}
    surfaces = [SurfaceDrawable(name, faces, color) for name, color in colors.items()]
    none = np.zeros((frames, 0, 3)), np.zeros((frames, 0, 4))
    write_page(
        path,
        Page(
            "What lies hidden in a membrane",
            [],
            surfaces,
            [Take("search", np.arange(frames) / 10, *none, points=points)],
        ),
    )


def main() -> None:
    """Runs the inversion and checks that the patch was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--output", type=Path, help="page to write")
    arguments = parser.parse_args()
    result = invert(iterations=arguments.iterations)
    truth, found, misfit = result["truth"], result["found"], result["misfit"]
    print(f"misfit {misfit[0]:.3e} -> {misfit[-1]:.3e}")
    likeness = np.corrcoef(truth.ravel(), found.ravel())[0, 1]
    print(f"correlation of the found with the true membrane: {likeness:.3f}")
    if arguments.picture is not None:
        save_picture(arguments.picture, truth, found)
    if arguments.output is not None:
        save_page(arguments.output, truth, result["course"])
    assert misfit[-1] < 0.02 * misfit[0]
    assert likeness > 0.9


if __name__ == "__main__":
    main()
