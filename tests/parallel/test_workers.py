"""Executors: the same results as one process, and failures with the world and the values they came from."""

from __future__ import annotations

from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Lock

import pytest
import torch

from rank_job import GRAVITY, pendulum
from warpsim.core.errors import InputError
from warpsim.optimizers import FunctionProblem, multi_start
from warpsim.parallel import WorkerError
from warpsim.parallel.workers import Parcel
from warpsim.task import stress, sweep

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def valley(x: torch.Tensor) -> torch.Tensor:
    return ((x - 0.3).square() + torch.sin(9 * x)).sum()


def broken(x: torch.Tensor) -> torch.Tensor:
    if x[0] > 1.5:
        raise ZeroDivisionError("no such place")
    return x.square().sum()


def explored(executor: Executor | None) -> torch.Tensor:
    """Bits of a multi-start of a rollout problem."""
    found = multi_start(
        pendulum(),
        seed=1,
        candidates=3,
        explore=2,
        method="levenberg_marquardt",
        iterations=1,
        executor=executor,
        blocks=2,
    )
    return torch.cat([found.x, found.report.explored.flatten(), found.report.after])


def test_threads_give_what_one_process_gives():
    with ThreadPoolExecutor(2) as executor:
        assert torch.equal(explored(executor), explored(None))


def test_a_function_of_a_module_and_one_without_a_name_can_be_sent():
    with ThreadPoolExecutor(2) as executor:
        for loss in (valley, lambda x: valley(x)):
            problem = FunctionProblem([0.0, 1.0], loss=loss, lower=-2.0, upper=2.0)
            alone = multi_start(problem, seed=0, candidates=6, explore=4)
            assert torch.equal(multi_start(problem, seed=0, candidates=6, explore=4, executor=executor).x, alone.x)


def test_a_failure_names_world_and_values():
    problem = FunctionProblem([0.0, 1.0], loss=broken, lower=-2.0, upper=2.0, names=["mass", "height"])
    with ThreadPoolExecutor(1) as executor, pytest.raises(WorkerError, match=r"world \d+: mass = 1\.[5-9]\d*, height"):
        multi_start(problem, seed=0, candidates=16, explore=1, executor=executor)


def test_a_sweep_on_threads_is_a_sweep_here():
    with ThreadPoolExecutor(2) as executor:
        there = sweep(SCENES / "pendulum.usda", {GRAVITY: [8.0, 9.0, 10.0]}, steps=5, executor=executor)
    assert there == sweep(SCENES / "pendulum.usda", {GRAVITY: [8.0, 9.0, 10.0]}, steps=5)


def test_what_cannot_be_sent_says_so():
    with pytest.raises(InputError, match="cannot be sent to another process"):
        Parcel(Lock())


def test_a_parcel_is_opened_once():
    first, again = Parcel({"a": [1]}), Parcel({"a": [1]})
    assert first.open() is again.open()


def fresh_processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


@pytest.mark.long
def test_processes_give_what_one_process_gives():
    with fresh_processes(2) as executor:
        assert torch.equal(explored(executor), explored(None))


@pytest.mark.long
def test_stress_on_processes_is_stress_here():
    with fresh_processes(2) as executor:
        there = stress(SCENES / "projectile.usda", executor=executor)
    assert there.outcomes == stress(SCENES / "projectile.usda").outcomes and len(there.outcomes) > 3


@pytest.mark.long
def test_a_sweep_on_processes_is_a_sweep_here():
    vary = {"/World/Ball.physics:mass": [0.5, 1.0, -1.0, 2.0]}
    with fresh_processes(2) as executor:
        there = sweep(SCENES / "projectile.usda", vary, executor=executor)
    assert there == sweep(SCENES / "projectile.usda", vary) and len(there.failed) == 1


@pytest.mark.long
def test_dask_gives_what_one_process_gives():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            assert torch.equal(explored(client.get_executor()), explored(None))


@pytest.mark.long
def test_ray_gives_what_one_process_gives():
    ray = pytest.importorskip("ray")
    pool = pytest.importorskip("ray.util.multiprocessing")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        with pool.Pool(2) as workers:
            assert torch.equal(explored(PoolExecutor(workers)), explored(None))
    finally:
        ray.shutdown()


@pytest.mark.long
def test_submitit_gives_what_one_process_gives(tmp_path):
    submitit = pytest.importorskip("submitit")
    executor = submitit.LocalExecutor(folder=tmp_path)
    executor.update_parameters(timeout_min=10)
    assert torch.equal(explored(executor), explored(None))


class PoolExecutor(Executor):
    """A pool of `multiprocessing`'s kind, such as Ray's, as an executor."""

    def __init__(self, pool) -> None:
        self._pool = pool

    def submit(self, function, /, *arguments, **options):
        return _Submitted(self._pool.apply_async(function, arguments, options))


class _Submitted:
    def __init__(self, made) -> None:
        self._made = made

    def result(self, timeout=None):
        return self._made.get(timeout)

    def cancel(self) -> bool:
        return False
