"""The peers' rows: what a script prints becomes a row, a failure says why, and ratios are per simulated second."""

import json

from tools.bench.cases import CASES
from tools.bench.peers.peers import PEERS
from tools.bench.peers.run import HERE, Row, longest_first_call, read_row
from tools.bench.peers.table import per_simulated_second, to_markdown

REPORT = {
    "forward_us": 20.0,
    "gradient_us": 300.0,
    "gradient_error": 1e-7,
    "bytes_per_step": 4000.0,
    "first_call_seconds": 12.0,
    "timestep": 0.005,
    "note": "sample",
    "versions": {"sample": "1.0"},
}


def test_every_peer_has_its_script_and_cases():
    for peer in PEERS:
        assert (HERE / peer.script).is_file()
        assert set(peer.cases) <= set(CASES)
    assert len({peer.name for peer in PEERS}) == len(PEERS)


def test_a_report_becomes_a_row():
    case = CASES["ant-ground"]
    row = read_row(PEERS[0], case, 0, f"noise\nPEER {json.dumps(REPORT)}\n", "")
    assert row == Row("ant-ground", "MJX", 20.0, 300.0, 1e-7, 4000.0, 12.0, 0.005, "sample", {"sample": "1.0"})


def test_a_failure_says_why():
    case = CASES["ant-ground"]
    row = read_row(PEERS[0], case, 1, f"PEER {json.dumps(REPORT)}", "Traceback\n  ValueError: no plane\n")
    assert (row.gradient, row.note) == (None, "failed: ValueError: no plane")
    assert "| failed: ValueError: no plane |" in to_markdown([row], 60)


def test_ratios_are_per_simulated_second():
    """Half the time step costs twice as many steps."""
    ours = Row("ant-ground", "warpsim", 10.0, 40.0, 1e-9, 0.0, 1.0, 0.01)
    theirs = Row("ant-ground", "Brax", 20.0, 40.0, None, 39e3, 40.0, 0.005)
    assert (per_simulated_second(ours), per_simulated_second(theirs)) == (4.0, 8.0)
    first, second = to_markdown([ours, theirs], 60).splitlines()[-2:]
    assert "| 10 | 10 | 40 | 4.0 | 1.0 | 1e-09 | 0.00 | 1.0 |" in first
    assert "| 5 | 20 | 40 | 8.0 | 2.0 | – | 39.00 | 40.0 |" in second


def test_the_first_call_is_the_one_that_compiled(tmp_path):
    file = tmp_path / "compiled" / "first_calls.json"
    found = [longest_first_call(Row("ant-ground", "MJX", first_call=t), 60, file) for t in (50.0, 3.0)]
    assert found == [50.0, 50.0]
    assert longest_first_call(Row("ant-ground", "MJX", first_call=2.0), 10, file) == 2.0
    assert longest_first_call(Row("ant-ground", "MJX"), 60, file) is None
