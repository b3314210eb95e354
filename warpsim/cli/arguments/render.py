"""Arguments of `warpsim render`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "render",
        description="Draws a file without a graphics driver. A .gif, .mp4 or .webm is a film in real time (the last "
        "two need ffmpeg: pip install warpsim[video]); a .png is one picture, "
        "a numbered series if several frames are asked for, or with --sheet all of them on one page.",
    )
    parser.add_argument(
        "file", help="a .usd, .usda, .usdc, .usdz, .xml (MJCF) or .urdf file, or with --scene a motion saved as .npz"
    )
    parser.add_argument("--scene", help="for .npz: the file that was simulated")
    parser.add_argument("--world", type=int, metavar="N", help="for .npz: which world (default: 0)")
    parser.add_argument("--keyframe", help="MJCF: name of the keyframe to draw")
    parser.add_argument("-o", "--output", required=True, help="the .png, .gif, .mp4 or .webm file to write")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--frames", type=int, metavar="N", help="N frames, evenly over the file's time range")
    which.add_argument("--every", type=int, metavar="K", help="every K-th time code")
    which.add_argument("--time", type=float, metavar="CODE", help="one frame, at a time code")
    parser.add_argument("--size", default="480x320", metavar="WxH", help="pixels of a frame (default: 480x320)")
    parser.add_argument("--camera", metavar="PATH", help="camera prim (default: a view of all that moves)")
    parser.add_argument("--colliders", action="store_true", help="draw colliders, hidden or not, and nothing else")
    parser.add_argument("--no-contacts", action="store_true", help="leave out the arrows of contact forces")
    parser.add_argument("--sheet", action="store_true", help="all frames (default: 9) on one .png page")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0 (default: cpu)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_force(parser)
