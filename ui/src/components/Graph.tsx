// A directed graph, drawn in layers from left to right.
import type { Tone } from "./Badge";

export interface Node {
  id: string;
  title?: string;
  /** A second, smaller line. */
  note?: string | undefined;
  tone?: Tone | undefined;
  href?: string | undefined;
}

export interface Edge {
  from: string;
  to: string;
  tone?: Tone | undefined;
  /** Shown on hover. */
  title?: string | undefined;
}

interface GraphProps {
  label: string;
  nodes: Node[];
  edges: Edge[];
}

const WIDTH = 150;
const HEIGHT = 44;
const GAP_X = 72;
const GAP_Y = 22;
const MARGIN = 8;
const PASS_HEIGHT = 8;
const CHARS = 19;
const SWEEPS = 4;

/** The edges as successors, without those that close a cycle: found last, they point back. */
function acyclic(nodes: Node[], edges: Edge[]): Map<string, string[]> {
  const next = new Map<string, string[]>(nodes.map((n) => [n.id, []]));
  for (const e of edges) {
    if (e.from !== e.to && next.has(e.to)) next.get(e.from)?.push(e.to);
  }
  const kept = new Map<string, string[]>(nodes.map((n) => [n.id, []]));
  const state = new Map<string, "open" | "done">();
  const visit = (id: string) => {
    state.set(id, "open");
    for (const to of next.get(id) ?? []) {
      if (state.get(to) === "open") continue;
      kept.get(id)?.push(to);
      if (!state.has(to)) visit(to);
    }
    state.set(id, "done");
  };
  for (const n of nodes) if (!state.has(n.id)) visit(n.id);
  return kept;
}

/** The layer of each node: one more than the highest of those before it. */
function layersOf(nodes: Node[], next: Map<string, string[]>): string[][] {
  const layer = new Map<string, number>();
  const before = new Map<string, string[]>(nodes.map((n) => [n.id, []]));
  for (const [from, list] of next) for (const to of list) before.get(to)?.push(from);
  const depth = (id: string): number => {
    const known = layer.get(id);
    if (known !== undefined) return known;
    const d = Math.max(0, ...(before.get(id) ?? []).map((b) => depth(b) + 1));
    layer.set(id, d);
    return d;
  };
  const layers: string[][] = [];
  for (const n of nodes) (layers[depth(n.id)] ??= []).push(n.id);
  return layers;
}

const edgeKey = (from: string, to: string): string => `${from}\n${to}`;

interface Passes {
  /** The edges, from place to place. */
  next: Map<string, string[]>;
  /** The places between the ends of an edge, by edgeKey(). */
  via: Map<string, string[]>;
}

/** Gives an edge a place in each layer that it skips, so that it crosses no box there. */
function addPasses(layers: string[][], edges: Map<string, string[]>): Passes {
  const layer = new Map(layers.flatMap((ids, i) => ids.map((id): [string, number] => [id, i])));
  const next = new Map<string, string[]>();
  const via = new Map<string, string[]>();
  for (const [from, list] of edges) {
    for (const to of list) {
      const skipped = layers.slice((layer.get(from) ?? 0) + 1, layer.get(to));
      const passes = skipped.map((ids, i) => {
        const pass = `${edgeKey(from, to)}\n${i}`;
        ids.push(pass);
        return pass;
      });
      via.set(edgeKey(from, to), passes);
      [from, ...passes].forEach((id, i) =>
        next.set(id, [...(next.get(id) ?? []), passes[i] ?? to]),
      );
    }
  }
  return { next, via };
}

/** Orders each layer by where its neighbours are, so that fewer edges cross. */
function untangle(layers: string[][], next: Map<string, string[]>): void {
  const around = new Map<string, string[]>();
  const note = (a: string, b: string) => around.set(a, [...(around.get(a) ?? []), b]);
  for (const [from, list] of next) {
    for (const to of list) {
      note(from, to);
      note(to, from);
    }
  }
  for (let i = 0; i < SWEEPS; i++) {
    const place = new Map(
      layers.flatMap((l) => l.map((id, at): [string, number] => [id, at - l.length / 2])),
    );
    const middle = (id: string) => {
      const near = around.get(id) ?? [];
      return near.length === 0
        ? 0
        : near.reduce((sum, n) => sum + (place.get(n) ?? 0), 0) / near.length;
    };
    for (const l of layers) l.sort((a, b) => middle(a) - middle(b));
  }
}

const cut = (text: string): string => (text.length > CHARS ? `${text.slice(0, CHARS - 1)}…` : text);

interface Place {
  x: number;
  y: number;
  height: number;
}

const middle = (p: Place): number => p.y + p.height / 2;

