// What is done to the faces. Every change is a patch of the job's token; what the worker refuses is
// said beside the control, and the control goes back to what holds.

import { ask } from "/web/api.js";
import { make, setText } from "/web/dom.js";
import { createFace } from "/web/faces.js";
import { createLook } from "/web/looks.js";
import { createOperations } from "/web/operations.js";
import { Patches, apply } from "/web/patches.js";
import { say } from "/web/words.js";

const ASK_AGAIN_MS = 1000;
const SETTLED_MS = 300; // after a change: sliders have rested, and what takes longer is said

/** Return the card: `element`, `onJob(id)`, `onFigures(figures)`. */
export function createControls(page) {
  // `token` is what the controls show, ahead of `held`, what the worker has said.
  const view = { job: null, token: null, held: null, asked: -Infinity, fields: [] };
  const busy = make("p", { class: "quiet busy", role: "status", id: "controls-busy" });
  const element = make("section", { class: "card controls", id: "controls" });

  const patches = new Patches(
    (token, job) => {
      if (job === view.job) hold(token);
    },
    (error, place, job) => {
      page.tell(error, place);
      if (job === view.job) hold(view.held);
    },
  );

  function hold(token) {
    view.token = view.held = token;
    show();
  }

  function show() {
    if (view.token !== null) for (const field of view.fields) field(view.token);
    element.toggleAttribute("inert", view.token === null || page.getJob()?.state !== "running");
    setText(busy, patches.isBusy ? say("busy") : "");
  }

  /** Send a patch; `place` is where a refusal is said. */
  async function change(patch, place) {
    if (view.job === null || view.token === null) return;
    view.token = apply(view.token, patch);
    for (const old of element.querySelectorAll(".problem")) old.hidden = true;
    show();
    setTimeout(show, SETTLED_MS);
    await patches.send(view.job, patch, place);
    show();
  }

  /** Return `names` and what they need, in their order. */
  function complete(names) {
    const wanted = new Set(names);
    for (const one of page.state.catalogue.operations) {
      if (wanted.has(one.name)) one.needs.forEach((need) => wanted.add(need));
    }
    return page.state.catalogue.operations.map((one) => one.name).filter((name) => wanted.has(name));
  }

  const shared = { view, catalogue: page.state.catalogue, change, complete, page, hold };
  const parts = { face: createFace(shared), look: createLook(shared) };
  element.append(make("div", { class: "head" }, make("h2", {}, say("operations")), busy), createOperations(shared, parts));
  return {
    element,
    onJobs: show,
    onJob: (job) => {
      view.job = job;
      view.asked = -Infinity;
      hold(null); // it comes with the first figures
    },
    onFigures: (figures) => {
      const token = figures.token;
      if (patches.isBusy) return;
      if (!token?.parameters) {
        askForToken();
        return;
      }
      // Somebody else may have changed it: the last frame's token is newer than what is shown here.
      if (view.token !== null && token.timestamp <= view.token.timestamp) return;
      hold(token);
    },
  };

  /** Before its first frame a job has a token, but no figures of it. */
  async function askForToken() {
    if (view.token !== null || performance.now() - view.asked < ASK_AGAIN_MS) return;
    view.asked = performance.now();
    const job = view.job;
    const token = await ask("GET", `/v1/jobs/${job}/token`).catch(() => null);
    if (job !== view.job || view.token !== null) return;
    hold(token);
  }
}

/** A line where a refusal is said. */
export const createPlace = () => make("p", { class: "problem", role: "alert", hidden: true });

/** Return a labelled select: `element`, `show(value)`. */
export function createChoice(id, title, choices, onChoose) {
  const select = make("select", { id }, ...choices.map(([value, text]) => make("option", { value }, text)));
  select.addEventListener("change", () => onChoose(select.value));
  return {
    element: make("div", { class: "row" }, make("label", { for: id }, title), select),
    select,
    show: (value) => (select.value = value),
  };
}
