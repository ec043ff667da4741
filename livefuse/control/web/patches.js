// Changes of a job's token on their way: one at a time, so that answers come in order. What is
// changed meanwhile (a slider is faster than a network loads) goes together in the next one.

import { patchToken } from "/web/api.js";

export class Patches {
  /** `onAnswer(token)` gets what holds now, `onRefused(error, place)` why not. */
  constructor(onAnswer, onRefused) {
    this.onAnswer = onAnswer;
    this.onRefused = onRefused;
    this.waiting = null; // {job, patch, place}
    this.isSending = false;
  }

  /** Whether what the controls show is newer than what the worker has said. */
  get isBusy() {
    return this.isSending || this.waiting !== null;
  }

  send(job, patch, place) {
    const isSame = this.waiting?.job === job;
    this.waiting = { job, patch: isSame ? merge(this.waiting.patch, patch) : patch, place };
    return this.isSending ? undefined : this.run();
  }

  async run() {
    this.isSending = true;
    while (this.waiting !== null) {
      const { job, patch, place } = this.waiting;
      this.waiting = null;
      try {
        const token = await patchToken(job, patch);
        if (this.waiting === null) this.onAnswer(token, job);
      } catch (error) {
        this.onRefused(error, place, job);
      }
    }
    this.isSending = false;
  }
}

const isTable = (one) => one !== null && typeof one === "object" && !Array.isArray(one);

/** Return one merge patch (RFC 7396) that does what `first` and then `second` do. */
function merge(first, second) {
  const merged = { ...first };
  for (const [key, value] of Object.entries(second)) {
    merged[key] = isTable(value) && isTable(merged[key]) ? merge(merged[key], value) : value;
  }
  return merged;
}

/** Return what `table` is after the merge patch `patch`. */
export function apply(table, patch) {
  const changed = { ...table };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete changed[key];
    else changed[key] = isTable(value) ? apply(isTable(changed[key]) ? changed[key] : {}, value) : value;
  }
  return changed;
}
