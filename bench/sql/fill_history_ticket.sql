-- fill_history_ticket: numbers go on after theirs.
-- params:  1 how many
UPDATE il_state SET ticket = 1000000 + ?1;
