// WHIP out of this browser (RFC 9725) and WHEP into it: one POST each, candidates within the offer.

import { Problem, send } from "/web/api.js";

const GATHER_MS = 1500;

/** A peer connection with the worker; `close` also tells the worker. */
export class Line {
  constructor(peer, address) {
    this.peer = peer;
    this.address = address;
  }

  close() {
    this.peer.close();
    send("DELETE", this.address).catch(() => {}); // it may have gone already
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

/** Play what `path` sends in the element `video`. */
export async function watch(path, video) {
  const peer = createPeer();
  const stream = new MediaStream();
  for (const kind of ["video", "audio"]) peer.addTransceiver(kind, { direction: "recvonly" });
  peer.addEventListener("track", ({ track, receiver }) => {
    // Now, not smoothly later: the picture is a mirror.
    if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
    stream.addTrack(track);
    if (video.srcObject !== stream) video.srcObject = stream;
    video.play().catch(() => {}); // a page in the background may not
  });
  return connect(peer, path);
}

function createPeer() {
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
    throw error instanceof Problem ? error : new Problem(0, `no WebRTC here (${error.message})`);
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
