// Responses of the routes of the campus: the fields that the views use.
export interface Tournament {
  id: string;
  code: string;
  name: string;
  state: string;
  campus: string | null;
  specialization: string;
  max_players: number;
  cost: number;
  enrolled: number;
  reward_config: unknown;
  completed_at: string | null;
  created_at: string | null;
}

export interface Finalized {
  state: string;
  repeated: boolean;
  players: number;
  paid: number;
  items: { user: string; placement: number; xp: number; credits: number }[];
}

export interface User {
  id: string;
  email: string;
  is_active: boolean;
  credit_balance: number;
  xp_balance: number;
  created_at: string | null;
}

export interface Badges {
  items: { tournament: string; type: string; created_at: string | null }[];
}

/** An entry that is only a number is of the old format. */
export type Skill =
  | number
  | {
      baseline: number;
      current_level: number;
      tournament_delta: number;
      total_delta: number;
      tournament_count: number;
    };

export interface License {
  id: string;
  specialization: string;
  is_active: boolean;
  football_skills: Record<string, Skill>;
}

export interface CampusSession {
  id: string;
  tournament: string | null;
  name: string;
  price: number;
  capacity: number;
  available_spots: number;
  date_start: string | null;
  date_end: string | null;
}

export interface Booking {
  id: string;
  user: string;
  session: string;
  status: string;
  waitlist_position: number | null;
  price: number;
  created_at: string | null;
}

/** The states that a tournament can change to; finalizing sets the others. */
export const NEXT_STATES: Record<string, string[]> = {
  DRAFT: ["SEEKING_INSTRUCTOR", "ENROLLMENT_OPEN", "CANCELLED"],
  SEEKING_INSTRUCTOR: ["ENROLLMENT_OPEN", "CANCELLED"],
  ENROLLMENT_OPEN: ["ENROLLMENT_CLOSED", "CANCELLED"],
  ENROLLMENT_CLOSED: ["ENROLLMENT_OPEN", "CHECK_IN_OPEN", "CANCELLED"],
  CHECK_IN_OPEN: ["IN_PROGRESS", "CANCELLED"],
  IN_PROGRESS: ["COMPLETED", "CANCELLED"],
  REWARDS_DISTRIBUTED: ["ARCHIVED"],
  CANCELLED: ["ARCHIVED"],
};

/** The name of the change to a state. */
export const CHANGES: Record<string, string> = {
  SEEKING_INSTRUCTOR: "Seek instructor",
  ENROLLMENT_OPEN: "Open enrollment",
  ENROLLMENT_CLOSED: "Close enrollment",
  CHECK_IN_OPEN: "Open check-in",
  IN_PROGRESS: "Start",
  COMPLETED: "Complete",
  CANCELLED: "Cancel",
  ARCHIVED: "Archive",
};

export const words = (state: string): string => state.toLowerCase().replaceAll("_", " ");
