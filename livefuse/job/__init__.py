"""One stream's life: job.py says on one page what a job is made of, who builds and mends it.

    job.py           a running stream: start, change, stop
    spec.py          what a job is to do, checked before anything is opened
    builder.py       makes its parts; outputs.py its outputs, loading.py waits for its networks
    crew.py          starts its threads, looks at them, replaces what hangs or has died
    intake.py        frames of an ingest into the first ring, whichever ingest it is by now
    stages.py        the loops between the rings
    treatment.py     the pipeline at work on one frame, in time or not
    picture_out.py   frames in order, marked, encoded once, the last one held while none come;
                     sound_out.py the sound beside them
    load_control.py  how much of the machine may be used: the governor's rung
    report.py        its figures; health.py its state in one word; watchdog.py, memory.py limits

What lies below (ingest, pipeline, publish, safety) knows nothing of jobs.
"""
