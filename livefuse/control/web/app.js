// The page: which stream is looked at, which tab is open, what went wrong.
//
//   app.js       this: the frame around the three views
//   studio.js    before and after, what is done to the faces    (controls.js: its controls)
//   monitor.js   the figures, drawn                             (chart.js)
//   outputs.js   what to paste where; targets
//   api.js rtc.js words.js dom.js    what they stand on

import { Problem, ask, follow, getKey, patchToken, setKey, takeKey } from "/web/api.js";
import { find, make, setText } from "/web/dom.js";
import { createMonitor } from "/web/monitor.js";
import { createOutputs } from "/web/outputs.js";
import { showScreen } from "/web/screen.js";
import { createStudio } from "/web/studio.js";
import { changeLanguage, isChinese, putWords, say } from "/web/words.js";

const TABS = ["studio", "monitor", "outputs"];
const POLL_MS = 3000;

/** What the views share. `figures` are the latest of the job that is looked at. */
const state = { job: null, jobs: [], figures: null, catalogue: null };
let views = {};
let unfollow = () => {};

const page = {
  state,
  tell,
  forget: () => (find("problem").hidden = true),
  look: lookAt,
  refresh: refreshJobs,
};

/** Show what went wrong, or nothing; `place` is an element beside the control that was refused. */
function tell(error, place = null) {
  const isProblem = error instanceof Problem;
  const text = isProblem
    ? [error.message, error.hint].filter(Boolean).join(": ")
    : say("fault", { text: error.message });
  const field = place ?? find("problem");
  setText(field, text);
  field.hidden = false;
  if (isProblem && error.status === 401) askForKey();
}

async function lookAt(job) {
  unfollow();
  state.job = job;
  state.figures = null;
  fillJobs();
  for (const view of Object.values(views)) view.onJob?.(job);
  if (job === null) return;
  unfollow = follow(job, {
    onStatus: (figures) => {
      state.figures = figures;
      page.forget();
      showHealth(figures);
      for (const view of Object.values(views)) view.onFigures?.(figures);
    },
    onEnd: () => {
      showHealth(null, say("over"));
      refreshJobs();
    },
    onLost: () => tell(new Problem(0, say("lost"))),
  });
}

function showHealth(figures, text = "") {
  const field = find("health");
  const health = figures?.health || "";
  field.dataset.health = health;
  const words = figures
    ? [say(health || figures.state), figures.health_reason].filter(Boolean).join(": ")
    : text;
  setText(field, words);
  const covered = figures?.token?.parameters?.cover_all ?? false;
  const button = find("cover");
  button.setAttribute("aria-pressed", String(covered));
  setText(button, say(covered ? "uncover" : "cover"));
}

async function cover() {
  if (state.job === null) return;
  const covered = find("cover").getAttribute("aria-pressed") === "true";
  try {
    await patchToken(state.job, { parameters: { cover_all: !covered } });
    find("cover").setAttribute("aria-pressed", String(!covered));
    setText(find("cover"), say(covered ? "cover" : "uncover"));
  } catch (error) {
    tell(error);
  }
}

async function refreshJobs() {
  const { jobs } = await ask("GET", "/v1/jobs");
  state.jobs = jobs;
  const running = jobs.filter((job) => job.state === "running");
  const isThere = jobs.some((job) => job.id === state.job);
  if (!isThere) await lookAt(running.at(-1)?.id ?? jobs.at(-1)?.id ?? null);
  fillJobs();
  if (!jobs.length) showHealth(null, say("noJobs"));
  return jobs;
}

function fillJobs() {
  const select = find("job");
  const wanted = state.jobs.map((job) => `${job.id}\n${job.spec?.source ?? ""}`).join("\n");
  if (select.dataset.filled !== wanted) {
    select.dataset.filled = wanted;
    select.replaceChildren(
      ...state.jobs.map((job) =>
        make("option", { value: job.id }, `${job.id}  ${job.spec?.source ?? ""}`),
      ),
    );
  }
  if (state.job !== null) select.value = state.job;
  select.disabled = state.jobs.length < 2;
}

function openTab(name) {
  for (const tab of TABS) {
    const isOpen = tab === name;
    find(`tab-${tab}`).setAttribute("aria-selected", String(isOpen));
    find(`tab-${tab}`).tabIndex = isOpen ? 0 : -1;
    find(tab).hidden = !isOpen;
  }
  for (const [tab, view] of Object.entries(views)) view.onShown?.(tab === name);
}

function setUpTabs() {
  TABS.forEach((tab, index) => {
    const button = find(`tab-${tab}`);
    button.addEventListener("click", () => openTab(tab));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const next = TABS[(index + step + TABS.length) % TABS.length];
      openTab(next);
      find(`tab-${next}`).focus();
    });
  });
}

function askForKey() {
  if (find("key-form")) return;
  const field = make("input", { id: "key", type: "password", autocomplete: "off", required: true });
  const form = make(
    "form",
    {
      id: "key-form",
      class: "card",
      onsubmit: (event) => {
        event.preventDefault();
        setKey(field.value.trim());
        location.reload();
      },
    },
    make("h2", {}, say("needKey")),
    make("p", {}, say("needKeyHint")),
    make("label", { for: "key" }, say("key")),
    field,
    make("button", { type: "submit" }, say("open")),
  );
  find("view").replaceChildren(form);
  field.focus();
}

async function start() {
  takeKey();
  putWords();
  const address = new URL(location.href);
  if (address.searchParams.get("view") === "screen") {
    await showScreen(address.searchParams.get("job") ?? "main");
    return;
  }
  find("language").textContent = isChinese() ? "English" : "中文";
  find("language").lang = isChinese() ? "en" : "zh-CN";
  find("language").addEventListener("click", () => {
    changeLanguage();
    location.reload();
  });
  find("cover").addEventListener("click", cover);
  find("job").addEventListener("change", (event) => lookAt(event.target.value));
  setUpTabs();
  if (!getKey()) await ask("GET", "/v1/jobs"); // a worker that wants no key answers
  state.catalogue = await ask("GET", "/v1/catalogue");
  views = {
    studio: createStudio(find("studio"), page),
    monitor: createMonitor(find("monitor"), page),
    outputs: createOutputs(find("outputs"), page),
  };
  await refreshJobs();
  setInterval(() => refreshJobs().catch(() => {}), POLL_MS);
}

addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  tell(event.reason);
});
start().catch(tell);
