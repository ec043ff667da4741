// Small helpers for building the page. Nothing here knows of livefuse.

/** Return an element: make("button", {class: "x", onclick: f}, "text", child). */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && typeof value !== "string") element[key] = value;
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const find = (id) => document.getElementById(id);

/** Replace what `element` holds, only when it changes, so that readers are not disturbed. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Call `run` at most once in `wait_ms`, with the latest arguments, the last call included. */
export function spaced(run, wait_ms) {
  let timer = null;
  let waiting = null;
  const fire = () => {
    if (waiting === null) {
      timer = null;
      return;
    }
    const args = waiting;
    waiting = null;
    timer = setTimeout(fire, wait_ms);
    run(...args);
  };
  return (...args) => {
    waiting = args;
    if (timer === null) fire();
  };
}

/** Return a test whether a hand has moved the slider `field` a moment ago: then leave it alone. */
export function watchHand(field, rest_ms = 250) {
  let moved = -Infinity;
  field.addEventListener("input", () => (moved = performance.now()));
  return () => performance.now() - moved < rest_ms;
}

/** Copy `text`; say whether that worked. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make("textarea", { class: "away" });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
