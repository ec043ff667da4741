// What is done to the faces: operations, the face that is shown, looks and amounts. Every change is
// a patch of the job's token; what the worker refuses is said beside the control.

import { ask, patchToken, send } from "/web/api.js";
import { make, setText, spaced } from "/web/dom.js";
import { isChinese, say } from "/web/words.js";

const SPACING_MS = 80;
const GROUPS = ["master", "skin", "tone", "shape", "makeup", "colour"];

export function createControls(page) {
  const { catalogue } = page.state;
  const element = make("div", { class: "controls" });
  const view = { job: null, token: null, isTouched: 0, fields: [] };

  /** Send a patch; say in `place` what is refused, and put the controls back to what holds. */
  async function change(patch, place) {
    if (view.job === null) return false;
    place.hidden = true;
    view.isTouched = performance.now();
    try {
      view.token = await patchToken(view.job, patch);
      show();
      return true;
    } catch (error) {
      page.tell(error, place);
      show();
      return false;
    }
  }

  function show() {
    if (view.token !== null) for (const field of view.fields) field(view.token);
  }

  const shared = { view, catalogue, change, page };
  element.append(
    createOperations(shared),
    createFace(shared),
    createLook(shared),
  );
  return {
    element,
    onJob: async (job) => {
      view.job = job;
      view.token = null;
      if (job === null) return;
      try {
        view.token = await ask("GET", `/v1/jobs/${job}/token`);
        show();
      } catch {
        // it is not running: the figures will say more
      }
    },
    onFigures: async () => {
      // Somebody else may have changed it: look again now and then, but not under a moving hand.
      if (view.token === null && performance.now() - view.isTouched > 1000) {
        view.isTouched = performance.now();
        view.token = await ask("GET", `/v1/jobs/${view.job}/token`).catch(() => null);
        show();
      }
    },
  };
}

const createPlace = () => make("p", { class: "problem", role: "alert", hidden: true });

function createOperations({ view, catalogue, change }) {
  const place = createPlace();
  const list = make("ol", { class: "operations" });
  const boxes = new Map();
  const order = catalogue.operations.map((one) => one.name);
  const needs = new Map(catalogue.operations.map((one) => [one.name, one.needs]));

  function choose(name, isOn) {
    const wanted = new Set(view.token?.operations ?? []);
    if (isOn) {
      wanted.add(name);
      needs.get(name).forEach((need) => wanted.add(need));
      if (name === "swap") wanted.delete("puppet");
      if (name === "puppet") wanted.delete("swap");
    } else {
      wanted.delete(name);
      order.filter((other) => needs.get(other).includes(name)).forEach((other) => wanted.delete(other));
    }
    const patch = { operations: order.filter((one) => wanted.has(one)) };
    const shows = wanted.has("swap") || wanted.has("puppet");
    if (shows && !view.token?.source_face) patch.source_face = catalogue.faces[0].id;
    change(patch, place);
  }

  for (const name of order) {
    const box = make("input", { type: "checkbox", role: "switch", id: `operation-${name}` });
    box.addEventListener("change", () => choose(name, box.checked));
    boxes.set(name, box);
    list.append(make("li", {}, make("label", { class: "check" }, box, make("b", {}, name), ` ${say(name)}`)));
  }
  view.fields.push((token) => {
    for (const [name, box] of boxes) box.checked = token.operations.includes(name);
  });
  const whom = createChoice("whom", say("whom"), [
    ["all", say("all")], ["largest", say("largest")], ["left-most", say("leftmost")],
  ], (value) => change({ parameters: { select: value } }, place));
  const blurWhom = createChoice("blur-whom", say("blurWhom"), [
    ["auto", say("auto")], ["all", say("all")], ["chosen", say("chosen")], ["others", say("others")],
  ], (value) => change({ parameters: { blur_whom: value } }, place));
  view.fields.push((token) => {
    whom.show(token.parameters.select);
    blurWhom.show(token.parameters.blur_whom);
    blurWhom.element.hidden = !token.operations.includes("blur");
  });
  return make("fieldset", { class: "card" }, make("legend", {}, say("operations")), list, whom.element, blurWhom.element, place);
}

function createChoice(id, title, choices, onChoose) {
  const select = make("select", { id }, ...choices.map(([value, text]) => make("option", { value }, text)));
  select.addEventListener("change", () => onChoose(select.value));
  const element = make("div", { class: "row" }, make("label", { for: id }, title), select);
  return {
    element,
    show: (value) => {
      if (document.activeElement !== select) select.value = value;
    },
  };
}

function createFace(shared) {
  const { view, catalogue, change } = shared;
  const place = createPlace();
  const faces = make("select", { id: "face" });
  const fill = () => faces.replaceChildren(
    ...catalogue.faces.map((face) => make("option", { value: face.id }, `${face.name} (${say(face.kind)})`)),
  );
  fill();
  faces.addEventListener("change", () => {
    const operations = view.token?.operations ?? [];
    const patch = { source_face: faces.value };
    if (!operations.includes("swap") && !operations.includes("puppet")) {
      const wanted = new Set([...operations, "detect", "align", "swap"]);
      patch.operations = catalogue.operations.map((one) => one.name).filter((name) => wanted.has(name));
    }
    change(patch, place);
  });
  const blend = make("input", { type: "range", min: "0", max: "1", step: "0.01", id: "blend" });
  const blendValue = make("output", { for: "blend" });
  const sendBlend = spaced((value) => change({ parameters: { blend_ratio: value } }, place), SPACING_MS);
  blend.addEventListener("input", () => {
    setText(blendValue, blend.value);
    sendBlend(Number(blend.value));
  });
  view.fields.push((token) => {
    if (document.activeElement !== faces) faces.value = token.source_face;
    if (document.activeElement === blend) return;
    blend.value = token.parameters.blend_ratio;
    setText(blendValue, String(token.parameters.blend_ratio));
  });
  return make(
    "fieldset", { class: "card" },
    make("legend", {}, say("face")),
    make("div", { class: "row" }, make("label", { for: "face" }, say("face")), faces),
    make("div", { class: "row" }, make("label", { for: "blend" }, say("blend")), blend, blendValue),
    createUpload(shared, fill, place),
    place,
  );
}

