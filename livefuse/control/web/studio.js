// Before and after side by side, where the picture comes from, and the controls beside it.

import { Problem, ask } from "/web/api.js";
import { createControls } from "/web/controls.js";
import { make, setText } from "/web/dom.js";
import { publish, watch } from "/web/rtc.js";
import { say } from "/web/words.js";

const WATCH_AGAIN_MS = 1500;
const CAMERA_JOB = "camera";

export function createStudio(root, page) {
  const view = {
    before: make("video", { class: "before", autoplay: true, playsinline: true, id: "before" }),
    after: make("video", { class: "after", autoplay: true, playsinline: true, id: "after" }),
    raw: null, // this page's own camera
    up: null, // its line to the worker
    down: null, // the worker's line to here
    job: null,
    timer: null,
  };
  view.before.muted = true;
  view.after.muted = true;
  const stage = createStage(view);
  const source = createSource(view, page);
  const controls = createControls(page);
  root.append(make("div", { class: "columns" }, make("div", { class: "wide" }, stage, source), controls.element));

  return {
    onJob: (job) => {
      view.job = job;
      watchJob(view, page);
      showBefore(view);
      controls.onJob(job);
    },
    onFigures: (figures) => controls.onFigures(figures),
  };
}

function createStage(view) {
  const split = make("input", {
    type: "range", min: "0", max: "100", value: "50", class: "split", id: "split",
    "aria-label": say("split"),
  });
  const stage = make(
    "div",
    { class: "stage", id: "stage" },
    view.after,
    view.before,
    make("span", { class: "tag left" }, say("before")),
    make("span", { class: "tag right" }, say("after")),
    split,
  );
  const move = () => stage.style.setProperty("--split", `${split.value}%`);
  split.addEventListener("input", move);
  move();
  const note = make("p", { class: "quiet", id: "raw-note" }, say("rawElsewhere"));
  const sound = make("button", { type: "button", class: "plain", id: "sound", "aria-pressed": "false" }, say("sound"));
  sound.addEventListener("click", () => {
    view.after.muted = !view.after.muted;
    sound.setAttribute("aria-pressed", String(!view.after.muted));
    setText(sound, say(view.after.muted ? "sound" : "mute"));
  });
  const whole = make("button", { type: "button", class: "plain" }, say("fullScreen"));
  whole.addEventListener("click", () => stage.requestFullscreen?.());
  return make("div", {}, stage, make("div", { class: "row" }, sound, whole, note));
}

function showBefore(view) {
  const isOwn = view.raw !== null && view.job === CAMERA_JOB;
  document.getElementById("stage").classList.toggle("one", !isOwn);
  document.getElementById("raw-note").hidden = isOwn;
  view.before.srcObject = isOwn ? view.raw : null;
}

/** Play the job that is looked at; a picture that is not there yet is asked for again. */
async function watchJob(view, page) {
  clearTimeout(view.timer);
  view.down?.close();
  view.down = null;
  view.after.srcObject = null;
  const job = view.job;
  if (job === null) return;
  const again = () => {
    if (view.job === job) view.timer = setTimeout(() => watchJob(view, page), WATCH_AGAIN_MS);
  };
  try {
    const line = await watch(`/v1/jobs/${job}/whep`, view.after);
    if (view.job !== job) {
      line.close();
      return;
    }
    view.down = line;
    line.peer.addEventListener("connectionstatechange", () => {
      if (["failed", "disconnected"].includes(line.peer.connectionState)) again();
    });
  } catch (error) {
    if (error.status === 401) page.tell(error);
    again();
  }
}

