// Where the picture comes from: this browser's camera, or a stream's address.

import { Problem, ask } from "/web/api.js";
import { make, setText } from "/web/dom.js";
import { publish } from "/web/rtc.js";
import { say } from "/web/words.js";

export const CAMERA_JOB = "camera";
const END_MS = 3000;
const HINTS = {
  NotAllowedError: () => [say("cameraRefused"), say("cameraRefusedHint")],
  SecurityError: () => [say("cameraRefused"), say("cameraRefusedHint")],
  NotReadableError: () => [say("cameraBusy"), say("cameraBusyHint")],
  AbortError: () => [say("cameraBusy"), say("cameraBusyHint")],
};

/**
 * Return the card: `element`, `start()`, and `camera`, which outlives it: given to the next card as
 * `view` it goes on. `onChange` is told of this page's own pictures.
 */
export function createSource(page, onChange, view = { raw: null, line: null, isBusy: false, aside: [] }) {
  const problem = make("p", { class: "problem", role: "alert", hidden: true, id: "source-problem" });
  const progress = make("p", { class: "quiet", role: "status", id: "source-progress" });
  const device = make("select", { id: "device" });
  const hasSound = make("input", { type: "checkbox", role: "switch", id: "microphone" });
  const address = make("input", { type: "text", id: "address", autocomplete: "off", spellcheck: "false", "aria-describedby": "address-hint" });
  const startButton = make("button", { type: "button", id: "start-camera", class: "strong" }, say("startCamera"));
  const stopButton = make("button", { type: "button", id: "stop-camera", hidden: true }, say("stop"));
  const openButton = make("button", { type: "submit", id: "open-stream" }, say("start"));

  function show() {
    startButton.hidden = view.raw !== null;
    stopButton.hidden = view.raw === null;
    startButton.disabled = openButton.disabled = view.isBusy;
    onChange(view.raw);
  }

  function letGo() {
    view.line?.close();
    view.line = null;
    for (const track of view.raw?.getTracks() ?? []) track.stop();
    view.raw = null;
    view.show();
  }

  async function run(work) {
    if (view.isBusy) return;
    problem.hidden = true;
    view.isBusy = true;
    view.show();
    try {
      await work();
    } catch (error) {
      page.tell(error, problem);
    } finally {
      setText(progress, "");
      view.isBusy = false;
      view.show();
    }
  }

  async function start() {
    setText(progress, say("asking"));
    if (view.raw === null) view.raw = await openCamera(device.value, hasSound.checked);
    for (const track of view.raw.getVideoTracks()) track.addEventListener("ended", () => view.lose());
    fillDevices(device, view.raw);
    setText(progress, say("starting"));
    try {
      await startJob();
    } catch (error) {
      if (page.isConnected()) letGo();
      throw error;
    }
  }

  async function startJob() {
    const jobs = await page.refresh();
    if (jobs.some((job) => job.id === CAMERA_JOB)) await forgetJob();
    await ask("POST", "/v1/jobs", { id: CAMERA_JOB, spec: createSpec(page, "whip:"), start: true });
    await sendCamera();
    await page.refresh();
    page.look(CAMERA_JOB);
    // What was only shown for want of a camera makes room for it.
    const drawn = jobs.filter((job) => job.state === "running" && isDrawn(job));
    await Promise.all(drawn.map((job) => ask("POST", `/v1/jobs/${job.id}/stop`)));
    view.aside = drawn.map((job) => job.id);
    await page.refresh();
  }

  /** What made room comes back. */
  async function bringBack() {
    const jobs = await page.refresh();
    const waiting = jobs.filter((job) => view.aside.includes(job.id) && job.state === "stopped");
    view.aside = [];
    await Promise.all(waiting.map((job) => ask("POST", `/v1/jobs/${job.id}/start`)));
    await page.refresh();
  }

  /** Lines first, so that nobody hangs up on a job that is gone. */
  async function forgetJob() {
    await Promise.all([view.line?.close(), page.state.job === CAMERA_JOB ? page.hangUp() : null]);
    view.line = null;
    await ask("DELETE", `/v1/jobs/${CAMERA_JOB}`);
  }

  async function sendCamera() {
    view.line?.close();
    view.line = await publish(`/v1/jobs/${CAMERA_JOB}/whip`, view.raw);
    view.line.onGone(() => view.comeBack());
  }

  /** The line to the worker broke: send again. Who has stopped the job or taken it over is let. */
  async function comeBack(isRestarted = false) {
    if (view.raw === null || view.isBusy) return;
    await run(async () => {
      try {
        const jobs = await page.refresh();
        const job = jobs.find((one) => one.id === CAMERA_JOB);
        if (job?.state === "running") await sendCamera();
        else if (job === undefined && isRestarted) await start();
        else throw new Problem(0, say("cameraLost"));
      } catch (error) {
        if (!page.isConnected()) return; // tried when it is back
        letGo();
        throw new Problem(0, say("cameraLost"), say("cameraLostHint"));
      }
    });
  }

  async function lose() {
    if (view.raw === null) return;
    letGo();
    throw new Problem(0, say("cameraLost"), say("cameraLostHint"));
  }

  startButton.addEventListener("click", () => run(start));
  stopButton.addEventListener("click", () => run(async () => {
    await forgetJob();
    letGo();
    await bringBack();
  }));
  if (!view.show) addEventListener("pagehide", () => view.line?.close());
  // What goes on while cards change speaks with the one that is shown.
  Object.assign(view, { show, comeBack, lose: () => run(lose) });
  hasSound.checked = Boolean(view.raw?.getAudioTracks().length);
  fillDevices(device, view.raw);

  const form = make("form", { class: "row" }, make("label", { for: "address" }, say("address")), address, openButton);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(async () => {
      if (!address.value.trim()) throw new Problem(0, say("needAddress"), say("needAddressHint"));
      setText(progress, say("starting"));
      const job = await ask("POST", "/v1/jobs", { spec: createSpec(page, address.value.trim()), start: true });
      await page.refresh();
      page.look(job.id);
    });
  });
  return {
    camera: view,
    show,
    start: () => run(start),
    onBack: (jobs) => {
      if (!jobs.some((job) => job.id === CAMERA_JOB)) comeBack(true);
    },
    onEnd: (job) => {
      const { line } = view;
      if (job !== CAMERA_JOB || line === null || view.isBusy) return;
      // Not by this page. A worker that is ending is given the time to be gone.
      setTimeout(() => view.line === line && comeBack(), END_MS);
    },
    element: make(
      "section", { class: "card" },
      make("h2", {}, say("source")),
      make("div", { class: "row" },
        make("label", { for: "device" }, say("device")), device,
        make("label", { class: "check" }, hasSound, say("microphone")), startButton, stopButton),
      form,
      make("p", { class: "quiet small", id: "address-hint" }, say("addressHint")),
      navigator.mediaDevices ? null : make("p", { class: "quiet", id: "insecure" }, describeInsecure().join(" ")),
      progress,
      problem,
    ),
  };
}

