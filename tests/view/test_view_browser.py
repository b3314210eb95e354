"""Pages in a real browser: what is drawn where, and what keys and clicks do."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest

from browser_support import Browser, require_browser
from page_support import BALL, PLACES, RADIUS, ball_page, textured_stage, tumbling
from warpsim.view.page import Page, write_page
from warpsim.view.page.content import BodyInfo, LossCurve, Target
from warpsim.view.page.focus import page_focus
from warpsim.view.page.scene_content import motion_take
from warpsim.view.page.stage_content import stage_page

FIELD_OF_VIEW = np.radians(35.0)
VIEWS = (
    (np.array([0.0, -9.0, 1.5]), np.array([0.0, 0.0, 0.8])),
    (np.array([6.0, -5.0, 4.0]), np.array([0.0, 0.0, 0.8])),
)
"""Camera and target."""
WIDTH, HEIGHT = 680, 510


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = require_browser()
    opened = Browser(program, tmp_path_factory.mktemp("browser"), WIDTH, HEIGHT)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """The page of the ball, loaded once: loading takes longest."""
    browser.errors.clear()
    browser.requests.clear()
    browser.open(write_page(tmp_path_factory.mktemp("page") / "ball.html", ball_page()))
    return browser


@pytest.fixture
def ball(opened):
    """The same, as it was when it was loaded."""
    opened.run("(page.seek(0), page.select(null), page.setOption('ghosts', true), page.setTheme('light'))")
    opened.run("page.setLayout(false)")
    return opened


def projected(point: np.ndarray, camera: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Pixel of a point: the pinhole camera's closed form, z up in the picture."""
    forward = (target - camera) / np.linalg.norm(target - camera)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    x, y, depth = (point - camera) @ right, (point - camera) @ up, (point - camera) @ forward
    scale = 0.5 * HEIGHT / np.tan(0.5 * FIELD_OF_VIEW)
    return np.array([0.5 * WIDTH + scale * x / depth, 0.5 * HEIGHT - scale * y / depth])


def look(browser: Browser, view) -> None:
    camera, target = (list(map(float, v)) for v in view)
    browser.run(f"page.setCamera({camera}, {target})")
    settle(browser)


def settle(browser: Browser) -> None:
    """Waits until the next picture has been drawn."""
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def is_red(pixel: np.ndarray) -> bool:
    red, green, blue = (int(c) for c in pixel)
    return red > 90 and red > 2 * green and red > 2 * blue


