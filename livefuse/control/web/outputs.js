// What to paste where, and the targets of a running job.

import { Problem, ask, getKey, withKey } from "/web/api.js";
import { copyText, make, setText } from "/web/dom.js";
import { say, sayOf } from "/web/words.js";

const COPIED_MS = 1500;
const SECRETS = new Set(["whipToken"]);

export function createOutputs(root, page) {
  const addresses = make("div", { id: "addresses" });
  const targets = make("ul", { class: "targets", id: "targets", role: "list" });
  const problem = make("p", { class: "problem", role: "alert", hidden: true, id: "target-problem" });
  const empty = make("p", { class: "card" }, `${say("noJobs")} ${say("noJobsHint")}`);
  const field = make("input", { type: "text", id: "target", autocomplete: "off", spellcheck: "false", "aria-describedby": "target-hint" });
  const button = make("button", { type: "submit", id: "add-target" }, say("add"));
  const form = make("form", { class: "row" }, make("label", { for: "target" }, say("addTarget")), field, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!field.value.trim()) return;
    problem.hidden = true;
    button.disabled = true;
    try {
      await ask("POST", `/v1/jobs/${page.state.job}/outputs`, { url: field.value.trim() });
      field.value = "";
    } catch (error) {
      page.tell(error, problem);
    } finally {
      button.disabled = false;
    }
  });
  const cards = make(
    "div", {},
    make("section", { class: "card" }, make("h2", {}, say("addresses")), addresses, getKey() ? make("p", { class: "quiet small" }, say("secret")) : null),
    make("section", { class: "card" }, make("h2", {}, say("targets")), targets, form, make("p", { class: "quiet small", id: "target-hint" }, say("targetHint")), problem),
  );
  root.append(empty, cards);
  let shown = "";

  function showJob() {
    const job = page.getJob();
    empty.hidden = job !== null;
    cards.hidden = job === null;
    const wanted = `${job?.id}\n${job?.spec?.source}`;
    if (job === null || shown === wanted) return;
    shown = wanted;
    addresses.replaceChildren(...listAddresses(job, page));
  }

  return {
    onJob: () => {
      showJob();
      fillTargets(targets, [], page, problem);
    },
    onJobs: showJob,
    onFigures: (figures) => fillTargets(targets, figures.outputs.filter((one) => one.id), page, problem),
  };
}

function listAddresses(job, page) {
  const flv = withKey(`/v1/jobs/${job.id}/live.flv`);
  const screen = new URL(withKey("/"));
  screen.searchParams.set("view", "screen");
  screen.searchParams.set("job", job.id);
  const rows = [
    ["obsMedia", flv],
    ["obsBrowser", screen.href],
    ["vlc", flv],
    ["ffplay", `ffplay -fflags nobuffer '${flv}'`],
  ];
  if (!job.spec?.source.startsWith("whip:")) return [...rows.map(([name, text]) => createCopyRow(name, text)), createWhipRow(page)];
  rows.push(["obsWhip", new URL(`/v1/jobs/${job.id}/whip`, location.origin).href]);
  if (getKey()) rows.push(["whipToken", getKey()]);
  return rows.map(([name, text]) => createCopyRow(name, text));
}

function createCopyRow(name, text) {
  const id = `copy-${name}`;
  const title = sayOf("row", name);
  const field = make("input", { type: "text", id, readonly: true, value: text, class: "address", autocomplete: "off" });
  field.addEventListener("focus", () => field.select());
  const row = make("div", { class: "row" }, make("label", { for: id }, title), field);
  if (SECRETS.has(name)) {
    field.classList.add("veiled");
    const veil = make("button", { type: "button", class: "plain" }, say("show"));
    veil.addEventListener("click", () => {
      const isVeiled = field.classList.toggle("veiled");
      setText(veil, say(isVeiled ? "show" : "hide"));
    });
    row.append(veil);
  }
  const button = make("button", { type: "button", "aria-label": `${say("copy")}: ${title}` }, say("copy"));
  button.addEventListener("click", async () => {
    const isCopied = await copyText(text);
    setText(button, say(isCopied ? "copied" : "copyFailed"));
    setTimeout(() => setText(button, say("copy")), COPIED_MS);
  });
  row.append(button);
  return row;
}

/** A job that does not wait for a publisher: say how to get one that does. */
function createWhipRow(page) {
  const open = make("button", { type: "button", id: "open-whip" }, say("openWhip"));
  open.addEventListener("click", async () => {
    open.disabled = true;
    try {
      const operations = page.state.figures?.token?.operations ?? [];
      const spec = { source: "whip:", operations: operations.length ? operations : ["detect", "blur"] };
      const job = await ask("POST", "/v1/jobs", { spec, start: true });
      await page.refresh();
      page.look(job.id);
    } catch (error) {
      page.tell(error instanceof Problem ? error : new Problem(0, error.message));
    } finally {
      open.disabled = false;
    }
  });
  return make("div", { class: "row" }, make("span", { class: "quiet" }, say("whipOther")), open);
}

function fillTargets(list, outputs, page, problem) {
  const wanted = outputs.map((one) => [one.id, one.url, one.state, one.error].join("\n")).join("\n");
  if (list.dataset.filled === wanted) return;
  list.dataset.filled = wanted;
  list.replaceChildren(
    ...outputs.map((one) => {
      const remove = make("button", { type: "button", "aria-label": `${say("remove")}: ${one.url}` }, say("remove"));
      remove.addEventListener("click", async () => {
        remove.disabled = true;
        try {
          await ask("DELETE", `/v1/jobs/${page.state.job}/outputs/${one.id}`);
        } catch (error) {
          page.tell(error, problem);
          remove.disabled = false;
        }
      });
      const state = make("span", { class: "state", "data-state": one.state }, sayOf("line", one.state));
      const trouble = one.state === "live" ? "" : one.error;
      return make("li", {}, make("code", {}, one.url), state, make("span", { class: "quiet" }, trouble), remove);
    }),
    ...(outputs.length ? [] : [make("li", { class: "quiet" }, say("targetsNone"))]),
  );
}