/** A drawn picture that goes nowhere but to players and files: nobody's stream is taken off air. */
function isDrawn(job) {
  const isRemote = (target) => /^\w+:\/\//.test(target);
  return /^(demo|test):/.test(job.spec?.source ?? "") && !job.spec.targets.some(isRemote);
}

const describeInsecure = () => [say("cameraInsecure"), say("cameraInsecureHint", { port: location.port })];

function createSpec(page, source) {
  // What is done now goes on with the other picture; what is covered stays covered.
  const token = page.state.figures?.token;
  const operations = token?.operations?.length ? token.operations : ["detect", "blur"];
  const spec = { source, operations };
  if (token?.source_face) spec.source_face = token.source_face;
  if (token?.parameters) spec.parameters = token.parameters;
  return spec;
}

async function openCamera(id, sound) {
  if (!navigator.mediaDevices) throw new Problem(0, ...describeInsecure());
  const video = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } };
  if (id) video.deviceId = { exact: id };
  try {
    return await navigator.mediaDevices.getUserMedia({ video, audio: sound });
  } catch (error) {
    const words = HINTS[error.name]?.() ?? [say("cameraMissing"), say("cameraMissingHint")];
    throw new Problem(0, ...words);
  }
}

/** List the cameras; the one that `raw` comes from is chosen. */
async function fillDevices(select, raw) {
  const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
  const cameras = devices.filter((one) => one.kind === "videoinput");
  const chosen = raw?.getVideoTracks()[0]?.getSettings().deviceId ?? select.value;
  select.replaceChildren(
    ...cameras.map((one, index) => make("option", { value: one.deviceId }, one.label || say("camera", { number: index + 1 }))),
  );
  if (!cameras.length) select.append(make("option", { value: "" }, say("cameraMissing")));
  if (chosen) select.value = chosen;
  select.disabled = cameras.length < 2;
}
