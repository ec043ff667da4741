// Looks, and the single amounts that they are made of.

import { createChoice, createPlace } from "/web/controls.js";
import { make, setText, spaced, watchHand } from "/web/dom.js";
import { isChinese, say, sayOf } from "/web/words.js";

const SPACING_MS = 80;
const GROUPS = ["master", "skin", "tone", "shape", "makeup", "colour"];
const OWN = "*"; // amounts that are no look's

export function createLook({ view, catalogue, change }) {
  const place = createPlace();
  const byAmounts = new Map(catalogue.looks.map((look) => [write(look.parameters), look.name]));
  const byName = new Map(catalogue.looks.map((look) => [look.name, look]));
  const titled = catalogue.looks.map((look) => [look.name, isChinese() && look.chinese ? look.chinese : look.title]);
  const choice = createChoice("look", say("look"), [...titled, [OWN, say("lookOwn")]], (name) => {
    const cleared = Object.fromEntries(Object.keys(view.token?.parameters.beautify ?? {}).map((key) => [key, null]));
    change({ parameters: { beautify: { ...cleared, ...byName.get(name)?.parameters } } }, place);
  });
  const text = make("p", { class: "quiet small" });
  view.fields.push((token) => {
    const name = byAmounts.get(write(token.parameters.beautify));
    choice.show(name ?? OWN);
    setText(text, isChinese() ? "" : byName.get(name)?.text ?? "");
    for (const option of choice.select.options) option.hidden = option.value === OWN && name !== undefined;
  });
  const groups = GROUPS.map((kind) => createGroup(kind, { view, catalogue, change, place }));
  return {
    element: make("div", {}, choice.element, text, make("p", { class: "quiet small" }, say("amounts")), ...groups, place),
  };
}

const write = (amounts) => JSON.stringify(Object.entries(amounts).sort(([a], [b]) => (a < b ? -1 : 1)));

function createGroup(kind, { view, catalogue, change, place }) {
  const rows = catalogue.beautify.filter((one) => one.kind === kind);
  if (!rows.length) return null;
  const group = make("details", { class: "group" }, make("summary", {}, sayOf("group", kind)));
  for (const row of rows) {
    // An amount of a group may have the group's own name.
    const id = `amount-${kind === "master" ? "master-" : ""}${row.name}`;
    const isColour = kind === "colour";
    const field = make("input", isColour
      ? { type: "color", id, value: row.default }
      : { type: "range", id, min: String(row.low), max: String(row.high), step: "0.01" });
    const value = make("output", { for: id });
    const put = spaced((amount) => change({ parameters: { beautify: { [row.name]: amount } } }, place), SPACING_MS);
    const tell = () => setText(value, isColour ? "" : Number(field.value).toFixed(2));
    field.addEventListener("input", () => {
      tell();
      put(isColour ? field.value : Number(field.value));
    });
    const isMoving = watchHand(field);
    view.fields.push((token) => {
      if (isMoving()) return;
      field.value = token.parameters.beautify[row.name] ?? row.default;
      tell();
    });
    const title = isChinese() ? row.chinese : row.name.replaceAll("_", " ");
    group.append(make("div", { class: "row amount" }, make("label", { for: id, title: row.text }, title), field, value));
  }
  return group;
}