def test_it_loads_without_errors_or_requests(ball):
    settle(ball)
    assert ball.errors == []
    assert [url for url in ball.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert ball.run("page.content.bodies.map((body) => body.path)") == [BALL]


def test_the_ball_is_where_it_must_be(ball):
    ball.run("page.setOption('ghosts', false)")
    for view in VIEWS:
        look(ball, view)
        for row, place in enumerate(PLACES):
            ball.run(f"page.seek({row})")
            settle(ball)
            picture = ball.picture()
            x, y = np.round(projected(place, *view)).astype(int)
            assert is_red(picture[y, x]), (view, row, picture[y, x])
            for other in np.delete(PLACES, row, axis=0):  # and nowhere else
                x, y = np.round(projected(other, *view)).astype(int)
                assert not is_red(picture[y, x])
    settle(ball)
    # Its outline: red inside of the radius, not outside of it.
    distance = np.linalg.norm(PLACES[2] - VIEWS[1][0])
    pixels = RADIUS / distance * 0.5 * HEIGHT / np.tan(0.5 * FIELD_OF_VIEW)
    x, y = projected(PLACES[2], *VIEWS[1])
    assert is_red(picture[round(y - 0.85 * pixels), round(x)]) and is_red(picture[round(y), round(x + 0.85 * pixels)])
    assert not is_red(picture[round(y - 1.2 * pixels), round(x)])


def test_the_first_view_is_the_ray_casters(ball):
    ball.run("page.setLayout(false)")
    settle(ball)
    position, _, aspect = ball.run("page.camera()")
    wanted = page_focus(ball_page()).camera(aspect)
    assert np.array(position) == pytest.approx(wanted.position, abs=1e-6)
    x, y = ball.run("page.project([0, 0, 1])")
    toward = np.array([0.0, 0.0, 1.0]) - wanted.position
    across, up = (toward @ axis / (toward @ wanted.forward) for axis in (wanted.right, wanted.up))
    pixels = (1.0 + across / wanted.half_width) * WIDTH / 2, (1.0 - up / wanted.half_height) * HEIGHT / 2
    assert (x, y) == pytest.approx(pixels, abs=0.5)


def test_between_frames_it_is_between(ball):
    ball.run("page.seek(0.5)")
    assert np.abs(np.array(ball.run("page.pose(1, 0, 0.5)")[:3]) - 0.5 * (PLACES[0] + PLACES[1])).max() < 1e-4


def test_scrubbing_playing_and_stepping(ball):
    ball.run("page.seek(0.25)")
    assert ball.run("page.time") == pytest.approx(0.25)
    ball.run("Object.assign(document.querySelector('.scrub'), { value: 0.75 }).dispatchEvent(new Event('input'))")
    assert ball.run("page.time") == pytest.approx(1.5) and not ball.run("page.playing")
    ball.key("ArrowLeft")
    assert ball.run("page.time") in (0.0, 1.0)  # on a frame
    ball.run("page.seek(0)")
    ball.key("ArrowRight")
    assert ball.run("page.time") == pytest.approx(1.0)
    ball.run("page.seek(0)")
    ball.key(" ")
    until = time.monotonic() + 60.0
    while ball.run("page.time") == 0.0 and time.monotonic() < until:
        settle(ball)
    assert ball.run("page.playing") and ball.run("page.time") > 0.0
    ball.key(" ")
    assert not ball.run("page.playing")


def test_a_click_gives_the_path(ball):
    look(ball, VIEWS[0])
    ball.run("page.seek(1)")
    settle(ball)
    for point, path in ((PLACES[1], BALL), ((0.0, 1.0, 0.3), "/World/Box"), ((2.0, 0.0, 0.0), "/World/Floor")):
        x, y = projected(np.array(point), *VIEWS[0])
        ball.click(x, y)
        assert ball.run("page.selected()") == path
        assert ball.run("document.querySelector('.info .path').textContent") == path
        ball.key("Escape")  # the card may cover the next thing
    ball.click(*projected(PLACES[1], *VIEWS[0]))
    assert "2 kg" in ball.run("document.querySelector('.info').textContent")
    assert ball.run("document.querySelectorAll('.info .plot').length") == 1
    ball.key("Escape")
    assert ball.run("page.selected()") is None


def test_ghosts_can_be_switched_off(ball):
    look(ball, VIEWS[0])
    ball.run("page.seek(1)")
    settle(ball)
    x, y = np.round(projected(PLACES[1] + [0.0, -1.0, 0.0], *VIEWS[0]) + [0.0, -18.0]).astype(int)
    with_ghost = ball.picture()[y, x].astype(int)
    assert ball.run("page.shown()") == ["before", "after"]
    ball.key("g")
    settle(ball)
    without = ball.picture()[y, x].astype(int)
    assert ball.run("page.shown()") == ["after"]
    assert np.abs(with_ghost - without).max() > 8
    ball.key("g")
    settle(ball)
    assert (ball.picture()[y, x].astype(int) == with_ghost).all()


def test_themes_side_by_side_follow_and_trail(ball):
    light = ball.picture()[5:30, 300:360].mean()
    ball.key("d")
    settle(ball)
    assert ball.picture()[5:30, 300:360].mean() < 0.5 * light
    ball.run("page.setLayout(true)")
    ball.run("page.seek(0)")
    assert ball.run(f"page.select('{BALL}')")
    ball.run("page.follow()")
    settle(ball)
    before = ball.run("page.project([0, 0, 0])")
    ball.run("page.seek(2)")
    settle(ball)
    assert np.abs(np.subtract(ball.run("page.project([0, 0, 0])"), before)).max() > 20  # the camera went along
    ball.key("t")
    settle(ball)
    assert ball.errors == []


def test_the_search_can_be_watched(browser, tmp_path, rng):
    browser.errors.clear()
    bodies = [BodyInfo("/B0", 1.0, np.zeros(3))]
    takes = [
        motion_take(tumbling(5, 1, rng), name, ghost=name == "before", iteration=iteration, loss=loss)
        for name, iteration, loss in (("before", None, 1.0), ("after", None, 0.1), ("i0", 0, 1.0), ("i1", 1, 0.1))
    ]
    target = Target("/Task/Reach", np.zeros(1), np.array([[0.0, 0.0, 1.0]]), "/B0", np.zeros(3), 0.01)
    curve = LossCurve(np.array([0, 1]), np.array([1.0, 0.1]))
    page = Page("search", bodies, [], takes, targets=[target], loss=curve, notes=["loss 1 → 0.1"])
    browser.open(write_page(tmp_path / "search.html", page))
    assert browser.run("page.shown()") == ["before", "after"]
    assert browser.run("document.querySelector('.label').textContent") == "Reach"
    middle = "(b) => [b.x + b.width / 2, b.y + b.height / 2]"
    dots = browser.run(
        f"[...document.querySelectorAll('.loss .dot')].map((d) => d.getBoundingClientRect()).map({middle})"
    )
    assert len(dots) == 2
    browser.click(*dots[0])
    assert browser.run("page.shown()") == ["i0"]
    browser.run("document.querySelector('.loss .primary').click()")
    until = time.monotonic() + 60.0
    seen = set()
    while len(seen) < 2 and time.monotonic() < until:
        seen.update(browser.run("page.shown()"))
        settle(browser)
    assert seen == {"i0", "i1"}
    assert browser.errors == []


def test_what_moves_is_framed_beside_the_cards(browser, tmp_path):
    """In a wide window the first view is that of a narrower one, moved to where no cards stand."""
    width, height = 1000, 460
    page = dataclasses.replace(
        ball_page(), notes=["a line", "another", "a third"], loss=LossCurve(np.arange(2), np.array([1.0, 0.1]))
    )
    places = [PLACES[0], PLACES[1], PLACES[2]]
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    try:
        browser.open(write_page(tmp_path / "notes.html", page))
        card = browser.run("document.querySelector('.head').getBoundingClientRect().right")
        seen = np.array([browser.run(f"page.project({[float(v) for v in place]})") for place in places])
        assert 0 < card < 0.4 * width and seen[:, 0].min() > card
        # Its camera is the ray caster's for what is left of the window.
        position, _, _ = browser.run("page.camera()")
        wanted = page_focus(page).camera((width - card) / height)
        assert np.array(position) == pytest.approx(wanted.position, abs=1e-6)
        toward = places[1] - wanted.position
        across = toward @ wanted.right / (toward @ wanted.forward) / wanted.half_width
        assert seen[1, 0] == pytest.approx(card + 0.5 * (1.0 + across) * (width - card), abs=0.5)
        x, y = seen[0]
        assert browser.run(f"page.pick({x}, {y})") == BALL  # clicks know of it
    finally:
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False
        )


