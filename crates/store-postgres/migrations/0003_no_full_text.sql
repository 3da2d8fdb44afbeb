-- Search ranks by an index of its own, in memory: nothing reads the one in the database. The index on
-- the column goes with it.

ALTER TABLE passages DROP COLUMN found_by;
