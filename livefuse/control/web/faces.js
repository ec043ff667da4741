// Whose face is shown instead: a drawn one, one that was enrolled, a picture that comes with consent.

import { Problem, ask, send } from "/web/api.js";
import { createChoice, createPlace } from "/web/controls.js";
import { make, setText, spaced, watchHand } from "/web/dom.js";
import { say, sayOf } from "/web/words.js";

const SPACING_MS = 80;

export function createFace(shared) {
  const { view, catalogue, change, complete } = shared;
  const place = createPlace();
  const choice = createChoice("face", say("face"), [], (id) => {
    const operations = view.token?.operations ?? [];
    if (!id) {
      change({ operations: complete(operations.filter((name) => name !== "swap" && name !== "puppet")), source_face: "" }, place);
      return;
    }
    change({ source_face: id }, place);
  });
  const fill = () => choice.select.replaceChildren(
    make("option", { value: "" }, say("faceNone")),
    ...catalogue.faces.map((face) => make("option", { value: face.id }, `${face.name} (${sayOf("kind", face.kind)})`)),
  );
  fill();
  const blend = make("input", { type: "range", min: "0", max: "1", step: "0.01", id: "blend" });
  const blendValue = make("output", { for: "blend" });
  const sendBlend = spaced((value) => change({ parameters: { blend_ratio: value } }, place), SPACING_MS);
  blend.addEventListener("input", () => {
    setText(blendValue, `${Math.round(100 * blend.value)} %`);
    sendBlend(Number(blend.value));
  });
  const isMoving = watchHand(blend);
  let asked = "";
  view.fields.push((token) => {
    choice.show(token.source_face);
    if (!isMoving()) {
      blend.value = token.parameters.blend_ratio;
      setText(blendValue, `${Math.round(100 * token.parameters.blend_ratio)} %`);
    }
    const isKnown = !token.source_face || catalogue.faces.some((face) => face.id === token.source_face);
    if (isKnown || asked === token.source_face) return;
    asked = token.source_face; // enrolled elsewhere, after this page was opened
    renew(catalogue).then(() => {
      fill();
      choice.show(token.source_face);
    }, () => {});
  });
  return {
    element: make(
      "div", {},
      choice.element,
      make("div", { class: "row" }, make("label", { for: "blend" }, say("blend")), blend, blendValue),
      createUpload(shared, fill),
      place,
    ),
  };
}

async function renew(catalogue) {
  catalogue.faces = (await ask("GET", "/v1/catalogue")).faces;
}

function createUpload({ view, catalogue, page, hold }, fill) {
  const place = createPlace();
  const file = make("input", { type: "file", id: "picture", accept: "image/png,image/jpeg,image/webp" });
  const who = make("input", { type: "text", id: "consent-who", autocomplete: "off" });
  const what = make("input", { type: "text", id: "consent-what", autocomplete: "off" });
  const until = make("input", { type: "date", id: "consent-until" });
  const name = make("input", { type: "text", id: "picture-name", autocomplete: "off" });
  const use = make("button", { type: "submit", id: "use-picture" }, say("use"));
  const field = (input, title) => make("div", { class: "row" }, make("label", { for: input.id }, title), input);
  const form = make(
    "form", {},
    make("p", { class: "quiet small" }, say("drop")),
    field(file, say("pictureFile")),
    field(who, say("consent")), field(what, say("consentFor")), field(until, say("consentUntil")), field(name, say("name")),
    make("p", { class: "quiet small" }, say("consentHint")),
    use,
    place,
  );
  const box = make("details", { class: "drop" }, make("summary", {}, say("picture")), form);
  box.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.open = true;
  });
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    file.files = event.dataTransfer.files;
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const picture = file.files[0];
    place.hidden = true;
    use.disabled = true;
    try {
      if (!picture) throw new Problem(0, say("needPicture"), say("needPictureHint"));
      const query = new URLSearchParams({ name: name.value });
      const consent = [who.value, what.value, until.value].map((text) => text.replaceAll(",", " ").trim());
      if (consent.some(Boolean)) query.set("consent", consent.join(", "));
      await send("PUT", `/v1/jobs/${view.job}/source-face?${query}`, { body: picture, type: picture.type });
      await renew(catalogue);
      fill();
      hold(await ask("GET", `/v1/jobs/${view.job}/token`));
      form.reset();
      box.open = false;
    } catch (error) {
      page.tell(error, place);
    } finally {
      use.disabled = false;
    }
  });
  return box;
}
