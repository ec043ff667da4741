// The page: which stream is looked at, which tab is open, what went wrong.
//
//   app.js        this: the frame around the three views
//   studio.js     stage.js the picture · source.js where from · controls.js what is done to the faces
//                 (operations.js faces.js looks.js, patches.js how a change is sent)
//   monitor.js    the figures, drawn (chart.js)
//   outputs.js    what to paste where; targets
//   screen.js     only the picture, for ?view=screen
//   api.js rtc.js dom.js words.js (english.js chinese.js reasons.js)    what they stand on

import { Problem, ask, follow, getKey, patchToken, setKey, takeKey } from "/web/api.js";
import { find, make, setText } from "/web/dom.js";
import { createMonitor } from "/web/monitor.js";
import { createOutputs } from "/web/outputs.js";
import { showScreen } from "/web/screen.js";
import { CAMERA_JOB } from "/web/source.js";
import { startJob } from "/web/stage.js";
import { createStudio } from "/web/studio.js";
import { changeLanguage, isChinese, putWords, say, sayOf, sayReason, sayRefusal } from "/web/words.js";

const TABS = ["studio", "monitor", "outputs"];
// What a daemon calls a job that runs, but not yet or not all well; its health says which.
const AT_WORK = new Set(["loading", "degraded"]);
const POLL_MS = 3000;

/** What the views share. `figures` are the latest of the job that is looked at. */
const state = { job: null, jobs: [], figures: null, catalogue: null };
const line = { isConnected: true, isFollowing: false, stop: () => {} };
let views = {};

const page = {
  state,
  tell,
  look: lookAt,
  refresh: refreshJobs,
  startAgain,
  hangUp: () => views.studio.hangUp(),
  getJob: () => state.jobs.find((job) => job.id === state.job) ?? null,
  isConnected: () => line.isConnected,
};

/** Show what went wrong; `place` is an element beside the control that was refused. */
function tell(error, place = null) {
  const isProblem = error instanceof Problem;
  const text = isProblem ? sayRefusal(error) : say("fault", { text: error.message });
  const field = place ?? find("problem");
  setText(field, text);
  field.hidden = false;
  if (isProblem && error.status === 401) askForKey();
}

/** Say that the worker is away, and when it is back look again at what was looked at. */
function noteConnection(isConnected) {
  const wasConnected = line.isConnected;
  line.isConnected = isConnected;
  find("lost").hidden = isConnected;
  setText(find("lost"), isConnected ? "" : say("lost"));
  if (!isConnected) showHealth();
  return isConnected && !wasConnected;
}

/** Look at `job`; `isBack`: the worker was away. */
function lookAt(job, isBack = false) {
  line.stop();
  line.isFollowing = false;
  state.job = job;
  state.figures = null;
  fillJobs();
  find("problem").hidden = true;
  if (job !== null) followJob(job);
  for (const view of Object.values(views)) view.onJob?.(job, isBack);
  showHealth();
}

function followJob(job) {
  const isRunning = page.getJob()?.state === "running";
  if (!isRunning) return;
  line.isFollowing = true;
  line.stop = follow(job, {
    onStatus: (figures) => {
      noteConnection(true);
      state.figures = figures;
      showHealth();
      for (const view of Object.values(views)) view.onFigures?.(figures);
    },
    onEnd: () => {
      line.isFollowing = false;
      views.studio.onEnd(job);
      pollJobs();
    },
    onLost: (isOver) => {
      line.isFollowing = !isOver;
      pollJobs(); // which tells whether the worker or only the job is gone
    },
  });
}

function showHealth() {
  const figures = state.figures;
  const job = page.getJob();
  const field = find("health");
  const isOver = job !== null && job.state !== "running";
  const health = isOver ? { failed: "ERROR" }[job.state] ?? "STOPPED" : figures?.health ?? "";
  field.dataset.health = line.isConnected ? health : "";
  const reason = isOver ? job.error : figures?.health_reason;
  const word = health ? sayOf("health", health) : "";
  const text = job === null ? say("noJobs") : [word, sayReason(reason ?? "")].filter(Boolean).join(": ");
  setText(field, line.isConnected ? text : "");
  showCovered(figures?.token?.parameters?.cover_all ?? false);
  find("cover").disabled = job === null || isOver;
}

function showCovered(isCovered) {
  // The picture as it is, which only this page shows, is covered too.
  document.body.classList.toggle("covered", isCovered);
  const button = find("cover");
  button.setAttribute("aria-pressed", String(isCovered));
  setText(button, say(isCovered ? "uncover" : "cover"));
}

async function cover() {
  if (state.job === null) return;
  const isCovered = find("cover").getAttribute("aria-pressed") === "true";
  try {
    await patchToken(state.job, { parameters: { cover_all: !isCovered } });
    showCovered(!isCovered);
  } catch (error) {
    tell(error);
  }
}

async function startAgain(job) {
  if (job === CAMERA_JOB) {
    await views.studio.startCamera();
    return;
  }
  await startJob(job);
  await refreshJobs();
  lookAt(job);
}

