"""Questions about a model at a state: poses, velocities, Jacobians, momentum, energy, mass matrix, bias force.

    energy = query.kinetic_energy(model, state)                    # (W,) on the device

Every function takes the model (its derived parameters filled) and a state (`q`, `qd`: (W, n) device arrays) and
allocates what it returns. To ask several things of one state, evaluate its motion once and pass it on:

    motion = query.evaluate(model, state)
    momentum = query.momentum(model, state, motion=motion)

Called while a `wp.Tape` records, with a state or parameters that carry gradients, all but `mass_matrix` can be
differentiated.
"""

from warpsim.rigid.query.energy import kinetic_energy, potential_energy
from warpsim.rigid.query.jacobians import body_jacobian, dof_twists, point_velocity
from warpsim.rigid.query.joint_space import bias_force, mass_matrix
from warpsim.rigid.query.momentum import center_of_mass, momentum
from warpsim.rigid.query.motion import body_poses, evaluate, make_state

__all__ = [
    "bias_force",
    "body_jacobian",
    "body_poses",
    "center_of_mass",
    "dof_twists",
    "evaluate",
    "kinetic_energy",
    "make_state",
    "mass_matrix",
    "momentum",
    "point_velocity",
    "potential_energy",
]
