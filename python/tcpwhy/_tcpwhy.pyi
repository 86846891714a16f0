from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, Protocol, TypedDict, final

__version__: str

class TcpwhyError(Exception): ...
class CaptureError(TcpwhyError): ...

class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

_Source = str | PathLike[str] | bytes | bytearray | _Readable

@final
class Table:
    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

@final
class Result:
    @property
    def connections(self) -> Table: ...
    @property
    def exchanges(self) -> Table: ...
    @property
    def spans(self) -> Table: ...
    @property
    def findings(self) -> Table: ...
    @property
    def packets(self) -> int: ...
    @property
    def problems(self) -> list[tuple[str, str]]: ...
    def to_html(self) -> str: ...
    def _repr_html_(self) -> str: ...

class CauseTime(TypedDict):
    cause: str
    side: Literal['client', 'server', 'network'] | None
    time_ns: int

class Prediction(TypedDict):
    total_ns: int
    latencies_ns: list[int]
    complete: bool
    causes: list[CauseTime]

def explain(
    source: _Source | Sequence[_Source],
    *,
    filter: str | None = None,
    threads: int = 0,
    part: tuple[int, int] = (0, 1),
) -> Result: ...
def compare(before: _Source, after: _Source) -> dict[str, Any]: ...
def predict(
    rtt: float,
    *,
    response: int | Sequence[int],
    request: int | Sequence[int] | None = None,
    bandwidth: int | None = None,
    queue: int | None = None,
    mtu: int = 1500,
    server_time: float = 0.0,
    requests: int = 1,
    nodelay: Literal['none', 'client', 'server', 'both'] = 'client',
) -> Prediction: ...
