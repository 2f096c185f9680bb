// A value from outside, as indented JSON or as the text it is. Always text, never markup.
import { Copyable } from "./Copyable";

export const jsonText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);

export function Json({ value, label }: { value: unknown; label: string }) {
  if (value === null || value === undefined || value === "") return <p class="muted">None</p>;
  const text = jsonText(value);
  return (
    <div class="json">
      <Copyable value={text} label={label}>
        {" "}
      </Copyable>
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </div>
  );
}
