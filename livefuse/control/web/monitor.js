// The figures of a job: what it adds in time, where the time goes, what was given up and why.

import { Lines, drawStack } from "/web/chart.js";
import { make, setText } from "/web/dom.js";
import { say, sayOf, sayReason } from "/web/words.js";

const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];
const DRAW_MS = 450; // as often as an eye reads
const WAITING = new Set(["queue"]); // nobody's work
const UPWARDS = "head_room"; // why the governor went up, not down

export function createMonitor(root, page) {
  const latency = createChart("chart-latency", say("latency"), [[say("p50"), "--c1"], [say("p95"), "--c2"]], "ms");
  const rates = createChart("chart-fps", say("fps"), [[say("in"), "--c3"], [say("out"), "--c1"]], "");
  const stack = make("canvas", { class: "stack", role: "img", "aria-label": say("steps") });
  const steps = make("tbody", { id: "steps" });
  const costly = make("p", { class: "quiet small" });
  const facts = make("dl", { class: "facts", id: "facts" });
  const drops = make("tbody", { id: "drops" });
  const lines = make("tbody", { id: "lines" });
  const log = make("tbody", { id: "token-log" });
  const token = make("pre", { class: "token", tabindex: "0", "aria-label": say("token") });
  const empty = make("p", { class: "card", id: "no-figures" }, say("noFigures"));
  const grid = make("div", { class: "grid", hidden: true },
    latency.element,
    rates.element,
    createCard(say("steps"), stack, createTable([say("what"), say("p50"), say("p95")], steps), costly),
    createCard(say("state"), facts),
    createCard(say("lines"), createTable([say("what"), say("state"), say("reconnects")], lines)),
    createCard(say("dropped"), createTable([say("reason"), say("count")], drops)),
    createCard(say("tokenLog"), createTable([say("what"), say("why"), say("took")], log), make("details", {}, make("summary", {}, say("token")), token)),
  );
  grid.lastElementChild.classList.add("whole");
  root.append(empty, grid);
  let isShown = false;
  let drawn = 0;

  function show(figures) {
    empty.hidden = figures !== null;
    grid.hidden = figures === null;
    if (figures === null) return;
    const budget_ms = 1000 / Math.max(figures.media?.fps || figures.fps_in || 30, 1);
    const parts = Object.entries(figures.steps)
      .filter(([name]) => !WAITING.has(name))
      .map(([name, times], index) => ({ name, ms: times.p50_ms, p95: times.p95_ms, colour: COLOURS[index % COLOURS.length] }));
    const budget = say("budget", { ms: budget_ms.toFixed(1) });
    drawStack(stack, parts, budget_ms, budget);
    fillTable(steps, parts.map((part) => [createKey(part.colour, sayOf("step", part.name)), part.ms.toFixed(1), part.p95.toFixed(1)]));
    setText(costly, figures.bottleneck ? say("costsMost", { name: sayOf("step", figures.bottleneck) }) : "");
    const given = Object.entries(figures.dropped).filter(([, amount]) => amount).sort(([, a], [, b]) => b - a);
    fillTable(drops, given.length ? given.map(([name, amount]) => [sayOf("drop", name), amount]) : [[say("droppedNone"), ""]]);
    fillTable(lines, listLines(figures));
    fillFacts(facts, figures);
    const entries = figures.token?.log ?? [];
    fillTable(log, entries.length
      ? entries.map((entry) => [sayOf("step", entry.state), entry.reason ?? "", (entry.ms ?? 0).toFixed(2)])
      : [[say("tokenNone"), "", ""]]);
    const { log: _log, ...rest } = figures.token ?? {};
    setText(token, JSON.stringify(rest, null, 1));
    latency.lines.draw(budget_ms, budget);
    rates.lines.draw();
  }

  return {
    onShown: (now) => {
      isShown = now;
      if (isShown) show(page.state.figures);
    },
    onFigures: (figures) => {
      latency.add([figures.latency_recent.p50_ms, figures.latency_recent.p95_ms]);
      rates.add([figures.fps_in, figures.fps_out]);
      // Drawn only for whoever looks.
      if (!isShown || document.hidden || performance.now() - drawn < DRAW_MS) return;
      drawn = performance.now();
      show(figures);
    },
    onJob: () => {
      latency.lines.points = [];
      rates.lines.points = [];
      if (isShown) show(null);
    },
  };
}