const endsOf = (places: Place[]): [Place, Place] => [places[0]!, places[places.length - 1]!];

function pointsBack(places: Place[]): boolean {
  const [a, b] = endsOf(places);
  return b.x <= a.x + WIDTH;
}

/** Where the handles of the curve are that goes around below. */
function lowest(places: Place[]): number {
  const [a, b] = endsOf(places);
  return Math.max(a.y, b.y) + HEIGHT + 26;
}

/** The path of an edge through these places; one that points back goes around below. */
function path(places: Place[]): string {
  const [a, b] = endsOf(places);
  if (!pointsBack(places)) {
    const curves = places.slice(1).map((to, i) => {
      const from = places[i]!;
      const [x1, x2, bend] = [from.x + WIDTH, to === b ? to.x - 2 : to.x, GAP_X / 2];
      return `L${x1} ${middle(from)} C${x1 + bend} ${middle(from)} ${x2 - bend} ${middle(to)} ${x2} ${middle(to)}`;
    });
    return `M${a.x + WIDTH} ${middle(a)} ${curves.join(" ")}`;
  }
  const [fromX, toX] = [a.x + WIDTH / 2, b.x + WIDTH / 2];
  const low = lowest(places);
  return `M${fromX} ${a.y + HEIGHT} C${fromX} ${low} ${toX} ${low} ${toX} ${b.y + HEIGHT + 3}`;
}

function Box({ node, x, y }: { node: Node; x: number; y: number }) {
  const { title = node.id, note } = node;
  const box = (
    <g class={`graph-node ${node.tone ?? "idle"}`} transform={`translate(${x} ${y})`}>
      <title>{note === undefined ? title : `${title}: ${note}`}</title>
      <rect width={WIDTH} height={HEIGHT} rx={7} />
      <text x={10} y={note === undefined ? 27 : 19}>
        {cut(title)}
      </text>
      {note !== undefined && (
        <text class="graph-note" x={10} y={34}>
          {cut(note)}
        </text>
      )}
    </g>
  );
  return node.href === undefined ? box : <a href={node.href}>{box}</a>;
}

export function Graph({ label, nodes, edges }: GraphProps) {
  const next = acyclic(nodes, edges);
  const layers = layersOf(nodes, next);
  const passes = addPasses(layers, next);
  untangle(layers, passes.next);
  const isPass = new Set([...passes.via.values()].flat());
  const heightOf = (id: string) => (isPass.has(id) ? PASS_HEIGHT : HEIGHT);
  const heights = layers.map((ids) => ids.reduce((sum, id) => sum + heightOf(id) + GAP_Y, 0));
  const rows = Math.max(HEIGHT + GAP_Y, ...heights);
  const at = new Map<string, Place>();
  layers.forEach((ids, column) => {
    let y = MARGIN + (rows - (heights[column] ?? 0)) / 2;
    for (const id of ids) {
      at.set(id, { x: MARGIN + column * (WIDTH + GAP_X), y, height: heightOf(id) });
      y += heightOf(id) + GAP_Y;
    }
  });
  const width = 2 * MARGIN + layers.length * (WIDTH + GAP_X) - GAP_X;
  const drawn = edges.flatMap((e) => {
    const ids = [e.from, ...(passes.via.get(edgeKey(e.from, e.to)) ?? []), e.to];
    const places = ids.flatMap((id) => at.get(id) ?? []);
    return places.length === ids.length ? [{ edge: e, places }] : [];
  });
  const back = drawn.filter((d) => pointsBack(d.places));
  const low = Math.max(0, ...back.map((d) => lowest(d.places)));
  const height = MARGIN + Math.max(rows + MARGIN - GAP_Y, low);
  return (
    <div class="graph" tabIndex={0} role="group" aria-label={label}>
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height}>
        <defs>
          {["idle", "bad", "busy"].map((tone) => (
            <marker
              key={tone}
              id={`arrow-${tone}`}
              class={`graph-arrow ${tone}`}
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              orient="auto"
            >
              <path d="M0 0L8 4L0 8z" />
            </marker>
          ))}
        </defs>
        {drawn.map(({ edge: e, places }) => {
          const tone = e.tone ?? "idle";
          const arrow = tone === "bad" || tone === "busy" ? tone : "idle";
          return (
            <path
              key={edgeKey(e.from, e.to)}
              class={`graph-edge ${tone}`}
              d={path(places)}
              marker-end={`url(#arrow-${arrow})`}
            >
              <title>{e.title ?? `${e.from} → ${e.to}`}</title>
            </path>
          );
        })}
        {nodes.map((n) => {
          const place = at.get(n.id);
          return place && <Box key={n.id} node={n} x={place.x} y={place.y} />;
        })}
      </svg>
    </div>
  );
}