def test_every_pose_is_the_motion_s(browser, tmp_path, rng):
    motion = tumbling(40, 3, rng)
    page = Page("tumbling", [BodyInfo(f"/B{k}") for k in range(3)], [], [motion_take(motion, "motion")])
    browser.open(write_page(tmp_path / "tumbling.html", page))
    script = "[...page.content.takes[0].times].map((t) => [0, 1, 2].map((body) => page.pose(0, body, t)))"
    held = np.array(browser.run(script))
    assert np.abs(held[..., :3] - motion.positions).max() < 2e-4
    assert 1.0 - np.abs(np.einsum("fbi,fbi->fb", held[..., 3:], motion.rotations)).min() < 1e-8


def test_textures_lie_where_their_coordinates_say(browser, tmp_path):
    browser.errors.clear()
    page = stage_page(textured_stage(tmp_path), "square")
    browser.open(write_page(tmp_path / "square.html", page))
    view = (np.array([0.0, -6.0, 1.0]), np.array([0.0, 0.0, 1.0]))
    look(browser, view)
    picture = browser.picture().astype(int)
    for side, strong, weak in ((-0.5, 0, 1), (0.5, 1, 0)):
        for height in (0.4, 1.6):
            x, y = np.round(projected(np.array([side, 0.0, height]), *view)).astype(int)
            assert picture[y, x, strong] > 2 * picture[y, x, weak], (side, height, picture[y, x])
    assert browser.errors == []
