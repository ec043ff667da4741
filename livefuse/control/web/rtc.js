// WHIP out of this browser (RFC 9725) and WHEP into it: one POST each, candidates within the offer.

import { Problem, send } from "/web/api.js";
import { say } from "/web/words.js";

const GATHER_MS = 1500;
const GONE = ["failed", "closed"];

/** A peer connection with the worker. */
class Line {
  constructor(peer, address) {
    this.peer = peer;
    this.address = address;
    this.stream = null;
    this.isClosed = false;
  }

  /** Call `run` once when the other end is gone, unless this end has closed. */
  onGone(run) {
    this.peer.addEventListener("connectionstatechange", () => {
      if (this.isClosed || !GONE.includes(this.peer.connectionState)) return;
      this.isClosed = true;
      this.peer.close();
      run();
    });
  }

  /** End it; `isTold`: the worker is told, which is of no use when its job is over. */
  async close(isTold = true) {
    if (this.isClosed) return;
    this.isClosed = true;
    // Told first: a peer that closes ends its session by itself. Kept alive, for pages being left.
    if (isTold) await send("DELETE", this.address, { keepalive: true }).catch(() => {});
    this.peer.close();
  }
}

/** Send the tracks of `stream` to `path`. */
export async function publish(path, stream) {
  const peer = createPeer();
  for (const track of stream.getTracks()) {
    const sender = peer.addTransceiver(track, { direction: "sendonly", streams: [stream] });
    if (track.kind === "video") {
      track.contentHint = "motion";
      preferH264(sender);
    }
  }
  return connect(peer, path);
}

/** Ask `path` for its picture and sound; the line's `stream` holds them. */
export async function watch(path) {
  const peer = createPeer();
  const stream = new MediaStream();
  for (const kind of ["video", "audio"]) peer.addTransceiver(kind, { direction: "recvonly" });
  peer.addEventListener("track", ({ track, receiver }) => {
    // Now, not smoothly later: the picture is a mirror.
    if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
    stream.addTrack(track);
  });
  const line = await connect(peer, path);
  line.stream = stream;
  return line;
}

/** Show the pictures of `line` in the element `video`. */
export function play(line, video) {
  video.srcObject = line.stream;
  video.play().catch(() => {}); // a page in the background may not
}

function createPeer() {
  if (!("RTCPeerConnection" in window)) throw new Problem(0, say("noWebRtc"));
  return new RTCPeerConnection({ iceServers: [], bundlePolicy: "max-bundle" });
}

function preferH264(transceiver) {
  const known = RTCRtpSender.getCapabilities?.("video")?.codecs ?? [];
  const isH264 = (codec) => codec.mimeType.toLowerCase() === "video/h264";
  const wanted = [...known.filter(isH264), ...known.filter((codec) => !isH264(codec))];
  if (wanted.length) transceiver.setCodecPreferences?.(wanted);
}

async function connect(peer, path) {
  try {
    await peer.setLocalDescription(await peer.createOffer());
    await gather(peer);
    const answer = await send("POST", path, {
      body: peer.localDescription.sdp,
      type: "application/sdp",
    });
    await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    return new Line(peer, answer.headers.get("Location"));
  } catch (error) {
    peer.close();
    throw error instanceof Problem ? error : new Problem(0, `WebRTC: ${error.message}`);
  }
}

function gather(peer) {
  if (peer.iceGatheringState === "complete") return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, GATHER_MS);
    peer.addEventListener("icegatheringstatechange", () => {
      if (peer.iceGatheringState !== "complete") return;
      clearTimeout(timer);
      resolve();
    });
  });
}
