-- What events do to nodes and edges, read from their changes (`EventEffect`). Kinds are called differently in
-- every part of the program; these indexes find all that created a node, for instance. Each answers in the order of time.

CREATE INDEX events_creating_nodes ON events (space, hlc, seq)
    WHERE position('"put":"node","rev":1}' in encode(payload, 'escape')) > 0;
CREATE INDEX events_updating_nodes ON events (space, hlc, seq)
    WHERE position('"put":"node"' in replace(encode(payload, 'escape'), '"put":"node","rev":1}', '')) > 0;
CREATE INDEX events_removing_nodes ON events (space, hlc, seq)
    WHERE position('"remove":"node"' in encode(payload, 'escape')) > 0;
CREATE INDEX events_putting_edges ON events (space, hlc, seq)
    WHERE position('"put":"edge"' in encode(payload, 'escape')) > 0;
CREATE INDEX events_ending_edges ON events (space, hlc, seq)
    WHERE position('"remove":"edge"' in encode(payload, 'escape')) > 0;
