// Only the picture, on the whole page: for OBS's browser source, and for a second screen.

import { make } from "/web/dom.js";
import { play, watch } from "/web/rtc.js";

const AGAIN_MS = 2000;

export function showScreen(job) {
  const video = make("video", { class: "screen", id: "after", autoplay: true, playsinline: true });
  video.muted = true;
  document.body.replaceChildren(video);
  document.body.classList.add("bare");
  keepWatching(`/v1/jobs/${job}/whep`, video);
}

async function keepWatching(path, video) {
  const again = () => setTimeout(() => keepWatching(path, video), AGAIN_MS);
  try {
    const line = await watch(path);
    play(line, video);
    line.onGone(again);
    addEventListener("pagehide", () => line.close(), { once: true });
  } catch {
    again(); // not there yet
  }
}
