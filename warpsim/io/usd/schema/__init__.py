"""Schemas of our own for USD, without code: types of task prims that plain USD tools can open, check and edit.

`schema.usda` is the source; `tools/make_schema.py` makes the two files USD loads from it.
"""

from pathlib import Path

from pxr import Plug

FOLDER = Path(__file__).parent


def register() -> None:
    """Tells USD of the schemas.

    USD settles its list of types when the first stage is opened. Registered later than that, the types are unknown to
    it: such a stage can still be read by warpsim, which does not rely on fallback values, but is not validated.
    """
    Plug.Registry().RegisterPlugins(str(FOLDER))
