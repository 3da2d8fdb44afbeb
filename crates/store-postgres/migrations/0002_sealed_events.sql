-- What events have from version 2 on: see `SealedData`. Older events have none of it.

ALTER TABLE events
  ADD COLUMN origin     BYTEA NOT NULL DEFAULT '',
  ADD COLUMN agent      BYTEA NOT NULL DEFAULT '',
  ADD COLUMN data       BYTEA NOT NULL DEFAULT '',
  ADD COLUMN salt       BYTEA NOT NULL DEFAULT '',
  ADD COLUMN commitment BYTEA NOT NULL DEFAULT '';

ALTER TABLE checkpoints
  ADD COLUMN version SMALLINT NOT NULL DEFAULT 1,
  ADD COLUMN origin  BYTEA    NOT NULL DEFAULT '';

-- The log's id and its authors.
ALTER TABLE heads ADD COLUMN log BYTEA NOT NULL DEFAULT '';
