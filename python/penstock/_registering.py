"""Pipelines that stay with a service: readers need no code for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _captures, _engine, _options
from penstock._connection import working_directory
from penstock._distributing import Credentials, address_of, settings, word
from penstock._errors import InvalidTypeError, PenstockError
from penstock._location import refused
from penstock._pipeline import UNKNOWN_CARDINALITY, Json, Pipeline, append

if TYPE_CHECKING:
    from penstock._dataset import Dataset


def register(
    service: str,
    dataset: Dataset,
    name: str | None = None,
    *,
    credentials: Credentials | None = None,
) -> str:
    """Leaves a pipeline with a service, and gives the id that it has there.

    Whoever has the id reads it with `ps.from_registered`, and needs neither the
    code that made the pipeline nor its arrays. The id is made of the pipeline:
    to register the same one again changes nothing and gives the same id. It
    stays when the dispatcher restarts with its `--state-dir`, until
    `ps.unregister`. Names of files are those of this process's working
    directory, on the workers.

    Example:
        >>> with ps.LocalService(workers=1) as service:
        ...     ds = ps.Dataset.range(4).map(lambda x: x * 10)
        ...     id = ps.register(service.address, ds, "tens")
        ...     again = ps.from_registered(service.address, "tens")
        ...     print(again.element_spec, sorted(int(x) for x in again))
        TensorSpec(shape=(), dtype=ps.int64) [0, 10, 20, 30]

    Args:
        service: The dispatcher, as "penstock://host:5050".
        dataset: What workers can run: see `Dataset.distribute`.
        name: What the pipeline may be called besides its id: letters, digits,
            "-", "_" and ".".
        credentials: For services that ask who calls.

    Raises:
        AlreadyExistsError: The name is another pipeline's.
        InvalidArgumentError: Workers cannot run the pipeline; says what to do.
        UnavailableError: Nobody answers there.
    """
    if not isinstance(dataset, Pipeline):
        raise refused(
            InvalidTypeError, f"dataset must be a Dataset; got {dataset!r}"
        )
    body: Json = {
        "plan": dataset._plan,
        "service": _service(service, credentials),
        "defaults": _options.defaults().to_json(),
        "working_directory": working_directory(),
    }
    if name is not None:
        body["name"] = _called("name", name)

    def ask(engine: _engine.Engine) -> Json:
        engine.add_captures(dataset._captures)
        return engine.call("register_plan", body)[0]

    try:
        return str(_engine.with_engine(ask)["id"])
    except PenstockError as error:
        raise refused(type(error), str(error)) from None


def from_registered(
    service: str,
    id: str,
    job: str | None = None,
    *,
    visitation: str = "exactly_once",
    order: str | None = None,
    reader: int = 0,
    num_readers: int = 1,
    on_existing: str = "error",
    compression: str | None = None,
    credentials: Credentials | None = None,
) -> Dataset:
    """The rows of a pipeline that was left with a service by `ps.register`.

    It is as if the pipeline had been made here and distributed: what elements
    look like comes from the service. Readers of one `job` share its elements,
    whether they have registered the pipeline or not.

    Example:
        >>> with ps.LocalService(workers=1) as service:
        ...     id = ps.register(service.address, ps.Dataset.range(6).batch(2))
        ...     ds = ps.from_registered(service.address, id, job="train")
        ...     print(sorted(int(batch.sum()) for batch in ds))
        [1, 5, 9]

    Args:
        service: The dispatcher, as "penstock://host:5050".
        id: As `ps.register` gave it, or a name that the pipeline has.
        job: As in `Dataset.distribute`, and so are those that follow.
        visitation: "exactly_once" or "at_most_once".
        order: "deterministic", or as workers have them.
        reader: Which of `num_readers` this is.
        num_readers: How many read the job.
        on_existing: "error", "attach" or "fresh".
        compression: "none", "lz4", "zstd"; where it pays, if left out.
        credentials: For services that ask who calls.

    Raises:
        NotFoundError: The service has no such pipeline.
    """
    # The others are divided by worker, which is part of what is registered.
    word("visitation", visitation, ("exactly_once", "at_most_once"))
    distribution = settings(
        service,
        job,
        visitation=visitation,
        sharding=None,
        order=order,
        reader=reader,
        num_readers=num_readers,
        on_existing=on_existing,
        compression=compression,
        credentials=credentials,
    )
    body: Json = {
        "service": _service(service, credentials),
        "id": _called("id", id),
    }
    try:
        found = _engine.call("get_registered", body)
    except PenstockError as error:
        raise refused(type(error), str(error)) from None
    captures = tuple(
        _captures.rows_from_bytes(
            _engine.from_base64(each.get("bytes", "")), each["id"]
        )
        for each in found.get("captures", ())
    )
    pipeline = Pipeline.__new__(Pipeline)
    pipeline.__setstate__(
        {
            "plan": found["plan"],
            "spec": {},
            "cardinality": UNKNOWN_CARDINALITY,
            "captures": captures,
            "types": {},
            "options": _options.Options(),
            "epoch": None,
        }
    )
    distribution["registered"] = found["id"]
    return append("received", {"distribution": distribution}, [pipeline])


def unregister(
    service: str, id: str, *, credentials: Credentials | None = None
) -> None:
    """Lets a registered pipeline go, and frees its names.

    Jobs that read it go on. It is deleted when no job has used it for
    `--unused-timeout-ms` of the dispatcher.

    Example:
        >>> with ps.LocalService(workers=1) as service:
        ...     id = ps.register(service.address, ps.Dataset.range(3), "three")
        ...     ps.unregister(service.address, "three")

    Raises:
        NotFoundError: The service has no such pipeline.
    """
    body = {
        "service": _service(service, credentials),
        "id": _called("id", id),
    }
    try:
        _engine.call("unregister", body)
    except PenstockError as error:
        raise refused(type(error), str(error)) from None


def _service(service: str, credentials: Credentials | None) -> Json:
    return {
        "address": address_of(service),
        **(credentials or Credentials()).to_json(),
    }


def _called(what: str, given: str) -> str:
    if not isinstance(given, str) or not given:
        raise refused(InvalidTypeError, f"{what} must be a word; got {given!r}")
    return given
