// What to paste where, and the targets of a running job.

import { ask, getKey, withKey } from "/web/api.js";
import { copyText, make, setText } from "/web/dom.js";
import { say } from "/web/words.js";

const COPIED_MS = 1500;

export function createOutputs(root, page) {
  const addresses = make("div", { id: "addresses" });
  const targets = make("ul", { class: "targets", id: "targets" });
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const field = make("input", { type: "text", id: "target", placeholder: say("targetHint"), autocomplete: "off" });
  const form = make(
    "form",
    {
      class: "row",
      onsubmit: async (event) => {
        event.preventDefault();
        problem.hidden = true;
        try {
          await ask("POST", `/v1/jobs/${page.state.job}/outputs`, { url: field.value.trim() });
          field.value = "";
        } catch (error) {
          page.tell(error, problem);
        }
      },
    },
    make("label", { for: "target" }, say("addTarget")),
    field,
    make("button", { type: "submit", id: "add-target" }, say("add")),
  );
  root.append(
    make("section", { class: "card" }, addresses),
    make("section", { class: "card" }, make("h2", {}, say("targets")), targets, form, problem),
  );

  return {
    onJob: (job) => addresses.replaceChildren(...(job === null ? [] : listAddresses(job))),
    onFigures: (figures) => fillTargets(targets, figures.outputs.filter((one) => one.id), page, problem),
  };
}

function listAddresses(job) {
  const flv = withKey(`/v1/jobs/${job}/live.flv`);
  const screen = new URL(withKey("/"));
  screen.searchParams.set("view", "screen");
  screen.searchParams.set("job", job);
  const rows = [
    ["obsMedia", flv],
    ["obsBrowser", screen.href],
    ["vlc", flv],
    ["ffplay", `ffplay -fflags nobuffer '${flv}'`],
    ["obsWhip", new URL(`/v1/jobs/${job}/whip`, location.origin).href],
  ];
  if (getKey()) rows.push(["whipToken", getKey()]);
  return rows.map(([title, text]) => createCopyRow(title, text));
}

function createCopyRow(title, text) {
  const id = `copy-${title}`;
  const isSecret = title === "whipToken";
  const field = make("input", { type: isSecret ? "password" : "text", id, readonly: true, value: text, class: "address" });
  const button = make("button", { type: "button", "aria-label": `${say("copy")}: ${say(title)}` }, say("copy"));
  button.addEventListener("click", async () => {
    if (await copyText(text)) setText(button, say("copied"));
    setTimeout(() => setText(button, say("copy")), COPIED_MS);
  });
  return make("div", { class: "row" }, make("label", { for: id }, say(title)), field, button);
}

function fillTargets(list, outputs, page, problem) {
  const wanted = outputs.map((one) => [one.id, one.url, one.state, one.error].join("\n")).join("\n");
  if (list.dataset.filled === wanted) return;
  list.dataset.filled = wanted;
  list.replaceChildren(
    ...outputs.map((one) => {
      const remove = make("button", { type: "button", "aria-label": `${say("remove")}: ${one.url}` }, say("remove"));
      remove.addEventListener("click", async () => {
        try {
          await ask("DELETE", `/v1/jobs/${page.state.job}/outputs/${one.id}`);
        } catch (error) {
          page.tell(error, problem);
        }
      });
      const state = make("span", { class: "state", "data-state": one.state }, one.state);
      return make("li", {}, make("code", {}, one.url), state, make("span", { class: "quiet" }, one.error ?? ""), remove);
    }),
    ...(outputs.length ? [] : [make("li", {}, say("none"))]),
  );
}
