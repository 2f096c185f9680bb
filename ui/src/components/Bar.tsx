// A share as a bar with its text beside it.
import type { Tone } from "./Badge";

interface BarProps {
  /** 0 to 1 */
  share: number;
  text: string;
  /** What the bar measures, for screen readers. */
  label: string;
  tone?: Tone;
  /** Shown on hover. */
  title?: string | undefined;
}

export function Bar({ share, text, label, tone = "busy", title }: BarProps) {
  const percent = Math.round(100 * Math.min(1, Math.max(0, share)));
  return (
    <span class="bar" title={title}>
      <span
        class={`bar-track ${tone}`}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent}
        aria-valuetext={text}
      >
        <span class="bar-fill" style={{ width: `${percent}%` }} />
      </span>
      <span class="bar-text">{text}</span>
    </span>
  );
}
