"""The README's example runs as printed and does what it says."""

import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def test_the_ten_lines_hit_the_target(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    (tmp_path / "scenes").symlink_to(ROOT / "scenes")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    thrown = names["sim"].rollout(steps=400, parameters={names["velocity"]: names["v"].detach()})
    end = thrown.body_position("/World/Ball")[-1, 0]
    assert np.linalg.norm(end.numpy() - names["target"].numpy()) < 1e-6
    assert (tmp_path / "throw.usda").is_file()
