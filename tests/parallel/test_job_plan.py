"""`warpsim plan`: bytes and shares as counted, and time and memory as real ranks take them."""

from __future__ import annotations

import pytest

from cloth_scenes import new_world
from rank_support import job
from warpsim.cli.main import main
from warpsim.core.errors import InputError
from warpsim.io.usd import author
from warpsim.parallel.block_cost import measure_block
from warpsim.parallel.blocks import blocks_of
from warpsim.parallel.job_plan import REPORT_BYTES, BlockCost, JobPlan, Network
from warpsim.sim.simulator import Simulator
from warpsim.tape import Memory

COST = BlockCost(gradient=0.5, again=0.2, process=400_000_000, tape=100_000_000, kept=10_000_000)


def plan(worlds: int = 64, blocks: int = 16, **options) -> JobPlan:
    given = {"numbers": 10, "ranks": 4, "cost": COST, "network": Network(1e-3, 1e6), **options}
    return JobPlan("test", blocks_of(worlds, blocks), **given)


def test_shares_add_up():
    one, four = plan().share(1), plan().share(4)
    assert one.computing == pytest.approx(16 * 0.5 + 15 * 0.2) and one.received == 0 and one.exchanging == 0.0
    assert four.blocks == 4 and four.computing == pytest.approx(4 * 0.5 + 3 * 0.2)
    assert four.received == 3 * (16 * 11 * 8 + 2 * REPORT_BYTES)
    assert four.exchanging == pytest.approx(6 * 3 * 1e-3 + four.received / 1e6)
    assert four.speedup == pytest.approx(one.time / four.time)
    assert one.memory - four.memory == 12 * COST.kept


def test_a_plan_says_where_it_stops_scaling():
    slow = plan(network=Network(latency=0.05))  # 0.3 s for each further rank
    best = slow.best()
    assert best.time <= min(slow.share(ranks).time for ranks in range(1, 17))
    assert 1 < best.ranks < 16 and f"stops scaling at {best.ranks} ranks" in str(slow)
    assert slow.last_worthwhile().efficiency >= 0.5 > slow.share(slow.last_worthwhile().ranks + 1).efficiency
    assert plan().best().ranks == 16
    assert "36 ranks have nothing to do; set WARPSIM_BLOCKS=52" in str(plan(ranks=52))


def test_a_tree_passes_on_sums_of_blocks():
    assert [plan().reduced(ranks) for ranks in (1, 2, 3, 4, 1000)] == [11 * 8 * 2 * k for k in (0, 1, 2, 2, 10)]


def test_a_block_is_measured(tmp_path):
    sim = Simulator("scenes/pendulum.usda", worlds=2)
    short, long = measure_block(sim, 16), measure_block(sim, 1600, memory=Memory(segment=16))
    assert 0 < short.again < short.gradient < long.gradient
    trajectory = 1601 * 2 * (sim.nq + sim.nv) * 8
    assert long.kept >= trajectory and long.tape >= trajectory and long.process > 10**7


def test_the_command_prints_a_table(capsys):
    assert main("plan scenes/throw.usda --worlds 8 --ranks 4 --blocks 4".split()) == 0
    shown = capsys.readouterr().out
    assert "8 worlds in 4 blocks of 2" in shown and "3 numbers a world" in shown and "it stops scaling at" in shown
    assert [line.split()[0] for line in shown.splitlines()[4:7]] == ["1", "2", "4"]
    assert main("plan scenes/throw.usda --latency 0".split()) == 1


@pytest.mark.long
def test_one_to_four_ranks_take_what_was_planned(tmp_path):
    """Bytes to 5 %, memory to 15 %, processor time to half as much again: others share this machine's caches."""
    worlds, steps, blocks = 64, 100, blocks_of(64)
    measured = job(1, tmp_path / "cost.json", "cost", blocks.size, steps)
    cost = BlockCost(**{name: measured[name] for name in BlockCost.__dataclass_fields__})
    found = [job(ranks, tmp_path / f"{ranks}.json", "updates", worlds, steps, 5) for ranks in (1, 2, 3, 4)]
    made = JobPlan("hoppers", blocks, found[0]["nv"], 4, cost, Network())
    for ranks, took in enumerate(found, 1):
        share = made.share(ranks)
        print(f"{ranks} ranks: planned {share}, took {took['received']} B, {took['seconds']} s, {took['memory']} B")
        assert took["slopes"] == found[0]["slopes"]
        assert took["received"] == pytest.approx(share.received, rel=0.05)
        assert took["memory"] == pytest.approx(share.memory, rel=0.15)
        assert share.computing / 1.5 < took["seconds"] < 1.5 * share.computing


def test_a_block_without_bodies_is_measured(tmp_path):
    stage, world = new_world()
    author.cloth(world, "Cloth", size=(0.2, 0.2), cells=(2, 2))
    stage.Export(str(tmp_path / "cloth.usda"))
    sim = Simulator(tmp_path / "cloth.usda", worlds=2)
    cost = measure_block(sim, 5)
    assert cost.gradient > 0.0 and cost.tape > 0
    sim.rollout(5, outputs=("cloth.center",)).save(
        tmp_path / "cloth.html"
    )  # nothing of bodies is needed where there are none


def test_saving_says_which_outputs_it_needs(tmp_path):
    motion = Simulator("scenes/pendulum.usda").rollout(5, outputs=())
    with pytest.raises(InputError, match="add body_position and body_rotation to outputs="):
        motion.save(tmp_path / "motion.html")
