"""A scene as MJCF with the masses and contact parameters that are simulated, whatever they were derived from."""

from __future__ import annotations

from warpsim.io.mjcf_export import Inertial, mjcf_of_scene
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.model.model import Model
from warpsim.scene import Scene
from warpsim.scene.constraints import ContactOverride
from warpsim.scene.ledger import LedgerEntry


def scene_to_mjcf(scene: Scene) -> tuple[str, list[LedgerEntry]]:
    """MJCF text of a scene, and what it could not hold; see `mjcf_of_scene`."""
    model = compile_model(scene)
    Derivation(model).run()
    mass, com, inertia = (x.numpy()[0] for x in (model.body.mass, model.body.com, model.body.inertia))
    names = model.layout.body_names
    inertials = {names[b]: Inertial(float(mass[b]), com[b], inertia[b]) for b in range(1, model.nbody)}
    return mjcf_of_scene(scene, inertials, _pairs(model) if _mixes_otherwise(scene) else None)


def _mixes_otherwise(scene: Scene) -> bool:
    """Whether MuJoCo would find other pairs or parameters of contacts than are simulated."""
    colliding = [shape for shape in scene.shapes if shape.collides]
    return bool(scene.excluded_pairs) or any(
        shape.restitution > 0 or shape.friction_combine != "max" for shape in colliding
    )


def _pairs(model: Model) -> list[ContactOverride]:
    """All pairs that collide, with what their shapes' parameters were mixed to."""
    p, names = model.pair, model.layout.shape_names
    values = (p.friction, p.solref, p.solref_friction, p.solimp, p.margin)
    friction, solref, solref_friction, solimp, margin = (x.numpy()[0] for x in values)
    condim = model.contact_mixing.condim.numpy()
    return [
        ContactOverride(
            names[a],
            names[b],
            condim=int(condim[k]),
            friction=friction[k],
            solref=solref[k],
            solref_friction=solref_friction[k],
            solimp=solimp[k],
            margin=float(margin[k]),
        )
        for k, (a, b) in enumerate(model.pair_table.pair_shapes.numpy().reshape(-1, 2))
    ]
