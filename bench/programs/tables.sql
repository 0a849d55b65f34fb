-- SPDX-License-Identifier: Apache-2.0
-- A database in memory: rows are inserted, indexed, joined, grouped, changed and deleted, as a
-- recorder's index is. Each run does the same work. The checks at the end stop the shell with
-- status 1 if anything is missing.
.bail on
PRAGMA journal_mode = MEMORY;
CREATE TABLE topic (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE message (id INTEGER PRIMARY KEY, topic INTEGER, stamp INTEGER, note TEXT, data BLOB);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
INSERT INTO topic SELECT i, 'robot/' || (i * 7919 % 1009) || '/topic_' || i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000)
INSERT INTO message SELECT i, 1 + i * 7919 % 500, i * 104729 % 1000003, 'note ' || i * 31 % 977,
  zeroblob(i * 37 % 400) FROM n;
COMMIT;
CREATE INDEX by_stamp ON message (stamp);
CREATE INDEX by_note ON message (note, topic);
CREATE TABLE summary AS SELECT topic.name AS name, count(*) AS messages, sum(length(data)) AS bytes,
  group_concat(note) AS notes
  FROM message JOIN topic ON topic.id = message.topic GROUP BY topic.name;
UPDATE message SET note = note || ' again' WHERE id % 3 = 0;
DELETE FROM message WHERE id % 5 = 0;
SELECT note, count(*) FROM message GROUP BY note ORDER BY count(*) DESC, note LIMIT 5;
CREATE TABLE checks (passed INTEGER CHECK (passed));
INSERT INTO checks SELECT sum(messages) = 120000 FROM summary;
INSERT INTO checks SELECT count(*) = 96000 FROM message;
