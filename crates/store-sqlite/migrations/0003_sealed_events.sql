-- What events have from version 2 on: see `SealedData`. Older events have none of it.

ALTER TABLE events ADD COLUMN origin     BLOB NOT NULL DEFAULT x'';
ALTER TABLE events ADD COLUMN agent      TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN data       BLOB NOT NULL DEFAULT x'';
ALTER TABLE events ADD COLUMN salt       BLOB NOT NULL DEFAULT x'';
ALTER TABLE events ADD COLUMN commitment BLOB NOT NULL DEFAULT x'';

ALTER TABLE checkpoints ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE checkpoints ADD COLUMN origin  BLOB    NOT NULL DEFAULT x'';

-- The log's id and its authors.
ALTER TABLE heads ADD COLUMN log BLOB NOT NULL DEFAULT x'';