function createSource(view, page) {
  const problem = make("p", { class: "problem", role: "alert", hidden: true, id: "source-problem" });
  const progress = make("p", { class: "quiet", role: "status", id: "source-progress" });
  const device = make("select", { id: "device" });
  const hasSound = make("input", { type: "checkbox", id: "microphone" });
  const address = make("input", { type: "text", id: "address", placeholder: "rtsp://…", autocomplete: "off" });
  const startButton = make("button", { type: "button", id: "start-camera", class: "strong" }, say("startCamera"));
  const stopButton = make("button", { type: "button", id: "stop-camera", hidden: true }, say("stop"));
  const openButton = make("button", { type: "button", id: "open-stream" }, say("start"));

  const run = (work) => async () => {
    problem.hidden = true;
    startButton.disabled = openButton.disabled = true;
    try {
      await work();
    } catch (error) {
      page.tell(error, problem);
    } finally {
      setText(progress, "");
      startButton.disabled = openButton.disabled = false;
    }
  };
  startButton.addEventListener("click", run(async () => {
    setText(progress, say("asking"));
    view.raw = await openCamera(device.value, hasSound.checked);
    fillDevices(device);
    setText(progress, say("starting"));
    await startCamera(view, page);
    startButton.hidden = true;
    stopButton.hidden = false;
  }));
  stopButton.addEventListener("click", run(async () => {
    stopCamera(view);
    startButton.hidden = false;
    stopButton.hidden = true;
    await ask("DELETE", `/v1/jobs/${CAMERA_JOB}`);
    await page.refresh();
  }));
  openButton.addEventListener("click", run(async () => {
    setText(progress, say("starting"));
    const job = await ask("POST", "/v1/jobs", { spec: createSpec(page, address.value.trim()), start: true });
    await page.refresh();
    await page.look(job.id);
  }));
  fillDevices(device);
  return make(
    "fieldset",
    { class: "card" },
    make("legend", {}, say("source")),
    make("div", { class: "row" },
      make("label", { for: "device" }, say("device")), device,
      make("label", { class: "check" }, hasSound, say("microphone")), startButton, stopButton),
    make("div", { class: "row" },
      make("label", { for: "address" }, say("stream")), address, openButton),
    progress,
    problem,
  );
}

function createSpec(page, source) {
  // What is done now goes on with the other picture.
  const token = page.state.figures?.token;
  const operations = token?.operations?.length ? token.operations : ["detect", "blur"];
  const spec = { source, operations };
  if (token?.source_face) spec.source_face = token.source_face;
  if (token?.parameters) spec.parameters = { ...token.parameters, cover_all: false };
  return spec;
}

async function openCamera(id, sound) {
  const video = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } };
  if (id) video.deviceId = { exact: id };
  try {
    return await navigator.mediaDevices.getUserMedia({ video, audio: sound });
  } catch (error) {
    const key = { NotAllowedError: "cameraRefused", NotReadableError: "cameraBusy" }[error.name] ?? "cameraMissing";
    throw new Problem(0, say(key), say(`${key}Hint`));
  }
}

async function startCamera(view, page) {
  const jobs = await page.refresh();
  if (jobs.some((job) => job.id === CAMERA_JOB)) await ask("DELETE", `/v1/jobs/${CAMERA_JOB}`);
  try {
    await ask("POST", "/v1/jobs", { id: CAMERA_JOB, spec: createSpec(page, "whip:"), start: true });
    view.up?.close();
    view.up = await publish(`/v1/jobs/${CAMERA_JOB}/whip`, view.raw);
  } catch (error) {
    stopCamera(view);
    throw error;
  }
  // What was only shown for want of a camera makes room for it.
  const drawn = jobs.filter((job) => job.state === "running" && /^(demo|test):/.test(job.spec?.source ?? ""));
  await Promise.all(drawn.map((job) => ask("POST", `/v1/jobs/${job.id}/stop`)));
  await page.refresh();
  await page.look(CAMERA_JOB);
}

function stopCamera(view) {
  view.up?.close();
  view.up = null;
  for (const track of view.raw?.getTracks() ?? []) track.stop();
  view.raw = null;
  showBefore(view);
}

async function fillDevices(select) {
  const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
  const cameras = devices.filter((one) => one.kind === "videoinput");
  const chosen = select.value;
  select.replaceChildren(
    ...cameras.map((one, index) => make("option", { value: one.deviceId }, one.label || `${say("camera")} ${index + 1}`)),
  );
  if (chosen) select.value = chosen;
  select.disabled = cameras.length < 2;
}