async function refreshJobs() {
  let jobs;
  try {
    ({ jobs } = await ask("GET", "/v1/jobs"));
    for (const one of jobs) if (AT_WORK.has(one.state)) one.state = "running";
  } catch (error) {
    if (error.status === 0) noteConnection(false);
    throw error;
  }
  const isBack = noteConnection(true);
  state.jobs = jobs;
  const job = page.getJob();
  const running = jobs.filter((one) => one.state === "running");
  if (job === null) {
    if (state.job !== null || jobs.length) lookAt(running.at(-1)?.id ?? jobs.at(-1)?.id ?? null, isBack);
  } else if (job.state === "running" && (isBack || !line.isFollowing)) {
    lookAt(job.id, isBack);
  }
  fillJobs();
  showHealth();
  for (const view of Object.values(views)) view.onJobs?.(jobs);
  if (isBack) views.studio?.onBack(jobs);
  return jobs;
}

const pollJobs = () => refreshJobs().catch((error) => error.status === 401 && tell(error));

function fillJobs() {
  const select = find("job");
  const titles = state.jobs.map((job) => [job.id, describeJob(job)]);
  const wanted = JSON.stringify(titles);
  if (select.dataset.filled !== wanted) {
    select.dataset.filled = wanted;
    select.replaceChildren(...titles.map(([id, title]) => make("option", { value: id }, title)));
  }
  if (state.job !== null) select.value = state.job;
  select.disabled = state.jobs.length < 2;
  select.parentElement.hidden = !state.jobs.length;
}

function describeJob(job) {
  const source = job.spec?.source ?? "";
  const [scheme] = source.split(":");
  const from = ["whip", "test", "demo"].includes(scheme) ? sayOf("source", scheme) : source;
  const phase = job.state === "running" ? "" : ` (${sayOf("job", job.state)})`;
  return `${job.id}: ${from}${phase}`;
}

function openTab(name) {
  for (const tab of TABS) {
    const isOpen = tab === name;
    find(`tab-${tab}`).setAttribute("aria-selected", String(isOpen));
    find(`tab-${tab}`).tabIndex = isOpen ? 0 : -1;
    find(tab).hidden = !isOpen;
    views[tab]?.onShown?.(isOpen);
  }
}

function setUpTabs() {
  TABS.forEach((tab, index) => {
    const button = find(`tab-${tab}`);
    button.addEventListener("click", () => openTab(tab));
    button.addEventListener("keydown", (event) => {
      const next = {
        ArrowRight: (index + 1) % TABS.length, ArrowLeft: (index + TABS.length - 1) % TABS.length, Home: 0, End: TABS.length - 1,
      }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      openTab(TABS[next]);
      find(`tab-${TABS[next]}`).focus();
    });
  });
}

function askForKey() {
  if (find("key-form")) return;
  line.stop();
  const field = make("input", { id: "key", type: "password", autocomplete: "off", required: true });
  const form = make(
    "form",
    {
      id: "key-form",
      class: "card narrow",
      onsubmit: (event) => {
        event.preventDefault();
        setKey(field.value.trim());
        location.reload();
      },
    },
    make("h2", {}, say("needKey")),
    make("p", {}, say("needKeyHint")),
    make("div", { class: "row" }, make("label", { for: "key" }, say("key")), field, make("button", { type: "submit", class: "strong" }, say("open"))),
  );
  find("view").replaceChildren(form);
  for (const id of ["tabs", "cover"]) find(id).hidden = true;
  field.focus();
}

function labelFrame() {
  putWords();
  find("language").textContent = isChinese() ? "English" : "中文";
  find("language").lang = isChinese() ? "en" : "zh-CN";
  find("tabs").setAttribute("aria-label", say("views"));
}

/** Go over to the other language. The views are made anew; the camera goes on meanwhile. */
function speakOther() {
  changeLanguage();
  if (!views.studio) {
    location.reload();
    return;
  }
  labelFrame();
  const camera = views.studio.leave();
  buildViews(camera);
  lookAt(state.job);
  for (const view of Object.values(views)) view.onJobs?.(state.jobs);
}

function buildViews(camera) {
  for (const tab of TABS) find(tab).replaceChildren();
  views = {
    studio: createStudio(find("studio"), page, camera),
    monitor: createMonitor(find("monitor"), page),
    outputs: createOutputs(find("outputs"), page),
  };
  // A tab may have been opened while there were no views yet.
  for (const tab of TABS) views[tab].onShown?.(!find(tab).hidden);
}

async function start() {
  takeKey();
  putWords();
  const address = new URL(location.href);
  if (address.searchParams.get("view") === "screen") {
    showScreen(address.searchParams.get("job") ?? "main");
    return;
  }
  labelFrame();
  find("language").addEventListener("click", speakOther);
  find("cover").addEventListener("click", cover);
  find("job").addEventListener("change", (event) => lookAt(event.target.value));
  setUpTabs();
  await load();
}

/** Build the views; when the worker is away, go on trying. */
async function load() {
  try {
    if (!getKey()) await ask("GET", "/v1/jobs"); // a worker that wants no key answers
    state.catalogue = await ask("GET", "/v1/catalogue");
  } catch (error) {
    if (error.status !== 0) throw error;
    noteConnection(false);
    setTimeout(() => load().catch(tell), POLL_MS);
    return;
  }
  buildViews();
  await refreshJobs();
  if (!state.jobs.length) lookAt(null);
  setInterval(() => {
    if (!document.hidden && !find("key-form")) pollJobs();
  }, POLL_MS);
}

addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  tell(event.reason);
});
start().catch(tell);