function createUpload({ view, catalogue, page }, fill, place) {
  const file = make("input", { type: "file", id: "picture", accept: "image/png,image/jpeg,image/webp" });
  const who = make("input", { type: "text", id: "consent-who", autocomplete: "off" });
  const what = make("input", { type: "text", id: "consent-what", autocomplete: "off" });
  const until = make("input", { type: "date", id: "consent-until" });
  const name = make("input", { type: "text", id: "picture-name", autocomplete: "off" });
  const use = make("button", { type: "button", id: "use-picture" }, say("use"));
  const box = make(
    "details", { class: "drop" },
    make("summary", {}, say("picture")),
    file,
    make("p", { class: "quiet" }, say("consentHint")),
    make("label", { for: "consent-who" }, say("consent")), who,
    make("label", { for: "consent-what" }, say("consentFor")), what,
    make("label", { for: "consent-until" }, say("consentUntil")), until,
    make("label", { for: "picture-name" }, say("name")), name,
    use,
  );
  box.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.open = true;
  });
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    file.files = event.dataTransfer.files;
  });
  use.addEventListener("click", async () => {
    const picture = file.files[0];
    if (!picture || view.job === null) return;
    place.hidden = true;
    use.disabled = true;
    try {
      const query = new URLSearchParams({ name: name.value });
      const consent = [who.value, what.value, until.value].map((text) => text.replaceAll(",", " ").trim());
      if (consent.some(Boolean)) query.set("consent", consent.join(", "));
      const answer = await send("PUT", `/v1/jobs/${view.job}/source-face?${query}`, { body: picture, type: picture.type });
      const face = await answer.json();
      if (!catalogue.faces.some((one) => one.id === face.id)) catalogue.faces.push(face);
      fill();
      view.token = await ask("GET", `/v1/jobs/${view.job}/token`);
      for (const field of view.fields) field(view.token);
    } catch (error) {
      page.tell(error, place);
    } finally {
      use.disabled = false;
    }
  });
  return box;
}

function createLook({ view, catalogue, change }) {
  const place = createPlace();
  const byName = new Map(catalogue.looks.map((look) => [look.name, look]));
  const titleOf = (look) => (isChinese() && look.chinese ? look.chinese : look.title);
  const look = make(
    "select", { id: "look" },
    make("option", { value: "" }, say("lookNone")),
    ...catalogue.looks.map((one) => make("option", { value: one.name }, titleOf(one))),
  );
  const withBeautify = (patch) => {
    const operations = view.token?.operations ?? [];
    if (operations.includes("beautify")) return patch;
    const wanted = new Set([...operations, "detect", "align", "beautify"]);
    return { ...patch, operations: catalogue.operations.map((one) => one.name).filter((name) => wanted.has(name)) };
  };
  look.addEventListener("change", () => {
    const cleared = Object.fromEntries(Object.keys(view.token?.parameters.beautify ?? {}).map((name) => [name, null]));
    const beautify = { ...cleared, ...(byName.get(look.value)?.parameters ?? {}) };
    change(withBeautify({ parameters: { beautify } }), place);
  });
  const amounts = make("div", {}, ...GROUPS.map((kind) => createGroup(kind, { view, catalogue, change, withBeautify, place })));
  view.fields.push((token) => {
    const has = JSON.stringify(sortKeys(token.parameters.beautify));
    const found = catalogue.looks.find((one) => JSON.stringify(sortKeys(one.parameters)) === has);
    if (document.activeElement !== look) look.value = found?.name ?? "";
  });
  return make(
    "fieldset", { class: "card" },
    make("legend", {}, say("look")),
    make("div", { class: "row" }, make("label", { for: "look" }, say("look")), look),
    make("details", {}, make("summary", {}, say("amounts")), amounts),
    place,
  );
}

const sortKeys = (table) => Object.entries(table).sort(([a], [b]) => (a < b ? -1 : 1));

function createGroup(kind, { view, catalogue, change, withBeautify, place }) {
  const rows = catalogue.beautify.filter((one) => one.kind === kind);
  if (!rows.length) return null;
  const group = make("fieldset", { class: "group" }, make("legend", {}, say(kind)));
  for (const row of rows) {
    const id = `amount-${row.name}`;
    const isColour = kind === "colour";
    const field = make("input", isColour
      ? { type: "color", id, value: row.default }
      : { type: "range", id, min: String(row.low), max: String(row.high), step: "0.01" });
    const put = spaced((value) => change(withBeautify({ parameters: { beautify: { [row.name]: value } } }), place), SPACING_MS);
    field.addEventListener("input", () => put(isColour ? field.value : Number(field.value)));
    view.fields.push((token) => {
      if (document.activeElement !== field) field.value = token.parameters.beautify[row.name] ?? row.default;
    });
    group.append(make("div", { class: "row" }, make("label", { for: id, title: row.text }, isChinese() ? row.chinese : row.name), field));
  }
  return group;
}
