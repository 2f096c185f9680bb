// A value that may be long: cut with an ellipsis, whole on hover, copied with a button.
import { useEffect, useState } from "preact/hooks";
import { notify } from "../act";
import { Icon } from "./Icon";

async function copy(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // The clipboard of navigator exists over HTTPS and on localhost only.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("refused");
}

/** The id of something, cut at its start where there is no room: the ends differ. */
export function Id({ value }: { value: string }) {
  return (
    <span class="id mono" title={value}>
      <bdi>{value}</bdi>
    </span>
  );
}

interface CopyableProps {
  value: string;
  /** Shown instead of the value, as a link or a shortened id. */
  children?: preact.ComponentChildren;
  /** What is copied, for the button's name. */
  label?: string;
  mono?: boolean;
}

export function Copyable({ value, children, label = "value", mono = true }: CopyableProps) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const onClick = (e: MouseEvent) => {
    e.stopPropagation();
    copy(value).then(
      () => setCopied(true),
      () => notify("bad", "cannot copy: the browser refuses access to the clipboard"),
    );
  };
  return (
    <span class="copyable">
      <span class={mono ? "copyable-text mono" : "copyable-text"} title={value}>
        {children ?? value}
      </span>
      <button
        type="button"
        class="icon-button"
        aria-label={copied ? "Copied" : `Copy ${label}`}
        onClick={onClick}
      >
        <Icon name={copied ? "check" : "copy"} />
      </button>
    </span>
  );
}
