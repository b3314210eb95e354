"""Small MJCF texts, each with one feature added to the same two bodies."""

from __future__ import annotations


def model_of(body: str = "", **sections: str) -> str:
    """MJCF text with a hinge 'h' and a slide 'x' on 'arm', and whatever else is asked for."""
    rest = "".join(f"<{tag}>{text}</{tag}>" for tag, text in sections.items() if tag not in ("option", "world"))
    return f"""<mujoco>
      {sections.get("option", "")}
      <worldbody>
        <body name="arm"><joint name="h"/><geom name="g" size=".1"/><site name="s"/>{body}
          <body name="hand" pos="0 0 1"><joint name="x" type="slide"/><geom name="f" size=".2"/><site name="t"/></body>
        </body>
        {sections.get("world", "")}
      </worldbody>{rest}
    </mujoco>"""


TENDON = '<fixed name="t1"><joint joint="h" coef="1"/></fixed>'
WET = '<option density="1"/>'
BALL = '<body name="b" pos="1 0 0"><joint name="j" type="{kind}"/><geom size=".1"/></body>'


def jointed(joint: str, body: str = "") -> str:
    """A body on the world with a hinge 'k' that has the attributes `joint`."""
    return f'<body {body}><joint name="k" {joint}/><geom size="1"/></body>'
