"""Actuator kernels of scenes with neither muscles nor motors."""

from __future__ import annotations

from warpsim.rigid.dynamics.actuator_kernels import joint_actuators, site_actuators

joint_actuator_kernel = joint_actuators(with_muscles=False, module=__name__)
site_actuator_kernel = site_actuators(with_muscles=False, module=__name__)
