export const ENGLISH = {
  // The frame of the page.
  skip: "Skip to the picture", job: "Stream", views: "Views", cover: "Cover everything", uncover: "Show again",
  studio: "Studio", monitor: "Health", outputs: "Outputs", noScript: "This page needs JavaScript. The streams can be watched without: see the addresses that livefuse printed.",
  needKey: "This page needs the key of livefuse.", needKeyHint: "Open the address that livefuse printed when it started, or paste the key here.",
  key: "Key", open: "Open", noJobs: "No stream is running yet.", noJobsHint: "Start your camera, or open a stream's address.",
  lost: "The connection to livefuse is lost. It is tried again.", noAnswer: "There is no answer from livefuse", noAnswerHint: "is it still running?",
  fault: "Something on this page failed: {text}",
  job_draft: "draft", job_submitted: "ready", job_running: "running", job_stopped: "stopped", job_failed: "failed", job_queued: "waiting for its turn", job_stopping: "stopping",
  source_whip: "browser or OBS", source_test: "test picture", source_demo: "demo",
  health_LOADING: "Loading", health_ONLINE: "Online", health_DEGRADED_INPUT: "Input in trouble", health_DEGRADED_INFERENCE: "Not treated as asked for", health_ERROR: "Failed", health_STOPPED: "Stopped",

  // Studio: the picture.
  before: "Before", after: "After", split: "Where the two pictures meet", fullScreen: "Full screen", sound: "Sound on", mute: "Sound off",
  rawElsewhere: "The picture before is shown for this page's own camera only.",
  waiting: "The picture is on its way…", loading: "Getting ready. Pictures are covered until the networks are loaded.",
  isCovered: "Everything is covered. Press Show again to go on.",
  jobStopped: "This stream is stopped.", jobFailed: "This stream has failed: {text}", startAgain: "Start again",
  noViewer: "The picture cannot be shown in this browser: {text}", noViewerHint: "It can be watched in VLC or OBS at this address:", noWebRtc: "it has no WebRTC",

  // Studio: where from.
  source: "Where the picture comes from", device: "Camera", camera: "Camera {number}", microphone: "With sound", address: "A stream's address",
  addressHint: "rtsp://, rtmp://, srt:// or http://, or listen:rtmp://127.0.0.1:1935/live/key to be sent to",
  start: "Open", startCamera: "Start my camera", stop: "Stop my camera", starting: "Starting. Networks are being loaded…", asking: "Your browser asks whether the camera may be used.",
  cameraRefused: "The browser does not give the camera.", cameraRefusedHint: "Allow it beside the address bar, then press Start my camera again.",
  cameraMissing: "There is no camera here.", cameraMissingHint: "Plug one in, or give a stream's address.",
  cameraBusy: "The camera is used by another program.", cameraBusyHint: "Close that program, then press Start my camera again.",
  cameraInsecure: "Browsers give a camera to https and localhost only.", cameraInsecureHint: "Open this page as http://127.0.0.1:{port} on the machine itself, or through https.",
  cameraLost: "The connection of your camera was ended.", cameraLostHint: "Press Start my camera to go on.",
  needAddress: "Where is the stream?", needAddressHint: "Give its address, for example rtsp://192.168.1.20/live",

  // Studio: what is done.
  operations: "What is done, in this order", needed: "for {names}", busy: "Getting ready…",
  operation_detect: "Find faces", operation_align: "Find landmarks", operation_identify: "Recognise people", operation_background: "Hide the room", operation_swap: "Another face",
  operation_puppet: "Portrait that moves", operation_beautify: "Beautify", operation_enhance: "Sharper faces", operation_blur: "Blur faces",
  face: "Face", faceNone: "none", kind_drawn: "drawn", kind_person: "has agreed",
  blend: "How much of it", whom: "Chosen faces", whom_all: "all", whom_largest: "the largest", "whom_left-most": "the one furthest left", whom_id: "as set elsewhere", whom_reference: "people of the gallery",
  blurWhom: "Who is blurred", blur_auto: "whoever has no new face", blur_all: "everybody", blur_chosen: "the chosen faces", blur_others: "all but the chosen faces",
  picture: "A person's picture", pictureFile: "Picture", drop: "Drop a picture here, or choose a file",
  consentHint: "Only with the consent of the person shown; it is kept with the picture, and the face is refused when it ends.",
  consent: "Who has agreed", consentFor: "To what", consentUntil: "Until", name: "Name in the list", use: "Use this picture", needPicture: "Which picture?", needPictureHint: "Choose a file first.",
  look: "Look", lookOwn: "own amounts", amounts: "Single amounts", enhancer: "With a network, where one is there",
  group_master: "Strength", group_skin: "Skin", group_tone: "Tone", group_shape: "Shape", group_makeup: "Make-up", group_colour: "Colours",

  // Health.
  latency: "Added latency", fps: "Frames a second", steps: "Where the time of a frame goes", budget: "a frame's time: {ms} ms", costsMost: "Costs most: {name}",
  state: "State", rung: "Spared under load", rungWhy: "Because", rungPresses: "Presses now", dropped: "Frames given up", droppedNone: "None: every frame was shown.", lines: "Input and outputs",
  input: "Input", output: "Output", encoder: "Encoder", token: "Token of the last frame", tokenLog: "What was done to the last frame", tokenNone: "No frame yet.",
  what: "what", why: "why", took: "ms", in: "in", out: "out", p50: "p50", p95: "p95", times: "{count}×", reconnects: "reconnects", reason: "reason", count: "frames", faces: "Faces", networks: "Networks", notes: "Notes", viewers: "{count} watching",
  noFigures: "There are no figures: the stream is not running.", fellBack: "{provider}, instead of {wanted}",
  step_decode: "decode", step_encode: "encode", step_detect: "find faces", step_align: "landmarks", step_identify: "recognise", step_background: "hide the room", step_swap: "another face", step_puppet: "portrait", step_beautify: "beautify", step_enhance: "sharper", step_blur: "blur",
  rung_everything: "nothing", rung_enhance_half: "faces are enhanced on every 2nd picture", rung_enhance_off: "faces are not enhanced", rung_detect_5th: "faces are looked for on every 5th picture", rung_align_half: "landmarks are found on every 2nd picture", rung_frames_half: "every 2nd picture only", rung_cover_only: "every picture is covered whole",
  cause_deadline: "frames took longer than a frame's time", cause_queue_delay: "frames had to wait", cause_memory_constrained: "memory is short", cause_thermal: "the machine is hot", cause_low_power: "little power", cause_gpu_memory: "the graphics card's memory is short",
  drop_late: "came too late to be shown", drop_late_packets: "packets too late", drop_pool: "no free picture buffer", drop_pipeline_busy: "faces took too long", drop_encoder_busy: "encoder took too long", drop_half_rate: "every 2nd, spared under load", drop_abandoned: "given up when a step hung", drop_restarting: "while the pipeline was made anew", drop_behind_hold: "older than the held picture", drop_encoder_failed: "encoder failed",
  line_connecting: "connecting", line_live: "live", line_stalled: "sends nothing", line_lost: "lost", line_refused: "refused", line_closed: "closed", line_running: "running", line_stopped: "stopped", line_failed: "failed",

  // Outputs.
  addresses: "Watch and send", secret: "These addresses hold the key: whoever has them can watch and change everything.",
  copy: "Copy", copied: "Copied", copyFailed: "Select it and press Ctrl+C", show: "Show", hide: "Hide",
  row_obsMedia: "OBS, media source", row_obsBrowser: "OBS, browser source", row_vlc: "VLC, open network stream", row_ffplay: "ffplay", row_obsWhip: "Send from OBS by WHIP: server", row_whipToken: "Send from OBS by WHIP: bearer token",
  whipOther: "To send from OBS, open a stream of the address whip: first.", openWhip: "Open it",
  targets: "Sends to", targetsNone: "No target yet: the picture is only watched.", addTarget: "Add a target", add: "Add", remove: "Remove", targetHint: "rtmp://server/app/key, or a file: show.mp4",
};
