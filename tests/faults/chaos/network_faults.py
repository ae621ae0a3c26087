"""Faults of the network, on the way to Redis or to Postgres: late, silent, cut, or without an answer."""

from faults.chaos.stage import Stage
from faults.tcp_proxy import TcpProxy


def delay_the_network(stage: Stage) -> None:
    """Every packet comes late."""
    proxy = draw_way(stage)
    proxy.delay(stage.draw.uniform(0.02, 0.3))
    stage.let_pass(stage.draw.uniform(0.5, 2.0))
    proxy.go_on()


def hang_the_network(stage: Stage) -> None:
    """Connections stand and nothing passes, then everything does."""
    proxy = draw_way(stage)
    proxy.hang()
    stage.let_pass(stage.draw.uniform(0.5, stage.patience.hang))
    proxy.go_on()


def cut_the_network(stage: Stage) -> None:
    """Every connection is reset."""
    draw_way(stage).cut()


def swallow_replies(stage: Stage) -> None:
    """Requests arrive and are done, COMMIT too, but nobody is told."""
    proxy = draw_way(stage)
    proxy.swallow_replies()
    stage.let_pass(stage.draw.uniform(0.3, 1.5))
    proxy.go_on()


def draw_way(stage: Stage) -> TcpProxy:
    return stage.draw.choice((stage.postgres.proxy, stage.redis.proxy))
