// A listing: rows, keyboard navigation, and pages turned on the server by cursor.
import type { ComponentChildren } from "preact";
import type { Live, Page } from "../live";
import { navigate, setParams, useRoute } from "../router";
import { ErrorBox } from "./ErrorBox";
import { Icon } from "./Icon";
import { Loading } from "./Loading";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  align?: "right";
  /** Hidden on narrow screens. */
  wide?: boolean;
  /** The column takes the remaining width, and cuts longer texts. */
  grow?: boolean;
  /** The value of the parameter `sort` that the server knows; the title becomes a button. */
  sort?: string;
}

interface TableProps<T> {
  /** What the rows are, for screen readers: "Locks". */
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  /** The address of a row: Enter or a click on the row opens it. */
  rowHref?: (row: T) => string;
  rowTone?: (row: T) => "bad" | "warn" | undefined;
}

const INTERACTIVE = "a, button, input, select, textarea, label, summary";

function follow(e: MouseEvent, to: string): void {
  const target = e.target as Element;
  if (target.closest(INTERACTIVE) || (getSelection()?.toString() ?? "") !== "") return;
  if (e.ctrlKey || e.metaKey) window.open(to);
  else navigate(to);
}

function SortButton({ title, sort }: { title: string; sort: string }) {
  const now = useRoute().query.get("sort") ?? "";
  const next = now === sort ? `-${sort}` : now === `-${sort}` ? "" : sort;
  return (
    <button type="button" class="sort" onClick={() => setParams({ sort: next })}>
      {title}
      <span aria-hidden="true">{now === sort ? " ↑" : now === `-${sort}` ? " ↓" : ""}</span>
    </button>
  );
}

function Head<T>({ column }: { column: Column<T> }) {
  const now = useRoute().query.get("sort") ?? "";
  const { sort } = column;
  const order =
    sort === undefined
      ? undefined
      : now === sort
        ? "ascending"
        : now === `-${sort}`
          ? "descending"
          : "none";
  return (
    <th scope="col" class={cellClass(column)} aria-sort={order}>
      {sort === undefined ? column.title : <SortButton title={column.title} sort={sort} />}
    </th>
  );
}

const cellClass = <T,>(c: Column<T>): string =>
  [c.align === "right" && "right", c.wide && "wide", c.grow && "grow"].filter(Boolean).join(" ");

/** Shows a text that its cell may cut in full on hover. */
const whole = (cell: ComponentChildren): string | undefined =>
  typeof cell === "string" && cell !== "" ? cell : undefined;

export function Table<T>({ label, columns, rows, rowKey, rowHref, rowTone }: TableProps<T>) {
  return (
    <div class="table-box" tabIndex={rowHref ? -1 : 0} role="group" aria-label={label}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map((c) => (
              <Head key={c.title} column={c} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const to = rowHref?.(row);
            const cells = columns.map((c) => c.cell(row));
            return (
              <tr
                key={rowKey(row)}
                data-row
                tabIndex={-1}
                class={[to && "linked", rowTone?.(row)].filter(Boolean).join(" ")}
                onClick={to === undefined ? undefined : (e) => follow(e, to)}
              >
                {columns.map((c, i) => (
                  <td key={c.title} class={cellClass(c)} title={whole(cells[i])}>
                    {i === 0 && to !== undefined ? (
                      <a class="row-link" href={to}>
                        {cells[i]}
                      </a>
                    ) : (
                      cells[i]
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

// The page from which a cursor was reached, for the button back. From a page opened by its address,
// only the first one can be reached.
const cameFrom = new Map<string, string>();

export function Pager({ next }: { next: string | null }) {
  const { query } = useRoute();
  const cursor = query.get("cursor") ?? "";
  if (cursor === "" && next === null) return null;
  const go = (to: string) => setParams({ cursor: to }, { push: true, keepCursor: true });
  const forward = () => {
    if (next === null) return;
    cameFrom.set(next, cursor);
    go(next);
  };
  const back = cameFrom.get(cursor);
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={cursor === ""} onClick={() => go("")}>
        <Icon name="first" /> First
      </button>
      <button type="button" disabled={back === undefined} onClick={() => go(back ?? "")}>
        <Icon name="back" /> Previous
      </button>
      <button type="button" disabled={next === null} onClick={forward}>
        Next <Icon name="forward" />
      </button>
    </nav>
  );
}

interface ListProps<T> extends Omit<TableProps<T>, "rows"> {
  live: Live<Page<T>>;
  /** Shown instead of the table when the listing has no rows. */
  empty: ComponentChildren;
}

/** A listing from useList: loading, error, empty, rows and pages. */
export function List<T>({ live, empty, ...table }: ListProps<T>) {
  const { data, error, loading } = live;
  return (
    <>
      <ErrorBox error={error} title={`Cannot list ${table.label.toLowerCase()}`} />
      {loading && <Loading />}
      {data && (data.items.length > 0 ? <Table {...table} rows={data.items} /> : empty)}
      {data && <Pager next={data.next} />}
    </>
  );
}
