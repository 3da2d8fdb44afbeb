-- Names that are almost the same, and vectors as plain numbers. No vector was written before this.

DROP TABLE vectors;
CREATE TABLE vectors (
  space      TEXT    NOT NULL,
  collection TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  model      TEXT    NOT NULL,
  numbers    BLOB    NOT NULL,
  props      TEXT    NOT NULL,
  seq        INTEGER NOT NULL,
  PRIMARY KEY (space, collection, id)
) STRICT;
CREATE INDEX vectors_by_seq ON vectors (space, collection, seq, id);

-- A row for each key of a name; see `names` in the store crate.
CREATE TABLE names (
  space TEXT NOT NULL,
  node  BLOB NOT NULL,
  name  TEXT NOT NULL,
  key   TEXT NOT NULL,
  PRIMARY KEY (space, key, node, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX names_by_node ON names (space, node);
