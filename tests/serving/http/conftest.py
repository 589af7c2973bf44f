"""One server for all tests of a file that need nothing special."""

from collections.abc import Iterator

import httpx
import pytest

from specdec.serving import Service
from tests.serving.http.servers import chatty, service_of, serving


@pytest.fixture(scope="module")
def service() -> Service:
    """Toys that count and chat."""
    return service_of(loader=chatty)


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[httpx.Client]:
    """A client of theirs."""
    with serving(service) as client:
        yield client
