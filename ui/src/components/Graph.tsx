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
    const place = new Map(layers.flatMap((l) => l.map((id, at): [string, number] => [id, at - l.length / 2])));
    const middle = (id: string) => {
      const near = around.get(id) ?? [];
      return near.length === 0 ? 0 : near.reduce((sum, n) => sum + (place.get(n) ?? 0), 0) / near.length;
    };
    for (const l of layers) l.sort((a, b) => middle(a) - middle(b));
  }
}

const cut = (text: string): string => (text.length > CHARS ? `${text.slice(0, CHARS - 1)}…` : text);

/** The path of an edge; one that points back goes around below. */
function path(a: { x: number; y: number }, b: { x: number; y: number }): string {
  const [x1, y1, x2, y2] = [a.x + WIDTH, a.y + HEIGHT / 2, b.x, b.y + HEIGHT / 2];
  if (x2 > x1) {
    const bend = Math.min(GAP_X, (x2 - x1) / 2);
    return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 2} ${y2}`;
  }
  const [fromX, toX] = [a.x + WIDTH / 2, b.x + WIDTH / 2];
  const low = Math.max(a.y, b.y) + HEIGHT + 26;
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
  untangle(layers, next);
  const tallest = Math.max(1, ...layers.map((l) => l.length));
  const rows = tallest * (HEIGHT + GAP_Y);
  const at = new Map<string, { x: number; y: number }>();
  layers.forEach((ids, column) => {
    const top = MARGIN + (rows - ids.length * (HEIGHT + GAP_Y)) / 2;
    ids.forEach((id, row) => at.set(id, { x: MARGIN + column * (WIDTH + GAP_X), y: top + row * (HEIGHT + GAP_Y) }));
  });
  const width = 2 * MARGIN + layers.length * (WIDTH + GAP_X) - GAP_X;
  const height = 2 * MARGIN + rows + 20;
  return (
    <div class="graph" tabIndex={0} role="group" aria-label={label}>
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height}>
        <defs>
          {["idle", "bad", "busy"].map((tone) => (
            <marker key={tone} id={`arrow-${tone}`} class={`graph-arrow ${tone}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 0L8 4L0 8z" />
            </marker>
          ))}
        </defs>
        {edges.map((e) => {
          const [a, b] = [at.get(e.from), at.get(e.to)];
          const tone = e.tone ?? "idle";
          const arrow = tone === "bad" || tone === "busy" ? tone : "idle";
          return (
            a &&
            b && (
              <path key={`${e.from}\n${e.to}`} class={`graph-edge ${tone}`} d={path(a, b)} marker-end={`url(#arrow-${arrow})`}>
                <title>{e.title ?? `${e.from} → ${e.to}`}</title>
              </path>
            )
          );
        })}
        {nodes.map((n) => {
          const place = at.get(n.id);
          return place && <Box key={n.id} node={n} {...place} />;
        })}
      </svg>
    </div>
  );
}
