-- What the log is asked by: kind, author, agent, time. Each answers in the order of time.

CREATE INDEX events_by_kind ON events (space, kind, hlc, seq);
CREATE INDEX events_by_author ON events (space, author, hlc, seq);
CREATE INDEX events_by_agent ON events (space, agent, hlc, seq) WHERE agent <> '';
CREATE INDEX events_by_time ON events (space, hlc, seq);
