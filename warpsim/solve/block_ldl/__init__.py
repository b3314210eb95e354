"""Block-sparse LDLᵀ for symmetric matrices of 3 × 3 blocks, whose pattern never changes: cloth, soft bodies, cables.

`pattern` ▸ `dissection` and `minimum_degree` (order) ▸ `fronts` (elimination tree, supernodes) ▸ `plan`, all once, on
the host; then `numeric`, native code on one world, and `block_ldl`, the arrays and launches around it.
"""
