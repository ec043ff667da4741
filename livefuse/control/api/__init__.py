"""The HTTP API of one worker, and the streams and the page that are served beside it.

    server.py     listens; builds the application from the routes
    routes.py     every address on one page: method, path, handler, what goes in and comes out
    doorway.py    connections, bounded                     figures.py keep nobody waiting
    guard.py      host, origin and key: who is let in      key.py     the key itself
    problems.py   errors as problem details (RFC 9457)
    context.py    what handlers are given                  body.py    requests read, answers made
    jobs.py token.py outputs.py source.py webrtc.py        handlers by subject
    streams.py    live.flv, live.ts, snapshot.jpg          events.py  figures as server-sent events
    shares.py     how many of few places one key may have
    catalogue.py  what can be asked for                    probes.py  metrics, health, readiness
    audit.py      who did what, for operators
    views.py      what is sent, as types                   openapi.py the description of all this

Handlers run on the control loop and touch no pixel; what takes time is done in a thread.
"""
