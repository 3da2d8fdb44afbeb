-- The five tables, plus key-value. `space` leads every key, so that the tables can be distributed by
-- it. Texts are bytes: PostgreSQL's TEXT refuses the character U+0000, and bytes sort the same
-- everywhere. `convert_from(title, 'UTF8')` shows one. A text may be longer than an entry of an index
-- may be; its hash is not, so indices hold hashes of texts.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE nodes (
  space   TEXT   NOT NULL,
  id      BYTEA  NOT NULL,
  kind    TEXT   NOT NULL,
  project BYTEA  NOT NULL,
  key     BYTEA  NOT NULL,
  title   BYTEA  NOT NULL,
  body    BYTEA  NOT NULL,
  props   BYTEA  NOT NULL,
  created BIGINT NOT NULL,
  updated BIGINT NOT NULL,
  hash    BYTEA  NOT NULL,
  rev     BIGINT NOT NULL,
  PRIMARY KEY (space, id)
);
CREATE UNIQUE INDEX nodes_by_key ON nodes (space, kind, sha256(project), sha256(key));

CREATE TABLE node_history (
  space   TEXT   NOT NULL,
  id      BYTEA  NOT NULL,
  kind    TEXT   NOT NULL,
  project BYTEA  NOT NULL,
  key     BYTEA  NOT NULL,
  title   BYTEA  NOT NULL,
  body    BYTEA  NOT NULL,
  props   BYTEA  NOT NULL,
  created BIGINT NOT NULL,
  updated BIGINT NOT NULL,
  hash    BYTEA  NOT NULL,
  rev     BIGINT NOT NULL,
  ended   BIGINT NOT NULL,
  PRIMARY KEY (space, id, rev)
);
CREATE INDEX node_history_by_key ON node_history (space, kind, sha256(project), sha256(key));

CREATE TABLE edges (
  space      TEXT   NOT NULL,
  src        BYTEA  NOT NULL,
  rel        BYTEA  NOT NULL,
  dst        BYTEA  NOT NULL,
  weight     DOUBLE PRECISION NOT NULL,
  props      BYTEA  NOT NULL,
  valid_from BIGINT NOT NULL,
  valid_to   BIGINT NOT NULL,
  hash       BYTEA  NOT NULL
);
CREATE UNIQUE INDEX edges_by_src ON edges (space, src, sha256(rel), dst, valid_from);
CREATE INDEX edges_by_dst ON edges (space, dst, sha256(rel), src);

CREATE TABLE passages (
  space        TEXT     NOT NULL,
  node         BYTEA    NOT NULL,
  n            BIGINT   NOT NULL,
  text         BYTEA    NOT NULL,
  start        BIGINT   NOT NULL,
  tokens       BYTEA    NOT NULL,
  title_tokens BYTEA    NOT NULL,
  -- Our own tokens, with the space, the kind and the project among them, so that filters work inside
  -- the search.
  found_by     TSVECTOR NOT NULL,
  PRIMARY KEY (space, node, n),
  FOREIGN KEY (space, node) REFERENCES nodes (space, id)
);
CREATE INDEX passages_by_token ON passages USING gin (found_by);

CREATE TABLE vectors (
  space      TEXT   NOT NULL,
  collection BYTEA  NOT NULL,
  id         BYTEA  NOT NULL,
  model      BYTEA  NOT NULL,
  numbers    VECTOR NOT NULL,
  props      BYTEA  NOT NULL,
  seq        BIGINT NOT NULL
);
CREATE UNIQUE INDEX vectors_by_id ON vectors (space, sha256(collection), sha256(id));
CREATE INDEX vectors_by_seq ON vectors (space, sha256(collection), seq);

CREATE TABLE names (
  space TEXT  NOT NULL,
  node  BYTEA NOT NULL,
  name  BYTEA NOT NULL,
  key   TEXT  NOT NULL
);
CREATE UNIQUE INDEX names_by_key ON names (space, key, node, sha256(name));
CREATE INDEX names_by_node ON names (space, node);

CREATE TABLE events (
  space     TEXT     NOT NULL,
  seq       BIGINT   NOT NULL,
  version   SMALLINT NOT NULL,
  id        BYTEA    NOT NULL,
  parents   BYTEA    NOT NULL,
  hlc       BIGINT   NOT NULL,
  author    BYTEA    NOT NULL,
  kind      BYTEA    NOT NULL,
  payload   BYTEA    NOT NULL,
  signature BYTEA    NOT NULL,
  PRIMARY KEY (space, seq)
);
CREATE UNIQUE INDEX events_by_id ON events (space, id);

CREATE TABLE tiles (
  space TEXT     NOT NULL,
  level SMALLINT NOT NULL,
  idx   BIGINT   NOT NULL,
  hash  BYTEA    NOT NULL,
  PRIMARY KEY (space, level, idx)
);

CREATE TABLE checkpoints (
  space      TEXT   NOT NULL,
  height     BIGINT NOT NULL,
  seq        BIGINT NOT NULL,
  event_root BYTEA  NOT NULL,
  state_root BYTEA  NOT NULL,
  hlc        BIGINT NOT NULL,
  author     BYTEA  NOT NULL,
  signature  BYTEA  NOT NULL,
  PRIMARY KEY (space, height)
);

CREATE TABLE heads (
  space    TEXT   NOT NULL PRIMARY KEY,
  seq      BIGINT NOT NULL,
  hlc      BIGINT NOT NULL,
  tips     BYTEA  NOT NULL,
  frontier BYTEA  NOT NULL,
  state    BYTEA  NOT NULL
);

CREATE TABLE kv (
  space  TEXT  NOT NULL,
  bucket BYTEA NOT NULL,
  key    BYTEA NOT NULL,
  value  BYTEA NOT NULL
);
CREATE UNIQUE INDEX kv_by_key ON kv (space, sha256(bucket), sha256(key));
