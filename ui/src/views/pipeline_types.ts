// What the routes of pipelines answer, as far as the views use it.
export interface PipelineRun {
  pipeline_logging_id: string;
  pipeline_id: string;
  status: string;
  trigger_type: string | null;
  trigger_by: string | null;
  created_at: string | null;
  start_time: string | null;
  end_time: string | null;
  duration_ms: number | null;
  stage: string | null;
  progress: number | null;
  error_message: string | null;
  parameters: Record<string, unknown> | null;
  version: string | null;
  position: number | null;
  cancelling: boolean;
  joins: number;
}

export interface RunStep {
  step_id: string;
  status: string;
  attempt: number;
  duration_ms: number | null;
  error_message: string | null;
}

export interface PipelineRunFull extends PipelineRun {
  node: string | null;
  steps: RunStep[];
}

export interface Pipeline {
  pipeline_id: string;
  description: string | null;
  version: string | null;
  schedule: string | null;
  timezone: string | null;
  next_run_at: string | null;
  on_conflict: string;
  timeout_ms: number;
  lock_timeout_ms: number | null;
  preflight: boolean;
  last_run: PipelineRun | null;
}

export interface Parameter {
  name: string;
  default: string | null;
  required: boolean;
}

export interface Step {
  step_id: string;
  type: string;
  level: number;
  depends_on: string[];
  timeout_ms: number;
  retries: number;
  on_failure: string;
}

export interface PipelineFull extends Pipeline {
  parameters: Parameter[];
  steps: Step[];
}

export interface Triggered {
  pipeline_logging_id: string;
  pipeline_id: string;
  status: string;
  message: string;
}

export interface Loaded {
  pipelines: number;
  changed: number;
  bad_files: number;
  problems: { message: string }[];
}

export const isLive = (status: string): boolean => status === "PENDING" || status === "RUNNING";

/** Ids of runs are UUIDs; a holder that is no run of ours has another name. */
export const isRunId = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
