"""What keeps faces from being shown against the will of those they belong to.

cover       hides a whole picture that may not be seen
faces       enrolled faces: how they come, change and go           gate   may one be shown?
  consent     who, for which jobs, until when   evidence         what shows that they agreed
  live        they did, before a camera         records, shelf   how that lies on disk
  picture     pictures from outside             embeddings       for gallery and verdicts
  intern      inline pictures become ids
deny        faces that are refused by likeness  deny_shelf, deny_watch   on disk, while a job runs
refusals    people who are refused by name      names, confusables       however it is written
audit       who did what: append-only, a chain of hashes          actor   who acts now
  audit_records   a line        audit_head    how far it goes, sealed
  audit_files     on disc       audit_read    shown          audit_check   is it whole?
  audit_anchor    how far it went, told outside of its folder
seal        AES-GCM, for what rests or travels  keys, folder     its keys, the private folder
"""
