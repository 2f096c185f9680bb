// The keyboard: j and k (or the arrows) move between rows, / to the filter, g and a letter to a
// view, ? shows the keys. Nothing happens while something is typed.
import { navigate } from "./router";
import { can } from "./session";
import { createStore } from "./store";
import { VIEWS } from "./views";

export const helpShown = createStore(false);

const GO_MS = 1500;

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("input, textarea, select, dialog, [contenteditable]") !== null;

const rows = (): HTMLElement[] =>
  [...document.querySelectorAll<HTMLElement>("main [data-row]")].filter((row) => row.offsetParent !== null);

function moveRow(by: 1 | -1): void {
  const all = rows();
  const now = document.activeElement?.closest<HTMLElement>("[data-row]");
  const at = now ? all.indexOf(now) : -1;
  const next = all[at < 0 && by < 0 ? all.length - 1 : Math.min(Math.max(at + by, 0), all.length - 1)];
  const target = next?.querySelector<HTMLElement>("a.row-link") ?? next;
  target?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function focusFilter(): boolean {
  const filter = document.querySelector<HTMLInputElement>("main [data-filter]");
  filter?.focus();
  filter?.select();
  return filter !== null;
}

function go(letter: string): boolean {
  const view = VIEWS.find((v) => v.key === letter && can(v.permission, v.route));
  if (view) navigate(view.path);
  return view !== undefined;
}

let goUntil = 0;

/** Returns whether the key did something. */
function press(key: string, inTable: boolean): boolean {
  if (Date.now() < goUntil) {
    goUntil = 0;
    return go(key);
  }
  switch (key) {
    case "g":
      goUntil = Date.now() + GO_MS;
      return true;
    case "j":
      moveRow(1);
      return true;
    case "k":
      moveRow(-1);
      return true;
    case "ArrowDown":
    case "ArrowUp":
      if (inTable) moveRow(key === "ArrowDown" ? 1 : -1);
      return inTable;
    case "/":
      return focusFilter();
    case "?":
      helpShown.set(true);
      return true;
    default:
      return false;
  }
}

export function onKey(e: KeyboardEvent): void {
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
  if (isTyping(e.target)) {
    if (e.key === "Escape" && e.target instanceof HTMLInputElement) e.target.blur();
    return;
  }
  const inTable = e.target instanceof Element && e.target.closest("[data-row]") !== null;
  if (press(e.key, inTable)) e.preventDefault();
}
