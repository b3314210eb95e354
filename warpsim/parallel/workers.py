"""Work on a `concurrent.futures` executor: threads, processes, or the clusters of Ray, Dask and Slurm behind one.

What the work is about (a problem with its simulator) is pickled once and kept by each worker, for making a simulator
takes longer than most calls; later calls find it by its digest.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import lru_cache
from typing import Any, TypeVar

from warpsim.core.errors import InputError
from warpsim.parallel.errors import WorkerError
from warpsim.parallel.sent_error import SentError

try:
    import cloudpickle
except ImportError:  # functions that have no name cannot be sent then
    cloudpickle = None

T = TypeVar("T")
J = TypeVar("J")


class Parcel:
    """An object on its way to workers, as bytes."""

    def __init__(self, thing: Any) -> None:
        """Pickles.

        Raises:
            InputError: It cannot be; says why.
        """
        self.data = _pickled(thing)
        self.digest = hashlib.sha256(self.data).hexdigest()

    def open(self) -> Any:
        """The object; the same one for the same bytes, within a process."""
        return _opened(self.digest, self)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parcel) and self.digest == other.digest


@lru_cache(maxsize=4)
def _opened(digest: str, parcel: Parcel) -> Any:
    return pickle.loads(parcel.data)


def _pickled(thing: Any) -> bytes:
    try:
        return pickle.dumps(thing)
    except Exception as error:
        if cloudpickle is None:
            raise InputError(
                f"this cannot be sent to another process: {error}; define its functions at the top of a module, or "
                "pip install cloudpickle"
            ) from error
    try:
        return cloudpickle.dumps(thing)
    except Exception as error:
        raise InputError(f"this cannot be sent to another process: {error}") from error


def run_all(
    executor: Executor,
    work: Callable[[Any, J], T],
    parcel: Parcel,
    jobs: Sequence[J],
    names: Sequence[str],
    done: Callable[[J], object] = lambda job: None,
) -> list[T]:
    """What each job gives, in their order; the first one's failure cancels the others.

    Args:
        executor: Runs them.
        work: (what was sent, job) → result; a function of a module.
        parcel: What is sent.
        jobs: Sent one by one.
        names: What each is about, with its values; used in messages.
        done: Is told of each job, in their order, when it is done.

    Raises:
        WorkerError: Names the job that failed, and why.
    """
    waiting: list[Future[Any]] = [executor.submit(_run, work, parcel, job) for job in jobs]
    found: list[T] = []
    try:
        for future, job, name in zip(waiting, jobs, names, strict=True):
            try:
                made = future.result()
            except Exception as error:  # the executor's own: a worker that died, a cluster that is gone
                raise WorkerError(f"{name}: {type(error).__name__}: {error}") from error
            if isinstance(made, SentError):
                cause = made.error()
                raise WorkerError(f"{name}: {type(cause).__name__}: {cause}") from cause
            found.append(made)
            done(job)
    finally:
        for future in waiting:
            future.cancel()
    return found


def _run(work: Callable[[Any, J], T], parcel: Parcel, job: J) -> T | SentError:
    try:
        return work(parcel.open(), job)
    except Exception as error:
        return SentError.of(error)
