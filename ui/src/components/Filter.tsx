// Filters are parameters of the URL: a filtered view can be linked to.
import { useEffect, useRef, useState } from "preact/hooks";
import { useParam } from "../router";

const TYPING_MS = 250;

/** A text that filters the listing; the key / moves to the first one of a view. */
export function Filter({ name, label }: { name: string; label: string }) {
  const [value, setValue] = useParam(name);
  const [typed, setTyped] = useState(value);
  const timer = useRef(0);
  useEffect(() => {
    setTyped(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const later = (text: string) => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setValue(text), TYPING_MS);
  };
  return (
    <input
      type="search"
      class="filter"
      data-filter
      aria-label={label}
      placeholder={label}
      value={typed}
      spellcheck={false}
      autocomplete="off"
      onInput={(e) => later(e.currentTarget.value)}
    />
  );
}

export interface Choice {
  value: string;
  title: string;
}

/** One of a few values; the first one is the default and not in the URL. */
export function Select({ name, label, choices }: { name: string; label: string; choices: Choice[] }) {
  const [value, setValue] = useParam(name);
  return (
    <label class="select">
      <span>{label}</span>
      <select
        value={value}
        onChange={(e) => setValue(e.currentTarget.value === choices[0]?.value ? "" : e.currentTarget.value)}
      >
        {choices.map((c, i) => (
          <option key={c.value} value={i === 0 ? "" : c.value}>
            {c.title}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A yes or no that narrows the listing. */
export function Check({ name, label }: { name: string; label: string }) {
  const [value, setValue] = useParam(name);
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={value === "true"}
        onChange={(e) => setValue(e.currentTarget.checked ? "true" : "")}
      />
      {label}
    </label>
  );
}
