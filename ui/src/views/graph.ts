// Places the steps of a pipeline: a column for each level, and curves from each step to those that
// need it. A curve that passes a level gets a place of its own there, so that it crosses no box.

export interface GraphStep {
  id: string;
  level: number;
  needs: string[];
}

export interface Box {
  id: string;
  x: number;
  y: number;
}

export interface Curve {
  from: string;
  to: string;
  path: string;
}

export interface Graph {
  boxes: Box[];
  curves: Curve[];
  width: number;
  height: number;
}

export const BOX_WIDTH = 172;
export const BOX_HEIGHT = 48;
const COLUMN_GAP = 52;
const ROW_GAP = 18;
const PASS_HEIGHT = 10;
const MARGIN = 4;

/** A step in its column, or the place where a curve passes (`step` is null then). */
interface Place {
  step: GraphStep | null;
  left: Place[];
  column: number;
  y: number;
}

const heightOf = (p: Place): number => (p.step ? BOX_HEIGHT : PASS_HEIGHT);
const middleOf = (p: Place): number => p.y + heightOf(p) / 2;

interface Link {
  from: string;
  to: string;
  places: Place[];
}

function makePlaces(steps: GraphStep[]): { columns: Place[][]; links: Link[] } {
  const columns: Place[][] = [];
  const add = (step: GraphStep | null, column: number, left: Place[]): Place => {
    const place = { step, left, column, y: 0 };
    (columns[column] ??= []).push(place);
    return place;
  };
  const levels = [...new Set(steps.map((s) => s.level))].sort((a, b) => a - b);
  const columnOf = new Map(levels.map((level, i) => [level, i]));
  const placeOf = new Map(steps.map((s) => [s.id, add(s, columnOf.get(s.level) ?? 0, [])]));
  const links: Link[] = [];

  for (const step of steps) {
    const to = placeOf.get(step.id);
    for (const need of step.needs) {
      const from = placeOf.get(need);
      if (!from || !to) continue;
      const places = [from];
      for (let c = from.column + 1; c < to.column; c++) {
        places.push(add(null, c, [places[places.length - 1]!]));
      }
      to.left.push(places[places.length - 1]!);
      places.push(to);
      links.push({ from: need, to: step.id, places });
    }
  }
  return { columns, links };
}

/** Each column in the order of the middles of what its places come from. */
function arrange(columns: Place[][]): number {
  const heights = columns.map((c) => c.reduce((sum, p) => sum + heightOf(p) + ROW_GAP, -ROW_GAP));
  const height = Math.max(...heights);

  for (const [i, column] of columns.entries()) {
    const wish = (p: Place) =>
      p.left.length === 0 ? 0 : p.left.reduce((sum, l) => sum + middleOf(l), 0) / p.left.length;
    const wishes = new Map(column.map((p) => [p, wish(p)]));
    column.sort((a, b) => (wishes.get(a) ?? 0) - (wishes.get(b) ?? 0));
    let y = MARGIN + (height - (heights[i] ?? 0)) / 2;
    for (const place of column) {
      place.y = y;
      y += heightOf(place) + ROW_GAP;
    }
  }
  return height;
}

const xOf = (p: Place): number => MARGIN + p.column * (BOX_WIDTH + COLUMN_GAP);

function draw(places: Place[]): string {
  let path = "";
  for (const [i, place] of places.slice(1).entries()) {
    const before = places[i]!;
    const [x0, y0, x1, y1] = [xOf(before) + BOX_WIDTH, middleOf(before), xOf(place), middleOf(place)];
    const bend = (x1 - x0) / 2;
    path += `${i === 0 ? `M${x0} ${y0}` : ""}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`;
    if (!place.step) path += `H${x1 + BOX_WIDTH}`;
  }
  return path;
}

export function layOut(steps: GraphStep[]): Graph {
  if (steps.length === 0) return { boxes: [], curves: [], width: 0, height: 0 };
  const { columns, links } = makePlaces(steps);
  const height = arrange(columns);
  return {
    boxes: columns.flat().flatMap((p) => (p.step ? [{ id: p.step.id, x: xOf(p), y: p.y }] : [])),
    curves: links.map(({ from, to, places }) => ({ from, to, path: draw(places) })),
    width: columns.length * (BOX_WIDTH + COLUMN_GAP) - COLUMN_GAP + 2 * MARGIN,
    height: height + 2 * MARGIN,
  };
}
