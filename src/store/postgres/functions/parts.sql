-- parts.sql: shared fragments, inserted wherever a function says @name@.

-- The state of a live job `l`, by where it waits.
-- part: state_of_lane
CASE l.lane & 7 WHEN @LANE_CLAIMED@ THEN @JOB_RUNNING@ WHEN @LANE_PARENT@ THEN @JOB_RUNNING@
                WHEN @LANE_SCHEDULED@ THEN @JOB_SCHEDULED@ ELSE @JOB_READY@ END

-- The flags of a job `j`, as stored.
-- part: job_flags
j.cancelled::int * @JOB_FLAG_CANCELLED@ + j.silent::int * @JOB_FLAG_SILENT@
+ j.sealed::int * @JOB_FLAG_SEALED@

-- The columns written when a job ends.
-- part: done_columns
seq, purge_at_ms, token, run_at_ms, started_ms, completed_ms, queue, attempt, state, last, flags,
progress, worker, error, message, result

-- The modes, as bits, that conflict with a request for `mode`: the conflict table of src/core.
-- part: conflicts_of_mode
CASE mode WHEN @MODE_EXCLUSIVE@ THEN @CONFLICTS_EXCLUSIVE@
          WHEN @MODE_SHARED@ THEN @CONFLICTS_SHARED@ ELSE @CONFLICTS_PERMIT@ END

-- The states, as bits, in which a live run may be shown: an overdue one is shown as it will end.
-- part: may_be_live
@RUN_BIT_PENDING@ + @RUN_BIT_RUNNING@ + @RUN_BIT_FAILED@ + @RUN_BIT_CANCELLED@

-- In a trigger of a guarded table: refuse the write of a role without USAGE on our schema, which
-- current_schema() then skips.
-- part: refuse_role_without_usage
IF coalesce(current_schema(), 'pg_catalog') ^@ 'pg_' THEN -- ours is left out of the path
    RAISE EXCEPTION 'write to % refused: it needs the current fence of its key',
        TG_RELID::regclass
        USING ERRCODE = 'IL002',
            DETAIL = format('The role %I may not use the schema %s of Interlock.', current_user,
                            split_part(current_setting('search_path'), ',', 1)),
              HINT = 'Grant it USAGE on that schema and what check_fence() needs; '
                     'see man interlock-guard.';
END IF;
