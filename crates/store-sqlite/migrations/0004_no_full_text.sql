-- Search ranks by an index of its own, in memory: nothing reads the one in the file.

DROP TABLE passages_fts;
