// Actions on jobs, for the list of a queue and the view of one job.
import { act } from "./act";
import type { Job } from "./types";

export const jobPath = (id: string): string => `/jobs/${encodeURIComponent(id)}`;

export const retry = (j: Job): Promise<unknown> =>
  act("POST", `${jobPath(j.id)}/retry`, {}, "the job is due now");

export const jobTone = (j: Job): "bad" | undefined => (j.state === "FAILED" ? "bad" : undefined);
