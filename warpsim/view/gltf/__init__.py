"""A scene and its motion as binary glTF (.glb), for slides and for viewers that read no USD."""

from warpsim.view.gltf.write import glb_bytes, write_glb

__all__ = ["glb_bytes", "write_glb"]
