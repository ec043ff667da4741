"""`python -m tests.replay.update [NAME ...]`: let the decisions of now be those that are expected.

Look at the difference before it is committed: each line is a change of what a live job does.
"""

from __future__ import annotations

import sys

from tests.replay.golden import SCENES, replay_scene, write_golden


def main() -> None:
    """Replay all recordings, or those that are named."""
    for name in sys.argv[1:] or SCENES:
        report = replay_scene(name)
        write_golden(name, report)
        print(name, report.summary)


if __name__ == "__main__":
    main()
