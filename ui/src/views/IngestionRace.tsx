// The results of one race.
import { Copyable, Empty, ErrorBox, Facts, Head, Loading, Panel, Table } from "../components";
import { number } from "../format";
import { useLive } from "../live";
import { href } from "../router";
import type { ViewProps } from ".";
import type { Race } from "./ingest_types";

interface Result {
  id: string;
  name: string;
  car_number: string | null;
  position: number;
  laps_completed: number;
  total_raw: string | null;
  behind_raw: string | null;
  fastest_seconds: number | null;
  fastest_lap: number | null;
  average_seconds: number | null;
  consistency: number | null;
  laps: number;
}

interface RaceFull extends Race {
  event_id: string;
  source_race_id: string;
  results: Result[];
}

const seconds = (n: number | null): string => (n === null ? "–" : n.toFixed(3));

export function IngestionRace({ names }: ViewProps) {
  const {
    data: race,
    error,
    loading,
  } = useLive<RaceFull>(`/races/${encodeURIComponent(names["id"] ?? "")}`, {}, { every: 10_000 });
  return (
    <>
      <Head
        title={race?.label ?? "Race"}
        above={
          race
            ? {
                title: "Event",
                href: href("/ingestion/events/:id", { id: race.event_id }),
              }
            : { title: "Ingestion", href: href("/ingestion") }
        }
      />
      <ErrorBox error={error} />
      {loading && <Loading />}
      {race && (
        <>
          <Panel title="Race">
            <Facts
              of={[
                ["Class", race.class_name],
                ["Session", race.session_type],
                ["Section", race.section],
                ["Length", race.length],
                ["Completed", race.completed_at],
                ["Id at the site", <Copyable value={race.source_race_id} label="id at the site" />],
              ]}
            />
          </Panel>
          <Panel title="Results">
            {race.results.length === 0 ? (
              <Empty title="No results">The race was not run when it was ingested.</Empty>
            ) : (
              <Table
                label="Results"
                rows={race.results}
                rowKey={(r) => r.id}
                columns={[
                  { title: "Pos", cell: (r) => r.position, align: "right" },
                  { title: "Driver", cell: (r) => r.name, grow: true },
                  { title: "Car", cell: (r) => r.car_number, wide: true },
                  {
                    title: "Laps",
                    cell: (r) => number(r.laps_completed),
                    align: "right",
                  },
                  { title: "Total", cell: (r) => r.total_raw },
                  { title: "Behind", cell: (r) => r.behind_raw, wide: true },
                  {
                    title: "Fastest",
                    cell: (r) => seconds(r.fastest_seconds),
                    align: "right",
                    wide: true,
                  },
                  {
                    title: "Average",
                    cell: (r) => seconds(r.average_seconds),
                    align: "right",
                    wide: true,
                  },
                  {
                    title: "Consistency",
                    cell: (r) => (r.consistency === null ? "–" : `${r.consistency.toFixed(2)} %`),
                    align: "right",
                    wide: true,
                  },
                ]}
              />
            )}
          </Panel>
        </>
      )}
    </>
  );
}
