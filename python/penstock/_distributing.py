"""Pipelines that a service's workers run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock import _ranks
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused
from penstock._pipeline import Json, Pipeline, append, index
from penstock._shipping import ship

if TYPE_CHECKING:
    from penstock._dataset import Dataset

_SCHEME = "penstock://"


@dataclasses.dataclass(frozen=True)
class Credentials:
    """Who a reader is to a service, and whom it believes: names of files.

    What is left out is taken from `PENSTOCK_TLS_CA`, `PENSTOCK_TLS_CERT`,
    `PENSTOCK_TLS_KEY` and `PENSTOCK_TOKEN_FILE`, as the commands do. Without a
    `ca` there is no TLS. Files are read again when they change.

    Example:
        >>> ps.Credentials(ca="ca.pem", cert="me.pem", key="me.key").ca
        'ca.pem'
    """

    ca: str | os.PathLike[str] | None = None
    cert: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None
    token_file: str | os.PathLike[str] | None = None

    def to_json(self) -> Json:
        given = {
            "ca_file": (self.ca, "PENSTOCK_TLS_CA"),
            "cert_file": (self.cert, "PENSTOCK_TLS_CERT"),
            "key_file": (self.key, "PENSTOCK_TLS_KEY"),
            "token_file": (self.token_file, "PENSTOCK_TOKEN_FILE"),
        }
        message: Json = {}
        for field, (path, variable) in given.items():
            found = os.environ.get(variable) if path is None else path
            if found:
                message[field] = os.path.abspath(os.fspath(found))
        return message


class Distributing(Pipeline):
    """The part of `Dataset` that hands pipelines to a service."""

    def distribute(
        self,
        service: str,
        job: str | None = None,
        *,
        visitation: str | None = None,
        sharding: str | None = None,
        order: str | None = None,
        reader: int = 0,
        num_readers: int = 1,
        consumer: int | str = 0,
        num_consumers: int | None = None,
        from_round: int | None = None,
        partial_round: str = "drop",
        share: str | None = None,
        share_policy: str | None = None,
        on_existing: str = "error",
        compression: str | None = None,
        credentials: Credentials | None = None,
        code: Iterable[str | os.PathLike[str]] | None = None,
        pickle: bool = False,
    ) -> Dataset:
        """Has the workers of a service run all that is before this call.

        What follows runs here, beside the trainer. Workers may come and go, and
        the dispatcher may restart: each element still comes exactly once, and a
        saved state goes on exactly where it was. Elements come in the order in
        which workers have them, unless `order` says otherwise.

        What counts or remembers elements across the whole pipeline (`take`,
        `scan`, `cache`, ...) is moved behind this call where that changes
        nothing, and refused with a reason where it would.

        What this gives may be distributed again, as in
        `ds.distribute(a).map(f).distribute(b)`: the workers of `b` read from
        those of `a`, and must be allowed to (`penstock worker
        --allow-services`), unless both are one service.

        Example:
            >>> with ps.LocalService(workers=1) as service:
            ...     ds = ps.Dataset.range(6).map(lambda x: x * 2)
            ...     ds = ds.distribute(service.address)
            ...     print(sorted(int(x) for x in ds))
            [0, 2, 4, 6, 8, 10]

        Args:
            service: The dispatcher, as "penstock://host:5050".
            job: A name that readers of one job share. A name of its own if left
                out.
            visitation: "exactly_once", the default without `share`; or
                "at_most_once", the default with it, which is not slowed
                down by a worker's loss and may lose what that worker had; or
                "each_worker", with which every worker runs the whole pipeline,
                in an order of its own where that is random, and elements of all
                of them come; or "static", with which each of the workers that
                the dispatcher was told of has the share of it that `sharding`
                says, and nobody else.
            sharding: With "static", of what each of n workers has every n-th:
                "file", of the files that are read; "data", of the elements that
                all of them then compute; "file_or_data", of the files if there
                are enough; "hint", of what `shard(ps.SHARD_HINT, 0)` is given.
            order: "deterministic": the same order for any number of workers,
                whatever fails.
            reader: Which of `num_readers` this is. Each element comes to one of
                them.
            num_readers: How many read the job.
            consumer: Of replicas that train in step, which one this is. Each
                has an element of every round: the first that each gets are of
                one round, the second of the next, and so on, and a round's
                elements are of like size. "auto": the rank that
                `torch.distributed`, JAX or the variables `RANK` and
                `WORLD_SIZE` say, and their number.
            num_consumers: How many replicas there are.
            from_round: Of a replica that comes back without a state, with
                on_existing="attach": the round that it goes on with. Left out,
                that of the others, as far as the service knows it. Of one that
                is new, while the others call `Iterator.resize`: the round that
                they do it at.
            partial_round: What becomes of the last elements, if they are fewer
                than replicas: "drop", they are left out; or "pad": all elements
                are pairs `(element, is_element)`, and who has none gets one of
                zeros, of the same shape as the others, with False.
            share: A name. Jobs that share it, with equal pipelines, have what
                workers compute once. "auto": any job with an equal pipeline.
                Who is slower than the others misses elements, unless
                `visitation` is "exactly_once" or `share_policy` "wait".
            share_policy: "skip": nobody waits for who is behind; or "wait":
                workers keep what is computed for who is behind, as long as they
                have room.
            on_existing: What happens if somebody reads the job as this reader:
                "error", "attach" (this one goes on in its place), or "fresh"
                (that job is over, and another begins).
            compression: Of elements on their way: "none", "lz4", "zstd"; where
                it pays, if left out.
            credentials: For services that ask who calls.
            code: Modules and packages of yours, by name or path, whose
                functions workers run as Python. They go along as a zip, which
                workers must accept (`penstock worker --code-allow`). Functions
                go by their names: those at the top level of these modules, and
                `functools.partial` of them with plain values. They must give
                the same for the same element, wherever they run.
            pickle: Whether functions that have no such name (lambdas, those of
                the program itself) go as pickles, to workers that were started
                with `--allow-pickle`.
        """
        body = settings(
            service,
            job,
            visitation=visitation,
            sharding=sharding,
            order=order,
            reader=reader,
            num_readers=num_readers,
            consumer=consumer,
            num_consumers=num_consumers,
            from_round=from_round,
            partial_round=partial_round,
            share=share,
            share_policy=share_policy,
            on_existing=on_existing,
            compression=compression,
            credentials=credentials,
        )
        shipped, captures = ship(self._captures, code, pickle, body["address"])
        body.update(shipped)
        return append(
            "received", {"distribution": body}, [self], captures=captures
        )


def settings(
    service: str,
    job: str | None,
    *,
    visitation: str | None,
    sharding: str | None,
    order: str | None,
    reader: int,
    num_readers: int,
    on_existing: str,
    consumer: int | str = 0,
    num_consumers: int | None = None,
    from_round: int | None = None,
    partial_round: str = "drop",
    share: str | None = None,
    share_policy: str | None = None,
    compression: str | None,
    credentials: Credentials | None,
) -> Json:
    """The Distribution message of a call, but for the plan."""
    if visitation is None:
        visitation = "exactly_once" if share is None else "at_most_once"
    body: Json = {
        "address": address_of(service),
        "visitation": word(
            "visitation",
            visitation,
            ("exactly_once", "at_most_once", "each_worker", "static"),
        ),
        "reader": _count("reader", reader),
        "readers": _count("num_readers", num_readers),
        "on_existing": word(
            "on_existing", on_existing, ("error", "attach", "fresh")
        ),
        **(credentials or Credentials()).to_json(),
    }
    if sharding is not None:
        body["sharding"] = word(
            "sharding", sharding, ("file", "data", "file_or_data", "hint")
        )
    if job is not None:
        if not isinstance(job, str) or not job:
            raise refused(
                InvalidTypeError,
                f"job must be a name, or left out; got {job!r}",
            )
        body["job"] = job
    if order is not None:
        word("order", order, ("deterministic",))
        body["is_ordered"] = True
    if compression is not None:
        body["compression"] = compression
    body.update(consumers(consumer, num_consumers))
    if from_round is not None:
        if num_consumers is None and not isinstance(consumer, str):
            raise refused(
                InvalidArgumentError,
                "from_round must be left out without num_consumers; got "
                f"{from_round!r}",
            )
        body["from_round"] = _count("from_round", from_round)
    if word("partial_round", partial_round, ("drop", "pad")) == "PAD":
        body["pads_rounds"] = True
    if share is not None:
        if not isinstance(share, str) or not share:
            raise refused(
                InvalidTypeError,
                f"share must be a name, or left out; got {share!r}",
            )
        body["share"] = share
    if share_policy is not None:
        body["share_policy"] = word(
            "share_policy", share_policy, ("skip", "wait")
        )
    return body


def consumers(consumer: int | str, num_consumers: int | None) -> Json:
    """Which of those that read in rounds, as messages have it."""
    if isinstance(consumer, str):
        word("consumer", consumer, ("auto",))
        if num_consumers is not None:
            raise refused(
                InvalidArgumentError,
                'num_consumers must be left out with consumer="auto"; '
                f"got {num_consumers!r}",
            )
        consumer, num_consumers = _ranks.find()
    if num_consumers is None:
        if consumer != 0:
            raise refused(
                InvalidArgumentError,
                "num_consumers must be given with consumer; got "
                f"consumer={consumer!r} alone",
            )
        return {}
    found = _count("num_consumers", num_consumers)
    if found == 0:
        raise refused(
            InvalidArgumentError, "num_consumers must be at least 1; got 0"
        )
    return {"consumers": found, "consumer": _count("consumer", consumer)}


def address_of(service: str) -> str:
    if not isinstance(service, str):
        raise refused(
            InvalidTypeError,
            "service must be the address of a dispatcher, as "
            f'"penstock://localhost:5050"; got {service!r}',
        )
    return service.removeprefix(_SCHEME).rstrip("/")


def word(name: str, given: str, known: tuple[str, ...]) -> str:
    if given not in known:
        words = " or ".join(f'"{word}"' for word in known)
        raise refused(
            InvalidArgumentError, f"{name} must be {words}; got {given!r}"
        )
    return given.upper()


def _count(name: str, given: int) -> int:
    found = index(name, given, 32)
    if found < 0:
        raise refused(
            InvalidArgumentError, f"{name} must not be negative; got {found}"
        )
    return found
