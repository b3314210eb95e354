"""Robots whose values MuJoCo knows and a fit does not: a quadruped that slides, a forced double pendulum."""

from __future__ import annotations

import mujoco
import numpy as np

import warpsim as ws
from tools.bench.identification import REALITY, START, STEP, experiment
from warpsim.identification import Recording

FEET = tuple(f"foot{leg}" for leg in range(4))
CONTACT = dict(friction=0.45, period=0.04, ratio=0.7)
GUESSED_CONTACT = dict(friction=0.8, period=0.02, ratio=1.0)
CONTACT_PARAMETERS = [
    ws.Parameter(tuple(f"shape.friction:{foot}" for foot in FEET), [0], lower=0.05, upper=2.0, scale=0.05),
    ws.Parameter(tuple(f"shape.solref:{foot}" for foot in FEET), [0], lower=0.005, upper=0.2, scale=0.002),
    ws.Parameter(tuple(f"shape.solref:{foot}" for foot in FEET), [1], lower=0.1, upper=3.0, scale=0.1),
]
BASE_NOISE = {"body_position:trunk": 1e-3, "body_rotation:trunk": 5e-3}
PENDULUM_PARAMETERS = [
    ws.Parameter(f"{array}:{item}", lower=0.0, upper=10.0)
    for array, items in (
        ("body.mass", ("upper", "fore")),
        ("joint.damping", ("shoulder", "elbow")),
        ("limit.friction_loss", ("shoulder", "elbow")),
    )
    for item in items
]
"""Of `tools.bench.identification.REALITY`, in the order of its values."""


def quadruped(*, friction: float, period: float, ratio: float) -> str:
    """MJCF of a trunk on four legs of two servos each, whose feet have these contact parameters."""
    legs, servos = [], []
    for leg, (x, y) in enumerate(((0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1))):
        legs.append(
            f'<body name="thigh{leg}" pos="{x} {y} 0"><joint name="hip{leg}" axis="0 1 0" damping=".5" armature=".01"/>'
            '<inertial pos="0 0 -.1" mass=".8" diaginertia=".003 .003 .0005"/>'
            f'<body name="calf{leg}" pos="0 0 -.2"><joint name="knee{leg}" axis="0 1 0" damping=".5" armature=".01"/>'
            '<inertial pos="0 0 -.1" mass=".2" diaginertia=".001 .001 .0001"/>'
            f'<geom name="foot{leg}" type="sphere" size=".022" pos="0 0 -.2" mass="0" priority="1" '
            f'friction="{friction} .005 .0001" solref="{period} {ratio}"/></body></body>'
        )
        servos += [f'<position joint="{name}{leg}" kp="60" kv="2" ctrlrange="-3 3"/>' for name in ("hip", "knee")]
    return (
        '<mujoco model="quadruped"><option timestep="0.002" cone="elliptic" integrator="implicitfast"/><worldbody>'
        '<geom name="ground" type="plane" size="5 5 .1"/><body name="trunk" pos="0 0 .4"><freejoint name="free"/>'
        f'<inertial pos="0 0 0" mass="8" diaginertia=".06 .15 .17"/>{"".join(legs)}</body></worldbody>'
        f"<actuator>{''.join(servos)}</actuator></mujoco>"
    )


def shoves(count: int, seed: int, rows: int = 30) -> list[Recording]:
    """A standing robot that is shoved sideways and down, measured by the trunk's pose alone at 100 Hz."""
    model = mujoco.MjModel.from_xml_string(quadruped(**CONTACT))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    stance = np.tile([0.5, -1.0], 4)
    made = []
    for k in range(count):
        mujoco.mj_resetData(model, data)
        data.qpos[:] = [0, 0, 0.372, 1, 0, 0, 0, *stance]
        data.qvel[:6] = [*rng.uniform(0.5, 1.2, 2) * rng.choice([-1, 1], 2), -0.4, *rng.normal(0, 0.1, 3)]
        q0, qd0 = data.qpos.copy(), data.qvel.copy()
        position, rotation = np.full((rows, 3), np.nan), np.full((rows, 4), np.nan)
        data.ctrl[:] = stance
        for row in range(rows):
            position[row], rotation[row] = data.qpos[:3], data.qpos[3:7]
            mujoco.mj_step(model, data, 5)
        position += rng.normal(0, BASE_NOISE["body_position:trunk"], position.shape)
        rotation += rng.normal(0, BASE_NOISE["body_rotation:trunk"] / 2, rotation.shape)
        rotation /= np.linalg.norm(rotation, axis=-1, keepdims=True)
        channels = {"body_position:trunk": position, "body_rotation:trunk": rotation}
        held = np.broadcast_to(stance, (rows, 8))
        made.append(Recording(f"shove {k}", 0.01 * np.arange(rows), channels, held, q0, qd0))
    return made


def forced_swings(count: int, seed: int, steps: int = 500, noise: float = 0.005) -> list[Recording]:
    """A double pendulum under random smooth torques, measured at each step."""
    rng = np.random.default_rng([seed, 7])
    made = []
    for k in range(count):
        torques, angles = experiment(steps, 100 * seed + k)
        noisy = angles + rng.normal(0, noise, angles.shape)
        held = np.concatenate([torques, torques[-1:]])
        times = STEP * np.arange(steps + 1)
        made.append(Recording(f"swing {k}", times, {"q": noisy}, held, np.array(START), np.zeros(2)))
    return made


_VALUES = {'mass="1.2"': 1.2, 'mass=".7"': 0.7, ' damping=".08"': 0.08, ' damping=".04"': 0.04}
_VALUES |= {'frictionloss=".15"': 0.15, 'frictionloss=".06"': 0.06}


def pendulum_truth() -> np.ndarray:
    """(6,) in the order of `PENDULUM_PARAMETERS`."""
    return np.array(list(_VALUES.values()))


def pendulum_guess(factor: float, seed: int) -> str:
    """MJCF of the double pendulum with every value too large or too small by a factor."""
    text = REALITY
    for written, sign in zip(_VALUES, np.random.default_rng(seed).choice([-1, 1], 6), strict=True):
        name = written.partition("=")[0]
        assert text.count(written) == 1
        text = text.replace(written, f'{name}="{_VALUES[written] * factor ** int(sign)}"')
    return text
