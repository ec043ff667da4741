// Only the picture, on the whole page: for OBS's browser source, and for a second screen.

import { make } from "/web/dom.js";
import { watch } from "/web/rtc.js";

const AGAIN_MS = 2000;

export async function showScreen(job) {
  const video = make("video", { class: "screen", autoplay: true, playsinline: true, muted: true });
  video.muted = true;
  document.body.replaceChildren(video);
  document.body.classList.add("bare");
  keepWatching(`/v1/jobs/${job}/whep`, video);
}

async function keepWatching(path, video) {
  let line = null;
  try {
    line = await watch(path, video);
    line.peer.addEventListener("connectionstatechange", () => {
      if (["failed", "disconnected", "closed"].includes(line.peer.connectionState)) {
        line.close();
        setTimeout(() => keepWatching(path, video), AGAIN_MS);
      }
    });
  } catch {
    setTimeout(() => keepWatching(path, video), AGAIN_MS); // not there yet
  }
}
