"""Parameters by USD attribute: handles on values of the stage, in its own units, that physics can be differentiated by.

The reader itself is the map from an attribute to the numbers physics reads. `scene_map` reads the stage with some
values replaced, in double precision; `slopes` differences it, and tells affine maps from others; `feed` puts both into
torch's graph; `finder` makes handles, or says why an attribute cannot matter.
"""
