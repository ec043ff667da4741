// Speaks with the worker. The key comes with the printed address and stays in this tab.

import { say } from "/web/words.js";

const KEPT = "livefuse-key";
const HZ = 4; // of figures

/** An answer that says no, in words: `message` tells what happened, `hint` what to do. */
export class Problem extends Error {
  constructor(status, detail, hint = "") {
    super(detail);
    this.status = status;
    this.hint = hint;
  }
}

/** Take the key out of the address, so that it is not left in the history or on a screenshot. */
export function takeKey() {
  const address = new URL(location.href);
  const key = address.searchParams.get("key");
  if (key !== null) {
    sessionStorage.setItem(KEPT, key);
    address.searchParams.delete("key");
    history.replaceState(null, "", address);
  }
}

export const setKey = (key) => sessionStorage.setItem(KEPT, key);
export const getKey = () => sessionStorage.getItem(KEPT) ?? "";

/** Return `path` as a whole address with the key, for players and pictures. */
export function withKey(path) {
  const address = new URL(path, location.origin);
  if (getKey()) address.searchParams.set("key", getKey());
  return address.href;
}

/** Send a request; return the response, or throw a Problem. */
export async function send(method, path, { body, type, headers = {}, keepalive = false } = {}) {
  const sent = { ...headers };
  if (getKey()) sent.Authorization = `Bearer ${getKey()}`;
  if (type) sent["Content-Type"] = type;
  let answer;
  try {
    answer = await fetch(path, { method, body, headers: sent, keepalive, cache: "no-store" });
  } catch {
    throw new Problem(0, say("noAnswer"), say("noAnswerHint"));
  }
  if (answer.ok) return answer;
  let said = {};
  try {
    said = await answer.json();
  } catch {
    // not one of ours
  }
  throw new Problem(answer.status, said.detail ?? answer.statusText, said.hint ?? "");
}

/** Send JSON, get JSON. */
export async function ask(method, path, value, type = "application/json") {
  const options = value === undefined ? {} : { body: JSON.stringify(value), type };
  const answer = await send(method, path, options);
  return answer.status === 204 ? null : answer.json();
}

export const patchToken = (job, patch) =>
  ask("PATCH", `/v1/jobs/${job}/token`, patch, "application/merge-patch+json");

/**
 * Follow a job's figures: `onStatus(figures)` a few times a second, `onEnd()` when it is over,
 * `onLost(isOver)` when the connection went: the browser dials again by itself, unless it is refused
 * (`isOver`). Returns a function that stops it.
 */
export function follow(job, { onStatus, onEnd, onLost }) {
  const source = new EventSource(withKey(`/v1/jobs/${job}/events?hz=${HZ}`));
  source.addEventListener("status", (event) => onStatus(JSON.parse(event.data)));
  source.addEventListener("end", () => {
    source.close();
    onEnd();
  });
  source.addEventListener("error", () => onLost(source.readyState === EventSource.CLOSED));
  return () => source.close();
}
