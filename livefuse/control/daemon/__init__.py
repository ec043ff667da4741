"""`livefuse serve`: keeps jobs, starts the worker processes that run them, passes requests on.

life.py     the phases of a job and which may follow which
records.py  what is kept of a job
store.py    where it is kept, so that it survives the end of everything; answers.py: what was
            answered to requests that may come again; database.py: SQLite beneath both
"""
