"""SIGKILL for the daemon and its workers while a client works: nothing that was answered is lost.

`python -m tests.kill --rounds 50 --seed 7` plays it and prints how long jobs took to come back;
three rounds run with the other tests.

ledger.py   what the client was told, and so what has to be there
client.py   makes, changes and deletes jobs all the time
rounds.py   kills, waits, compares
"""
