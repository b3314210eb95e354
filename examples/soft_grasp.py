"""A gripper lifts a soft ball by 10 cm and holds it for a second at a wanted squeeze: torque and path are sought.

Two fingers hinge on a palm that a drive moves up and down. Their hinges have no drives: a torque presses them on the
ball, which gives way. Torque and height of the palm are chosen so that the ball is squeezed with 3 N and rises by
10 cm, by Newton's method with the derivatives of the whole motion: through gripper, contact and ball at once.

    python examples/soft_grasp.py [-o grasp.html]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

import warpsim as ws
from warpsim.io.usd import author
from warpsim.view.page import write_page

RATE = 100
CLOSE, LIFT, HOLD = 30, 60, 100
"""Steps; the last are one second."""
STEPS = CLOSE + LIFT + HOLD
RADIUS, HINGE, APART = 0.04, 0.2, 0.06
"""m: of the ball; height of the hinges; their distance from the middle."""
RISE, SQUEEZE = 0.1, 3.0
"""m, N."""


def write_scene(path: Path) -> None:
    """A ball on the ground between two fingers that hang from a palm."""
    stage = author.new_stage(documentation="A gripper with two fingers over a soft ball.")
    author.physics_scene(stage, steps_per_second=RATE)
    world = author.world(stage)
    author.ground(world, color=(0.85, 0.85, 0.88))
    rubber = author.material(world, "Rubber", friction=0.9)
    palm = author.body(world, "Palm", position=(0, 0, HINGE), mass=0.5, articulation_root=True)
    author.box(palm, "Palm", (0.08, 0.03, 0.01), position=(0, 0, 0.015), collides=False)
    author.prismatic(world, "Lift", None, palm, "Z", drive={"stiffness": 4000.0, "damping": 120.0})
    for name, side in (("Left", -1.0), ("Right", 1.0)):
        finger = author.body(world, name, position=(side * APART, 0, HINGE))
        shape = {"position": (0, 0, -0.09), "density": 1500, "material": rubber}
        author.box(finger, "Pad", (0.006, 0.025, 0.085), color=(0.35, 0.4, 0.5), **shape)
        hinge = {"limits": (-40, 40), "attributes": {"mjc:damping": 0.02}}
        author.revolute(world, f"{name}Hinge", palm, finger, (0, side, 0), **hinge)
    author.soft(
        world,
        "Ball",
        ball=RADIUS,
        cells=3,
        position=(0, 0, RADIUS),
        young=2e4,
        density=300,
        damping=0.02,
        friction=0.9,
        color=(0.85, 0.35, 0.3),
    )
    author.save(stage, path)


def simulator(path: Path) -> ws.Simulator:
    """Its steps take torques and the palm's height."""
    return ws.Simulator(path, controls=("joint_force", "drive_target"))


def controls(torque: torch.Tensor, height: torch.Tensor) -> dict[str, torch.Tensor]:
    """Torques of the hinges, which grow while the fingers close, and the smooth path of the palm."""
    time = torch.arange(1, STEPS + 1, dtype=torch.float64)
    grip = (time / CLOSE).clamp_max(1.0)
    share = ((time - CLOSE) / LIFT).clamp(0.0, 1.0)
    path = (3.0 - 2.0 * share) * share**2
    force = torch.stack([torch.zeros_like(grip), torque * grip, torque * grip], -1)
    return {"joint_force": force[:, None], "drive_target": (height * path)[:, None, None]}


def measures(made: ws.Trajectory) -> torch.Tensor:
    """(2,) N and m: mean squeeze while the ball is held, and how far it has risen at last."""
    sideways = made["ball.contact_force"][-HOLD:, 0, :, 0].abs().sum(-1)
    rise = made["ball.center"][-1, 0, 0, 2] - made["ball.center"][0, 0, 0, 2]
    return torch.stack([0.5 * sideways.mean(), rise])


def grasp(sim: ws.Simulator, iterations: int) -> tuple[ws.Trajectory, torch.Tensor]:
    """The motion found, and its squeeze and rise."""
    found, wanted = torch.tensor([0.25, 0.09], dtype=torch.float64), torch.tensor([SQUEEZE, RISE], dtype=torch.float64)

    def run(values: torch.Tensor) -> ws.Trajectory:
        outputs = ("body_position", "body_rotation", "ball.contact_force", "ball.center", "ball.solver_status")
        return sim.rollout(STEPS, controls(values[0], values[1]), outputs=outputs)

    for k in range(iterations):
        values = found.clone().requires_grad_()
        results = measures(run(values))
        rows = [torch.autograd.grad(r, values, retain_graph=True)[0] for r in results]
        results = results.detach()
        print(f"{k}: squeeze {float(results[0]):.3f} N, rise {1e3 * float(results[1]):.2f} mm")
        found = found - torch.linalg.solve(torch.stack(rows), results - wanted)
    with torch.no_grad():
        made = run(found)
        return made, measures(made)


def main(output: str | None = None, iterations: int = 3) -> None:
    """Seeks the grasp, checks rise, squeeze and hold, and writes a page."""
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder) / "grasp.usda")
        made, (squeeze, rise) = grasp(simulator(Path(folder) / "grasp.usda"), iterations)
        height = made["ball.center"][-HOLD:, 0, 0, 2]
        slip = float(height.max() - height.min())
        print(f"squeeze {float(squeeze):.3f} N, rise {1e3 * float(rise):.2f} mm, within {1e3 * slip:.3f} mm for 1 s")
        assert int(made["ball.solver_status"].abs().max()) == 0, "a step did not converge"
        assert abs(float(squeeze) - SQUEEZE) < 0.02 * SQUEEZE, f"the ball is squeezed with {float(squeeze):.3f} N"
        assert abs(float(rise) - RISE) < 1e-3, f"the ball rises by {float(rise):.4f} m"
        assert slip < 2e-3, f"the ball moves by {slip:.4f} m while it is held"
        if output is not None:
            print(f"written to {write_page(Path(output), made.page(title='A soft ball, lifted and held'))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="page to write")
    main(parser.parse_args().output)
