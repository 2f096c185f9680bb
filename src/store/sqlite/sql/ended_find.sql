-- ended_find: did this holder's lease of this key end less than a minute ago? That was in this minute or in
-- the one before it: two look-ups.
-- params:  1 this minute  2 tenant  3 key  4 holder  5 ended after
-- returns: fence, how, ended_ms
SELECT fence, how, ended_ms FROM il_ended
 WHERE minute IN (?1, ?1 - 1) AND tenant = ?2 AND key = ?3 AND holder = ?4 AND ended_ms > ?5;
