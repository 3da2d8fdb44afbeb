-- The five tables, plus key-value. `space` leads every key.

CREATE TABLE nodes (
  space   TEXT    NOT NULL,
  id      BLOB    NOT NULL,
  kind    TEXT    NOT NULL,
  project TEXT    NOT NULL,
  key     TEXT    NOT NULL,
  title   TEXT    NOT NULL,
  body    TEXT    NOT NULL,
  props   TEXT    NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  hash    BLOB    NOT NULL,
  rev     INTEGER NOT NULL,
  PRIMARY KEY (space, id)
) STRICT;
CREATE UNIQUE INDEX nodes_by_key ON nodes (space, kind, project, key);

-- A superseded revision held from `updated` until before `ended`.
CREATE TABLE node_history (
  space   TEXT    NOT NULL,
  id      BLOB    NOT NULL,
  kind    TEXT    NOT NULL,
  project TEXT    NOT NULL,
  key     TEXT    NOT NULL,
  title   TEXT    NOT NULL,
  body    TEXT    NOT NULL,
  props   TEXT    NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  hash    BLOB    NOT NULL,
  rev     INTEGER NOT NULL,
  ended   INTEGER NOT NULL,
  PRIMARY KEY (space, id, rev)
) STRICT;
CREATE INDEX node_history_by_key ON node_history (space, kind, project, key);

CREATE TABLE edges (
  space      TEXT    NOT NULL,
  src        BLOB    NOT NULL,
  rel        TEXT    NOT NULL,
  dst        BLOB    NOT NULL,
  weight     REAL    NOT NULL,
  props      TEXT    NOT NULL,
  valid_from INTEGER NOT NULL,
  valid_to   INTEGER NOT NULL,
  hash       BLOB    NOT NULL,
  PRIMARY KEY (space, src, rel, dst, valid_from)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_by_dst ON edges (space, dst, rel, src);

CREATE TABLE passages (
  rowid        INTEGER PRIMARY KEY,
  space        TEXT    NOT NULL,
  node         BLOB    NOT NULL,
  n            INTEGER NOT NULL,
  text         TEXT    NOT NULL,
  start        INTEGER NOT NULL,
  tokens       TEXT    NOT NULL,
  title_tokens TEXT    NOT NULL,
  UNIQUE (space, node, n),
  FOREIGN KEY (space, node) REFERENCES nodes (space, id)
) STRICT;

-- `scope` holds the space, the kind and the project as tokens, so that filters work inside the
-- search. Our own tokens are stored, so every character but the space belongs to one.
CREATE VIRTUAL TABLE passages_fts USING fts5 (
  scope, title, tokens,
  content = '', contentless_delete = 1,
  tokenize = "ascii tokenchars '!""#$%&()*+,-./:;<=>?@[\]^_`{|}~'"
);

CREATE TABLE vectors (
  space      TEXT    NOT NULL,
  collection TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  model      TEXT    NOT NULL,
  dimensions INTEGER NOT NULL,
  bytes      BLOB    NOT NULL,
  props      TEXT    NOT NULL,
  seq        INTEGER NOT NULL,
  PRIMARY KEY (space, collection, id)
) STRICT;
CREATE INDEX vectors_by_seq ON vectors (space, collection, seq, id);

CREATE TABLE events (
  space     TEXT    NOT NULL,
  seq       INTEGER NOT NULL,
  version   INTEGER NOT NULL,
  id        BLOB    NOT NULL,
  parents   BLOB    NOT NULL,
  hlc       INTEGER NOT NULL,
  author    TEXT    NOT NULL,
  kind      TEXT    NOT NULL,
  payload   BLOB    NOT NULL,
  signature BLOB    NOT NULL,
  PRIMARY KEY (space, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX events_by_id ON events (space, id);

CREATE TABLE tiles (
  space TEXT    NOT NULL,
  level INTEGER NOT NULL,
  idx   INTEGER NOT NULL,
  hash  BLOB    NOT NULL,
  PRIMARY KEY (space, level, idx)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
  space      TEXT    NOT NULL,
  height     INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  event_root BLOB    NOT NULL,
  state_root BLOB    NOT NULL,
  hlc        INTEGER NOT NULL,
  author     TEXT    NOT NULL,
  signature  BLOB    NOT NULL,
  PRIMARY KEY (space, height)
) STRICT, WITHOUT ROWID;

CREATE TABLE heads (
  space    TEXT    NOT NULL PRIMARY KEY,
  seq      INTEGER NOT NULL,
  hlc      INTEGER NOT NULL,
  tips     BLOB    NOT NULL,
  frontier BLOB    NOT NULL,
  state    BLOB    NOT NULL
) STRICT;

CREATE TABLE kv (
  space  TEXT NOT NULL,
  bucket TEXT NOT NULL,
  key    TEXT NOT NULL,
  value  BLOB NOT NULL,
  PRIMARY KEY (space, bucket, key)
) STRICT, WITHOUT ROWID;
