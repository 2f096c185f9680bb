// Light, dark, or as the system says; kept in this browser.
import { createStore } from "./store";

export type Theme = "system" | "light" | "dark";

const KEY = "interlock-theme";
const ORDER: Theme[] = ["system", "light", "dark"];

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY) as Theme;
    return ORDER.includes(value) ? value : "system";
  } catch {
    return "system"; // storage is refused
  }
}

export const theme = createStore<Theme>(stored());

function apply(): void {
  const now = theme.get();
  if (now === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = now;
}
apply();

export function nextTheme(): void {
  const next = ORDER[(ORDER.indexOf(theme.get()) + 1) % ORDER.length] ?? "system";
  theme.set(next);
  apply();
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // it is kept until the page is closed
  }
}
