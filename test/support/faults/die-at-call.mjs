/**
 * Loaded in front of a command: kills the process, as a crash would, at one of its calls of the file system.
 * FACTORFLOW_DIE_AT names the function of node:fs/promises, the number of its call from 1, and the moment:
 * "rename:1:after".
 */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const [name, number, moment] = (process.env.FACTORFLOW_DIE_AT ?? '').split(':');

if (isMainThread && name !== '') {
  const call = fs[name];
  let left = Number(number);
  fs[name] = async (...args) => {
    const dies = --left === 0;
    if (dies && moment === 'before') process.kill(process.pid, 'SIGKILL');
    const result = await call(...args);
    if (dies) process.kill(process.pid, 'SIGKILL');
    return result;
  };
  syncBuiltinESMExports();
}
