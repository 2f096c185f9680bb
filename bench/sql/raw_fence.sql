-- raw_fence: draw the next fence.
-- returns: fence
UPDATE counter SET fence = fence + 1 WHERE id = 1 RETURNING fence;