const createCard = (title, ...children) => make("section", { class: "card" }, make("h2", {}, title), ...children);

function createChart(id, title, series, unit) {
  const canvas = make("canvas", { class: "chart", id, role: "img", "aria-label": title });
  const now = series.map(() => make("b"));
  const legend = series.map(([name, colour], index) => make("span", {}, createKey(colour, name), " ", now[index], ` ${unit}`));
  const lines = new Lines(canvas, series.map(([name, colour]) => ({ name, colour })));
  return {
    lines,
    element: createCard(title, canvas, make("p", { class: "legend" }, ...legend)),
    add: (values) => {
      lines.add(values);
      values.forEach((value, index) => setText(now[index], value.toFixed(1)));
    },
  };
}

const createKey = (colour, text) => make("span", { class: `key ${colour.slice(2)}` }, text);

function createTable(heads, body) {
  const row = heads.map((head, index) => make("th", { scope: "col", class: index ? "number" : "" }, head));
  return make("table", {}, make("thead", {}, make("tr", {}, ...row)), body);
}

/** Write `rows` of text, numbers or elements; only when they say something new. */
function fillTable(body, rows) {
  const wanted = JSON.stringify(rows.map((row) => row.map((cell) => cell.textContent ?? cell)));
  if (body.dataset.filled === wanted) return;
  body.dataset.filled = wanted;
  body.replaceChildren(...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, typeof cell === "number" ? String(cell) : cell)))));
}

function listLines(figures) {
  const input = figures.input?.state ?? figures.state;
  const rows = [[`${say("input")}: ${figures.source}`, sayOf("line", input), figures.counts.reconnect ?? 0]];
  for (const one of figures.outputs) {
    const trouble = one.state === "live" ? "" : one.error;
    const words = [sayOf("line", one.state), trouble].filter(Boolean).join(": ");
    const viewers = one.viewers ? ` (${say("viewers", { count: one.viewers })})` : "";
    rows.push([`${say("output")}: ${one.url}${viewers}`, words, one.reconnects ?? 0]);
  }
  return rows;
}

function fillFacts(list, figures) {
  const rows = [
    [say("state"), [sayOf("health", figures.health), sayReason(figures.health_reason ?? "")].filter(Boolean).join(": ")],
    [say("rung"), sayOf("rung", figures.rung || "everything")],
    ...listCauses(figures),
    [say("faces"), String(figures.faces)],
    [say("input"), [figures.media?.size, figures.media?.decoder, figures.media?.audio].filter(Boolean).join(", ")],
    [say("encoder"), figures.media?.encoder ?? ""],
    [say("networks"), describeNetworks(figures.networks ?? {})],
    [say("notes"), figures.notes.join("; ")],
  ];
  const wanted = JSON.stringify(rows);
  if (list.dataset.filled === wanted) return;
  list.dataset.filled = wanted;
  list.replaceChildren(...rows.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
}

/** Say why something is spared: what has pressed, and what presses now. */
function listCauses(figures) {
  const isSpared = figures.rung && figures.rung !== "everything";
  const changes = Object.entries(figures.load?.changes ?? {}).filter(([name]) => name !== UPWARDS);
  const pressures = (figures.load?.pressures ?? []).map((name) => sayOf("cause", name));
  const causes = changes.map(([name, count]) => `${sayOf("cause", name)} (${say("times", { count })})`);
  return [
    [say("rungWhy"), isSpared ? causes.join("; ") : ""],
    [say("rungPresses"), pressures.join("; ")],
  ];
}

function describeNetworks(networks) {
  if (!networks.provider) return "";
  return networks.fell_back && networks.wanted !== "auto" ? say("fellBack", networks) : networks.provider;
}
