-- Keys get an index of their own. In a table without row ids the way to a key reads every row that the key is
-- compared with as a whole, and some rows are hundreds of kilobytes long.

CREATE TABLE kv_by_row (
  space  TEXT NOT NULL,
  bucket TEXT NOT NULL,
  key    TEXT NOT NULL,
  value  BLOB NOT NULL,
  PRIMARY KEY (space, bucket, key)
) STRICT;

INSERT INTO kv_by_row SELECT space, bucket, key, value FROM kv ORDER BY space, bucket, key;

DROP TABLE kv;

ALTER TABLE kv_by_row RENAME TO kv;
