-- KEYS from 5: keys that are about to be written; they are registered so that the end of the job removes them.
if not mine() then return 0 end
for i = 5, #KEYS do redis.call('SADD', base .. 'keys', KEYS[i]) end
return 1
