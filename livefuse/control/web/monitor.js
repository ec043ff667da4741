// The figures of a job: what it adds in time, where the time goes, what was given up and why.

import { Lines, drawStack } from "/web/chart.js";
import { make, setText } from "/web/dom.js";
import { say } from "/web/words.js";

const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];
const DRAW_MS = 500;
const WAITING = new Set(["queue"]); // nobody's work

export function createMonitor(root, page) {
  const latency = createChart("latency", [["p50", "--c1"], ["p95", "--c2"]], "ms");
  const rates = createChart("fps", [["in", "--c3"], ["out", "--c1"]], "");
  const stack = make("canvas", { class: "stack", role: "img", "aria-label": say("steps") });
  const steps = make("tbody");
  const costly = make("p", { class: "quiet" });
  const facts = make("dl", { class: "facts", id: "facts" });
  const drops = make("tbody", { id: "drops" });
  const lines = make("tbody", { id: "lines" });
  const log = make("tbody", { id: "token-log" });
  const token = make("pre", { class: "token", tabindex: "0", "aria-label": say("token") });
  root.append(
    make("div", { class: "grid" },
      latency.element,
      rates.element,
      make("section", { class: "card" }, make("h2", {}, say("steps")), stack,
        createTable([say("what"), say("p50"), say("p95")], steps), costly),
      make("section", { class: "card" }, make("h2", {}, say("state")), facts),
      make("section", { class: "card" }, make("h2", {}, say("dropped")), createTable([say("reason"), say("count")], drops)),
      make("section", { class: "card" }, make("h2", {}, `${say("input")}, ${say("output")}`),
        createTable([say("what"), say("state"), say("reconnects")], lines)),
      make("section", { class: "card whole" }, make("h2", {}, say("tokenLog")),
        createTable([say("what"), say("why"), say("took")], log), make("details", {}, make("summary", {}, say("token")), token)),
    ),
  );
  let drawn = 0;
  let isShown = false;

  function show(figures) {
    const budget_ms = 1000 / Math.max(figures.media?.fps || figures.fps_in || 30, 1);
    const parts = Object.entries(figures.steps)
      .filter(([name]) => !WAITING.has(name))
      .map(([name, times], index) => ({ name, ms: times.p50_ms, p95: times.p95_ms, colour: COLOURS[index % COLOURS.length] }));
    drawStack(stack, parts, budget_ms);
    fillTable(steps, parts.map((part) => [createKey(part.colour, part.name), part.ms.toFixed(1), part.p95.toFixed(1)]));
    setText(costly, `${say("costsMost")}: ${figures.bottleneck || say("none")} · ${say("budget")}: ${budget_ms.toFixed(1)} ms`);
    fillTable(drops, listOr(Object.entries(figures.dropped).filter(([, amount]) => amount)));
    fillTable(lines, [
      [`${say("input")}: ${figures.source}`, figures.input_state ?? figures.state, String(figures.counts.reconnect ?? 0)],
      ...figures.outputs.map((one) => [one.url, [one.state, one.error].filter(Boolean).join(": "), String(one.reconnects ?? 0)]),
    ]);
    fillFacts(facts, figures);
    const entries = figures.token?.log ?? [];
    fillTable(log, entries.map((entry) => [entry.state, entry.reason ?? "", (entry.ms ?? 0).toFixed(2)]));
    const { log: _log, ...rest } = figures.token ?? {};
    setText(token, JSON.stringify(rest, null, 1));
    latency.lines.draw();
    rates.lines.draw();
  }

  return {
    onShown: (now) => {
      isShown = now;
      if (isShown && page.state.figures) show(page.state.figures);
    },
    onFigures: (figures) => {
      latency.add([figures.latency_recent.p50_ms, figures.latency_recent.p95_ms]);
      rates.add([figures.fps_in, figures.fps_out]);
      // Drawn for whoever looks, and not faster than an eye reads.
      if (!isShown || performance.now() - drawn < DRAW_MS) return;
      drawn = performance.now();
      show(figures);
    },
    onJob: () => {
      latency.lines.points = [];
      rates.lines.points = [];
    },
  };
}

function createChart(title, series, unit) {
  const canvas = make("canvas", { class: "chart", role: "img", "aria-label": say(title) });
  const now = series.map(() => make("b"));
  const legend = series.map(([name, colour], index) => make("span", {}, createKey(colour, say(name)), " ", now[index], ` ${unit} `));
  const lines = new Lines(canvas, series.map(([name, colour]) => ({ name, colour })));
  return {
    lines,
    element: make("section", { class: "card" }, make("h2", {}, say(title)), canvas, make("p", { class: "legend" }, ...legend)),
    add: (values) => {
      lines.add(values);
      values.forEach((value, index) => setText(now[index], value.toFixed(1)));
    },
  };
}

function createKey(colour, text) {
  return make("span", { class: `key ${colour.slice(2)}` }, text);
}

function createTable(heads, body) {
  return make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), body);
}

function fillTable(body, rows) {
  body.replaceChildren(...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, typeof cell === "number" ? String(cell) : cell)))));
}

const listOr = (rows) => (rows.length ? rows : [[say("none"), ""]]);

function fillFacts(list, figures) {
  const networks = figures.networks?.provider ? `${figures.networks.provider}${figures.networks.fell_back ? ` (${figures.networks.wanted})` : ""}` : "";
  const rows = [
    [say("state"), [figures.state, figures.health_reason].filter(Boolean).join(": ")],
    [say("rung"), figures.rung && figures.rung !== "everything" ? figures.rung : say("rungNone")],
    [say("faces"), String(figures.faces)],
    [say("input"), [figures.media?.size, figures.media?.decoder, figures.media?.audio].filter(Boolean).join(", ")],
    [say("output"), figures.media?.encoder ?? ""],
    [say("networks"), networks],
    ...figures.notes.map((note) => ["", note]),
  ];
  list.replaceChildren(...rows.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
}
