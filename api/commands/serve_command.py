"""Run `rebalance-lab serve`: settings from a file and from flags, then uvicorn until a signal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rebalance_lab.api.terminal import BadInput, read_input
from rebalance_lab.assignors.json_contract import ContractError

if TYPE_CHECKING:
    from rebalance_lab.api.service.service_settings import Settings


def serve_command(
    *,
    config: str | None,
    host: str | None,
    port: int | None,
    workers: int | None,
    clusters: Sequence[str],
    allow_anonymous: bool,
    allowed_hosts: Sequence[str],
    log_level: str,
    new_token: str | None,
) -> None:
    if new_token is not None:
        print_token(new_token)
        return
    from rebalance_lab.api.service.service_settings import Settings, check_host_names, check_reach, read_settings

    settings = Settings() if config is None else read_settings(read_input(config).decode("utf-8", "replace"))
    given: dict[str, Any] = {"host": host, "port": port, "workers": workers, "allow_anonymous": allow_anonymous or None}
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
    settings = replace(settings, clusters={**settings.clusters, **named_clusters(clusters)})
    check_host_names(allowed_hosts, "--allowed-host")
    settings = replace(settings, allowed_hosts=(*settings.allowed_hosts, *allowed_hosts))
    check_reach(settings)
    if log_level not in ("debug", "info", "warning", "error"):
        raise ContractError("--log-level", f"expected debug, info, warning or error, got {log_level}")
    run(settings, log_level)


def print_token(name: str) -> None:
    from rebalance_lab.api.service.connection.auth import new_token
    from rebalance_lab.api.service.service_settings import NAME

    if not NAME.fullmatch(name):
        raise ContractError("--new-token", "a name is made of letters, digits, '.', '_' and '-'")
    token, kept = new_token()
    sys.stdout.write(
        f"# Hand this out; it is shown only now:\n# {token}\n\n# Into the file of --config:\n"
        f'[[tokens]]\nname = "{name}"\nsha256 = "{kept}"\nrequests_per_minute = 600\n'
    )


def named_clusters(texts: Sequence[str]) -> dict[str, Any]:
    from rebalance_lab.api.service.service_settings import read_cluster

    found = {}
    for text in texts:
        name, equals, bootstrap = text.partition("=")
        if not equals or not bootstrap:
            raise ContractError("--cluster", f"expected NAME=HOST:PORT, got {text!r}")
        found[name] = read_cluster(name, {"bootstrap": bootstrap}, "--cluster")
    return found


def run(settings: Settings, log_level: str) -> None:
    import uvicorn

    from rebalance_lab.api.service.app import create_app
    from rebalance_lab.api.service.connection.deadlines import protocol_class
    from rebalance_lab.api.service.connection.json_logs import set_up

    set_up(log_level)
    app, service = create_app(settings)

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            service.stop_soon()
            super().handle_exit(sig, frame)

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                port = self.servers[0].sockets[0].getsockname()[1]
                sys.stdout.write(f"http://{shown_host(settings.host)}:{port}\n")
                sys.stdout.flush()

    server = Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            http=protocol_class(settings.limits),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=int(settings.limits.idle_s),
            timeout_graceful_shutdown=int(settings.graceful_s),
            backlog=512,
        )
    )
    try:
        server.run()
    except SystemExit as ended:
        if ended.code:
            raise BadInput(f"{settings.host}:{settings.port} cannot be listened on, or the start failed") from None


def shown_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
