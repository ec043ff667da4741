// The operations as switches, in the order in which they are done; under each what belongs to it.

import { createChoice, createPlace } from "/web/controls.js";
import { make, setText } from "/web/dom.js";
import { isChinese, say, sayOf } from "/web/words.js";

const ON_FACES = ["swap", "puppet", "beautify", "enhance", "blur"];
const FIRST_LOOK = "natural";
const INSTEAD = { swap: "puppet", puppet: "swap" }; // one new face at a time

export function createOperations({ view, catalogue, change, complete }, { face, look }) {
  const place = createPlace();
  const list = make("ol", { class: "operations", role: "list", id: "operations-list" });
  const rows = new Map();
  const needs = new Map(catalogue.operations.map((one) => [one.name, one.needs]));

  function choose(name, isOn) {
    const wanted = new Set(view.token?.operations ?? []);
    if (isOn) {
      wanted.add(name);
      wanted.delete(INSTEAD[name]);
    } else {
      wanted.delete(name);
      for (const [other, needed] of needs) if (needed.includes(name)) wanted.delete(other);
    }
    const patch = { operations: complete(wanted) };
    const shows = wanted.has("swap") || wanted.has("puppet");
    if (shows && !view.token?.source_face) patch.source_face = catalogue.faces[0].id;
    // So that something is to be seen of it.
    const natural = catalogue.looks.find((one) => one.name === FIRST_LOOK);
    if (name === "beautify" && isOn && natural && !Object.keys(view.token?.parameters.beautify ?? {}).length) {
      patch.parameters = { beautify: natural.parameters };
    }
    change(patch, place);
  }

  for (const name of needs.keys()) {
    const row = createRow(name, (isOn) => choose(name, isOn));
    rows.set(name, row);
    list.append(row.element);
  }
  const blurWhom = createChoice(
    "blur-whom", say("blurWhom"), ["auto", "all", "chosen", "others"].map((one) => [one, sayOf("blur", one)]),
    (value) => change({ parameters: { blur_whom: value } }, place),
  );
  const whom = createChoice(
    "whom", say("whom"), ["all", "largest", "left-most", "id", "reference"].map((one) => [one, sayOf("whom", one)]),
    (value) => change({ parameters: { select: value } }, place),
  );
  const enhancer = make("input", { type: "checkbox", role: "switch", id: "enhancer" });
  enhancer.addEventListener("change", () => change({ parameters: { enable_gfpgan: enhancer.checked } }, place));
  const parts = {
    beautify: look.element,
    enhance: make("label", { class: "check" }, enhancer, say("enhancer")),
    blur: blurWhom.element,
  };
  for (const [name, part] of Object.entries(parts)) rows.get(name)?.part.append(part);

  view.fields.push((token) => {
    const isOn = (name) => token.operations.includes(name);
    for (const [name, row] of rows) {
      const users = listUsers(needs, token.operations, name);
      row.show(isOn(name), users);
    }
    const shower = isOn("puppet") ? "puppet" : "swap";
    if (face.element.parentElement !== rows.get(shower).part) rows.get(shower).part.append(face.element);
    blurWhom.show(token.parameters.blur_whom);
    enhancer.checked = token.parameters.enable_gfpgan;
    whom.show(token.parameters.select);
    whom.element.hidden = !ON_FACES.some(isOn);
    // Those two need names, which this page does not ask for.
    for (const option of whom.select.options) option.hidden = ["id", "reference"].includes(option.value) && !option.selected;
  });
  return make("div", {}, list, whom.element, place);
}

/** Return which of the operations that are on need `name` and are wanted for themselves. */
function listUsers(needs, operations, name) {
  const isNeeded = (one) => operations.some((other) => needs.get(other)?.includes(one));
  return operations.filter((one) => needs.get(one)?.includes(name) && !isNeeded(one));
}

/** Return one operation's row: `element`, `part` for what belongs to it, `show(isOn, users)`. */
function createRow(name, onChoose) {
  const box = make("input", { type: "checkbox", role: "switch", id: `operation-${name}` });
  box.addEventListener("change", () => onChoose(box.checked));
  const note = make("span", { class: "quiet small" });
  const part = make("div", { class: "part", hidden: true });
  const title = make("label", { class: "check", for: box.id }, box, make("b", {}, sayOf("operation", name)));
  const element = make("li", {}, make("div", { class: "switch" }, title, note, make("code", { class: "quiet small" }, name)), part);
  return {
    element,
    part,
    show: (isOn, users) => {
      box.checked = isOn;
      element.classList.toggle("on", isOn);
      part.hidden = !isOn || !part.hasChildNodes();
      const names = users.map((user) => sayOf("operation", user)).join(isChinese() ? "、" : ", ");
      setText(note, isOn && users.length ? say("needed", { names }) : "");
    },
  };
}
