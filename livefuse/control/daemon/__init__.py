"""`livefuse serve`: keeps jobs, starts the worker processes that run them, passes requests on.

    serve.py       all of it brought up and taken down       folder.py   for one daemon at a time
    app.py         its address: every route of the API       context.py  what handlers are given
    jobs.py changes.py events.py probes.py                   handlers of its own, by subject
    forward.py     to a job's worker and back                again.py    requests that come again
    supervisor.py  jobs that are wanted run                  lives.py    what is held of each
    stint.py       a job in one worker                       resume.py   what it goes on with
    pool.py        workers, some of them in reserve          worker.py   one, as seen from here
    child.py child_session.py  the other end: a worker       checks.py   a look at what could run
    revocation.py child_guests.py  keys that open no more    owned.py    whose jobs, for commands
    doorkeeper.py  who is let in, who waits                  admission.py  by which rule
    memory_guard.py  who is too large
    life.py        the phases of a job and which may follow which
    records.py     what is kept of a job                     views.py    and what is shown of it
    store.py       where it is kept, so that it survives the end of everything; book.py: the same
                   in memory; answers.py: what was answered; database.py: SQLite beneath
    reload.py reloader.py child_settings.py                  another configuration, while jobs run
    audit.py log.py figures.py exposition.py notify.py       for those who watch

Everything runs on one loop but what waits for the disc. A job that is wanted is in the store before
a worker is told; what a worker was told with success is there before the client hears of it.
"""
