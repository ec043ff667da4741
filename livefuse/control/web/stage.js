// The picture: before and after with the split, and what is said where no picture is.

import { ask, withKey } from "/web/api.js";
import { make, setText } from "/web/dom.js";
import { play, watch } from "/web/rtc.js";
import { isChinese, say, sayRefusal } from "/web/words.js";

const WATCH_AGAIN_MS = 1500;
const TRIES_UNTIL_SAID = 3;
const NO_CODEC = 406;
// A browser may fetch a codec meanwhile, as Firefox does in its first minutes.
const NO_CODEC_AGAIN_MS = 20000;

/**
 * Return the stage: `element`, `watch(job)`, `show(job, figures)` what is the matter, and
 * `showBefore(stream)` for this page's own camera (null: none).
 */
export function createStage(page) {
  const before = make("video", { class: "before", autoplay: true, playsinline: true, id: "before" });
  const after = make("video", { class: "after", autoplay: true, playsinline: true, id: "after" });
  before.muted = after.muted = true;
  const split = make("input", {
    type: "range", min: "0", max: "100", value: "50", class: "split", id: "split", "aria-label": say("split"),
  });
  const said = make("p", { id: "stage-said", role: "status" });
  const again = make("button", { type: "button", id: "start-again", class: "strong", hidden: true }, say("startAgain"));
  const curtain = make("div", { class: "curtain", hidden: true }, said, again);
  const picture = make(
    "div", { class: "stage one", id: "stage" },
    after, before, make("span", { class: "tag left" }, say("before")), make("span", { class: "tag right" }, say("after")), split, curtain,
  );
  const move = () => picture.style.setProperty("--split", `${split.value}%`);
  split.addEventListener("input", move);
  move();
  after.addEventListener("resize", () => {
    if (after.videoWidth) picture.style.aspectRatio = `${after.videoWidth} / ${after.videoHeight}`;
  });

  const note = make("p", { class: "quiet", id: "raw-note" }, say("rawElsewhere"));
  const sound = createSound(after);
  const whole = make("button", { type: "button", class: "plain" }, say("fullScreen"));
  whole.addEventListener("click", () => picture.requestFullscreen?.());
  const fallback = make("p", { class: "problem", id: "no-viewer", role: "status", hidden: true });
  const view = { job: null, line: null, timer: null, turn: 0, tries: 0, isWatching: false, after, fallback };

  again.addEventListener("click", async () => {
    again.disabled = true;
    try {
      await page.startAgain(view.job);
    } catch (error) {
      page.tell(error);
    } finally {
      again.disabled = false;
    }
  });
  addEventListener("pagehide", () => view.line?.close());

  return {
    element: make("div", {}, picture, make("div", { class: "row" }, sound.element, whole, note), fallback),
    watch: (job, isBack) => {
      hangUp(view, page, !isBack); // a worker that was started again knows of no lines
      view.job = job;
      view.tries = 0;
      if (isOnAir(page.getJob()?.statistics)) watchJob(view, page);
    },
    show: (job, figures) => {
      // Before its input is there a job has no picture to ask for.
      if (!view.isWatching && view.job !== null && isOnAir(figures)) watchJob(view, page);
      const [text, canStart] = describe(job, figures, view);
      curtain.hidden = !text;
      curtain.classList.toggle("over", Boolean(job) && job.state === "running");
      setText(said, text);
      again.hidden = !canStart;
      sound.show(Boolean(figures?.media?.audio));
    },
    hangUp: () => {
      const told = hangUp(view, page);
      view.job = null;
      return told;
    },
    showBefore: (stream) => {
      picture.classList.toggle("one", stream === null);
      note.hidden = stream !== null;
      if (before.srcObject !== stream) before.srcObject = stream;
    },
  };
}

/** Return what is said over the picture (nothing: it speaks for itself), and whether to start again. */
function describe(job, figures, { after, fallback }) {
  if (!job) return [`${say("noJobs")} ${say("noJobsHint")}`, false];
  if (job.state === "failed") return [say("jobFailed", { text: job.error }), true];
  if (job.state === "stopped" || job.state === "submitted") return [say("jobStopped"), true];
  if (figures?.token?.parameters?.cover_all) return [say("isCovered"), false];
  if (figures?.health === "LOADING" && figures.state !== "connecting") return [say("loading"), false];
  const hasPicture = after.srcObject !== null && after.videoWidth > 0;
  return [hasPicture || !fallback.hidden ? "" : say("waiting"), false];
}

function createSound(video) {
  const element = make("button", { type: "button", class: "plain", id: "sound", "aria-pressed": "false", hidden: true }, say("sound"));
  element.addEventListener("click", () => {
    video.muted = !video.muted;
    element.setAttribute("aria-pressed", String(!video.muted));
    setText(element, say(video.muted ? "sound" : "mute"));
  });
  return { element, show: (hasSound) => (element.hidden = !hasSound) };
}

const isOnAir = (figures) => figures?.frames_out > 0 && !["stopping", "stopped", "failed"].includes(figures.state);

/** Let go of the picture; resolves when the worker knows. */
function hangUp(view, page, isTold = true) {
  clearTimeout(view.timer);
  const line = view.line;
  view.line = null;
  view.after.srcObject = null;
  view.fallback.hidden = true;
  view.isWatching = false;
  view.turn += 1; // whoever asked before comes too late
  return line?.close(isTold && page.state.jobs.some((job) => job.id === view.job && job.state === "running"));
}

/** Play the job that is looked at; a picture that is not there yet is asked for again. */
async function watchJob(view, page) {
  const { hidden } = view.fallback;
  hangUp(view, page);
  view.fallback.hidden = hidden; // what was said stands until there is a picture
  view.isWatching = true;
  const { job, turn } = view;
  const again = (wait_ms = WATCH_AGAIN_MS) => {
    if (view.turn !== turn) return;
    clearTimeout(view.timer);
    view.timer = setTimeout(() => watchJob(view, page), wait_ms);
  };
  try {
    const line = await watch(`/v1/jobs/${job}/whep`);
    if (view.turn !== turn) {
      line.close();
      return;
    }
    view.line = line;
    play(line, view.after);
    view.tries = 0;
    view.fallback.hidden = true;
    line.onGone(again);
  } catch (error) {
    if (error.status === 401) page.tell(error);
    view.tries += 1;
    // A job that is not there or not running yet is said elsewhere.
    const isOurs = ![401, 404, 409].includes(error.status);
    if (!page.isConnected()) return; // looked at again when it is back
    const isFinal = error.status === NO_CODEC || !("RTCPeerConnection" in window);
    if (isOurs && (isFinal || view.tries >= TRIES_UNTIL_SAID)) showFallback(view, error);
    again(error.status === NO_CODEC ? NO_CODEC_AGAIN_MS : WATCH_AGAIN_MS);
  }
}

function showFallback(view, error) {
  const address = make("code", {}, withKey(`/v1/jobs/${view.job}/live.flv`));
  const text = say("noViewer", { text: sayRefusal(error) });
  view.fallback.replaceChildren(text, isChinese() ? "。" : ". ", say("noViewerHint"), " ", address);
  view.fallback.hidden = false;
}

/** Start a job that is over once more. */
export const startJob = (job) => ask("POST", `/v1/jobs/${job}/start`);
