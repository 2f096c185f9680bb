// Saves an answer of the server as a file. A plain link cannot send the page's header.
import { explain, notify } from "../act";
import { open } from "../api";
import { queryString } from "../router";
import type { Day } from "./usage_days";

export const exportPath = (days: Day[]): string =>
  `/admin/usage/export${queryString({ format: "csv", startDate: days[0]?.date, endDate: days[days.length - 1]?.date })}`;

export async function download(path: string, name: string): Promise<void> {
  try {
    const answer = await open("GET", `/ui/api${path}`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  } catch (e) {
    notify("bad", explain(e));
  }
}
