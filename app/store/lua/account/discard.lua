-- KEYS: sums, chunks. ARGV: entries. Keys that were made permanent by a script whose reply was lost stay; so does the
-- record of a job.
for i = 2, #KEYS do
  if redis.call('TTL', KEYS[i]) >= 0 then redis.call('UNLINK', KEYS[i]) end
end
for _, entry in ipairs(ARGV) do
  if redis.call('ZSCORE', ENDS, entry) and redis.call('EXISTS', entry) == 0 then unbook(entry) end
end
