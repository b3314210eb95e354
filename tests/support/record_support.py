"""Small scenes whose runs are recorded."""

from __future__ import annotations

import numpy as np

from warpsim.scene import Body, Joint, Options, Scene, Shape


def ball(**options) -> Scene:
    """A ball that falls on the floor."""
    scene = Scene(options=Options(**options))
    scene.shapes.append(Shape("floor", "plane"))
    scene.bodies.append(Body("ball", position=np.array([0.0, 0.0, 0.15])))
    scene.joints.append(Joint("ball", "free", "ball"))
    scene.shapes.append(Shape("ball", "sphere", "ball", size=np.array([0.1, 0.0, 0.0])))
    return scene
