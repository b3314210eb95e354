"""Collision: signed distances, contact generation and distance queries, all differentiable.

Where to look:

- `pairs` which shapes may touch; `contacts` the three stages (search, pack, rebuild) and how to call them; `query`
  distances between shapes and from points, at any distance; `ray_cast` rays; `groups` which kernels serve which pair
  of kinds.
- Closed forms: `witness`, `plane_contact`, `round_contact`, `box_contact`, `box_box`.
- General convex pairs: `support`, `gjk`, `epa` search, `convex_feature`, `convex_contact` rebuild; hulls from `hulls`.
  Where they lie on one another by faces and edges: `patch`, `patch_features`, `patch_search`, `patch_contact`.
- Meshes: `mesh_audit`, `mesh_sdf`, `grid`, `mesh_points`, and `field_contact`; `sdf` has the primitives' distances.
- Convex pieces of meshes: `decomposition`, `convex_cells`. A union of them is several shapes on one body, which never
  collide with each other and answer under one name (`warpsim.scene.pieces`).
"""
