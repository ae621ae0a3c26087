"""What can be measured, part by part, in the order of the table."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks import costs, cpu, fairness, idle, latency, memory, publishing, pushing, throughput
from benchmarks.lines import Line, Measured
from benchmarks.plan import Plan
from benchmarks.servers import Servers
from petard_worker.cli.bench import Part


class Measurement(NamedTuple):
    """Lines that are measured together."""

    title: str
    lines: Callable[[Plan], Sequence[Line]]
    measure: Callable[[Servers, Plan], Measured]


PARTS = {
    Part.THROUGHPUT: Measurement("Throughput", throughput.lines, throughput.measure),
    Part.PUSH: Measurement("Push and import", pushing.lines, pushing.measure),
    Part.PUBLISH: Measurement("Publish and follow", publishing.lines, publishing.measure),
    Part.LATENCY: Measurement("Latency", latency.lines, latency.measure),
    Part.FAIRNESS: Measurement("Fairness", fairness.lines, fairness.measure),
    Part.IDLE: Measurement("Idle", idle.lines, idle.measure),
    Part.MEMORY: Measurement("Memory", memory.lines, memory.measure),
    Part.CPU: Measurement("CPU", cpu.lines, cpu.measure),
    Part.COSTS: Measurement("Single costs", costs.lines, costs.measure),
}
