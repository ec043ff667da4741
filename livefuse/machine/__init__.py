"""What the machine says of itself: memory, a graphics card's memory, heat, power.

    files, graphics    read: a dozen small files of the kernel's, NVIDIA's library. Thin
    reading            what was read, and what of it presses. Pure
    watch              both once a second, on a thread of its own
    processes          what processes use, for whoever gives out work

What a machine does not tell is None, and presses nobody: a container without sensors, a computer
without a battery, no graphics card.
"""

from __future__ import annotations

from livefuse.machine.files import MachineReader, read_rss_bytes
from livefuse.machine.reading import Reading, Usage, judge
from livefuse.machine.watch import MachineWatch

__all__ = ["MachineReader", "MachineWatch", "Reading", "Usage", "judge", "read_rss_bytes"]
