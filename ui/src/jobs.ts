// What people do with jobs, in the list of a queue and in the view of one.
import { act } from "./act";
import type { Job } from "./types";

export const jobPath = (id: string): string => `/jobs/${encodeURIComponent(id)}`;

export const retry = (j: Job): Promise<unknown> =>
  act("POST", `${jobPath(j.id)}/retry`, {}, "the job is due now");

/** A job that failed for good is called dead wherever it is counted. */
export const jobState = (j: Job): string => (j.state === "FAILED" ? "dead" : j.state);

export const jobTone = (j: Job): "bad" | undefined => (j.state === "FAILED" ? "bad" : undefined);
