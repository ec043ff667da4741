"""What keeps faces from being shown against the will of those they belong to.

cover       hides a whole picture that may not be seen
faces       the consent gate: enrolled faces, and whether they may be shown
  consent     who, what for, until when         records, shelf   how that lies on disk
  picture     pictures from outside             embeddings       for the gallery
  intern      inline pictures become ids
audit       who did what: append-only, a chain of hashes          actor   who acts now
  audit_records   a line        audit_head    how far it goes, sealed
  audit_files     on disc       audit_read    shown          audit_check   is it whole?
seal        AES-GCM, for what rests or travels  keys, folder     its keys, the private folder
"""
