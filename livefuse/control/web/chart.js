// Lines and stacked bars on a canvas, in the colours of the style sheet. A table says the same in text.

const SECONDS = 120;
const FONT = "11px system-ui, sans-serif";

/** Keeps the last two minutes of some series and draws them as lines. */
export class Lines {
  constructor(canvas, series) {
    this.canvas = canvas;
    this.series = series; // [{name, colour}]
    this.points = [];
  }

  add(values) {
    const now = performance.now() / 1000;
    this.points.push({ at: now, values });
    while (this.points.length && now - this.points[0].at > SECONDS) this.points.shift();
  }

  /** Draw; with `limit` a dashed line there, named `title`. */
  draw(limit = 0, title = "") {
    const { context, width, height } = prepare(this.canvas);
    const all = this.points.flatMap((point) => point.values).filter(Number.isFinite);
    const top = niceTop(Math.max(1, limit * 1.2, ...all));
    drawGrid(context, width, height, top);
    if (limit) drawLimit(context, width, height * (1 - limit / top), title);
    const now = performance.now() / 1000;
    this.series.forEach(({ colour }, index) => {
      context.strokeStyle = readColour(colour);
      context.lineWidth = 2;
      context.beginPath();
      this.points.forEach((point, place) => {
        const x = width * (1 - (now - point.at) / SECONDS);
        const y = height * (1 - Math.min(point.values[index] / top, 1));
        if (place === 0) context.moveTo(x, y);
        else context.lineTo(x, y);
      });
      context.stroke();
    });
  }
}

/** One stacked bar: what each step costs a frame, beside the time a frame has. */
export function drawStack(canvas, parts, budget_ms, title) {
  const { context, width, height } = prepare(canvas);
  const total = parts.reduce((sum, part) => sum + part.ms, 0);
  const scale = width / Math.max(total, budget_ms * 1.25, 1);
  let x = 0;
  for (const part of parts) {
    context.fillStyle = readColour(part.colour);
    context.fillRect(x, 16, Math.max(part.ms * scale - 1, 0), height - 20);
    x += part.ms * scale;
  }
  context.fillStyle = readColour("--text");
  context.fillRect(budget_ms * scale, 0, 2, height);
  context.font = FONT;
  const isLeft = budget_ms * scale < width / 2; // where there is room
  context.textAlign = isLeft ? "left" : "right";
  context.fillText(title, budget_ms * scale + (isLeft ? 7 : -5), 11);
}

function drawLimit(context, width, y, title) {
  context.strokeStyle = context.fillStyle = readColour("--text");
  context.lineWidth = 1;
  context.setLineDash([4, 4]);
  context.beginPath();
  context.moveTo(0, y);
  context.lineTo(width, y);
  context.stroke();
  context.setLineDash([]);
  context.font = FONT;
  context.textAlign = "right";
  context.fillText(title, width - 3, y - 4);
  context.textAlign = "left";
}

function prepare(canvas) {
  const ratio = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

function drawGrid(context, width, height, top) {
  context.strokeStyle = readColour("--line");
  context.fillStyle = readColour("--quiet");
  context.lineWidth = 1;
  context.font = FONT;
  for (const share of [0, 0.5, 1]) {
    const y = Math.round(height * (1 - share)) + (share === 1 ? 0.5 : -0.5);
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(width, y);
    context.stroke();
    if (share) context.fillText(String(top * share), 3, y + 12);
  }
}

function niceTop(value) {
  const base = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * base).find((top) => top >= value);
}

function readColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || name;
}
